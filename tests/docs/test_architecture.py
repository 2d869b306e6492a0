"""The page on the architecture names files and packages that exist, and draws their layers."""

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
