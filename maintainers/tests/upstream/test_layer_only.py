"""`LAYER_ONLY.md` lists the tests of the loop that do not run on the patched host: those that are marked."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
LISTED = ROOT / 'maintainers' / 'upstream' / 'LAYER_ONLY.md'


def marked() -> set[tuple[str, str]]:
    """The marked tests by module; `all` stands for a whole module."""
    found: set[tuple[str, str]] = set()
    for path in sorted((ROOT / 'tests' / 'loop').glob('test_*.py')):
        for statement in ast.parse(path.read_text(encoding='utf-8')).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id='pytestmark')], value=value) if mentions(value):
                    found.add((path.name, 'all'))
                case ast.FunctionDef(name=name, decorator_list=decorators):
                    found.update((path.name, name) for each in decorators if mentions(each))
                case _:
                    pass
    return found


def mentions(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == 'layer_only' for each in ast.walk(node))


def listed() -> dict[tuple[str, str], str]:
    """The reason for each row of the list."""
    rows = re.findall(r'(?m)^\| `(test_\w+\.py)` \| (?:`(\w+)`|(all)) \| (.+) \|$', LISTED.read_text(encoding='utf-8'))
    assert len(rows) == len({(module, test or every) for module, test, every, _ in rows})
    return {(module, test or every): reason for module, test, every, reason in rows}


def test_list_has_the_marked_tests():
    assert set(listed()) == marked()


def test_each_listed_test_has_a_reason():
    assert all(len(reason.split()) >= 3 for reason in listed().values())
