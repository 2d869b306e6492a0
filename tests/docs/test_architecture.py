"""The page on the architecture names files and packages that exist, and draws their layers."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / 'docs' / 'architecture.md'
HOMES = (ROOT, ROOT / 'tool_approval' / 'tool_approval', ROOT / 'pydantic_ai_slim' / 'pydantic_ai_deferred')


def test_every_file_that_it_names_exists():
    text = PAGE.read_text(encoding='utf-8')
    named = set(re.findall(r'[\w/]+(?:/|\.py|\.toml)(?![\w<])', text))

    missing = sorted(path for path in named if not any((home / path).exists() for home in HOMES))

    assert len(named) > 20
    assert missing == []


def test_every_package_has_a_row():
    rows = set(re.findall(r'`([\w/]+)`', ' '.join(re.findall(r'^\| (`.*?) \|', PAGE.read_text(), re.MULTILINE))))
    packages = {
        path.relative_to(HOMES[1]).as_posix()
        for path in HOMES[1].iterdir()
        if path.suffix != '.pyc' and not path.name.startswith('_') and path.name != 'py.typed'
    }

    assert {row.split('/')[0] for row in rows} == {package.removesuffix('.py') for package in packages}


@pytest.mark.parametrize('package', ['tool_approval', 'pydantic_ai_deferred'])
def test_the_picture_has_the_layers_of_the_import_contract(package: str):
    contracts = tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['importlinter']['contracts']
    [layers] = [each['layers'] for each in contracts if each.get('containers') == [package]]
    [picture] = re.findall(rf'^```text title="{package}"\n(.*?)^```', PAGE.read_text(), re.MULTILINE | re.DOTALL)

    assert re.findall(r'^│ (.*?) +│$', picture, re.MULTILINE) == layers


def needs() -> dict[str, set[str]]:
    """What each part imports by the last column of the table, directly or through what it needs; `/` is kept."""
    lines = re.findall(r'^\| (`.*?) \|.*\| ([^|]+) \|$', PAGE.read_text(), re.MULTILINE)
    rows = {name: set(re.split(r', ', column)) for names, column in lines for name in re.findall(r'`([\w/]+)`', names)}
    rows = {name: set(rows) if column == {'all rows below'} else column for name, column in rows.items()}

    def reached(part: str, seen: set[str]) -> set[str]:
        for each in [row for row in rows if row == part or row.split('/')[0] == part]:
            for other in rows[each] - seen:
                seen.add(other)
                reached(other, seen)
        return seen

    return {name: reached(name, set()) for name in rows}


def imported(path: Path) -> set[str]:
    """The parts of `tool_approval` that a module imports, at any place in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [f'{node.module}.{each.name}' for each in node.names] if node.module == HOMES[1].name else []
            found.update(names or [node.module])
        elif isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
    return {
        name.split('.', 1)[1].replace('.', '/')
        for name in found
        if name.startswith(f'{HOMES[1].name}.') and not name.endswith('__')
    }


@pytest.mark.parametrize('part', sorted(needs()))
def test_a_part_imports_only_what_the_table_says_that_it_needs(part: str):
    place = HOMES[1] / part
    allowed = {*needs()[part], part}
    modules = [place.with_suffix('.py')] if place.with_suffix('.py').is_file() else list(place.rglob('*.py'))

    others = {
        (module.name, name)
        for module in modules
        for name in imported(module)
        if not any(name == each or name.startswith(f'{each}/') for each in allowed)
    }

    assert modules
    assert others == set()
