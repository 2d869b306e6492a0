"""Public names are frozen and described, and the core needs nothing but pydantic."""

import ast
import importlib
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import tool_approval.answering
import tool_approval.audit
import tool_approval.inbox
import tool_approval.os_sandbox
import tool_approval.settings
import tool_approval.storage
import tool_approval.testing
import tool_approval.tools.file_sandbox
import tool_approval.tools.shell

import tool_approval

PUBLIC = {
    importlib.import_module(name): tuple(package['names'])
    for name, package in tomllib.loads(Path(__file__).with_name('public_names.toml').read_text()).items()
}
each_package = pytest.mark.parametrize('package', PUBLIC, ids=lambda package: package.__name__)


@each_package
def test_public_names_are_frozen(package: ModuleType):
    assert package.__all__ == PUBLIC[package]
    assert all(hasattr(package, name) for name in package.__all__)


def is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def target_of(node: ast.stmt) -> str | None:
    """The name that a statement gives a value or a type."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


def undescribed(body: list[ast.stmt], names: set[str] | None = None) -> list[str]:
    """The public names of a module or class that have no docstring, or of these names alone."""
    missing: list[str] = []
    for node, following in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                is_described = ast.get_docstring(node) is not None
            case _:
                name, is_described = target_of(node) or '_', is_text(following)
        if name.startswith('_') or (names is not None and name not in names):
            continue
        if not is_described:
            missing.append(name)
        if isinstance(node, ast.ClassDef):
            inside = [each for each in node.body if target_of(each) != 'model_config']
            missing += [f'{name}.{member}' for member in undescribed(inside)]
    return missing


@each_package
def test_every_public_name_is_described_with_its_fields_and_methods(package: ModuleType):
    root = Path(package.__file__ or '').parent
    core = Path(tool_approval.__file__ or '').parent / 'core'
    paths = [
        path
        for folder in dict.fromkeys((root, root / 'core', core))
        for path in folder.glob('*.py')
        if path.name != '__init__.py'
    ]
    modules = [ast.parse(path.read_text(encoding='utf-8')) for path in paths]
    names = set(package.__all__) - {'__version__'}
    defined = {target_of(node) or getattr(node, 'name', '') for module in modules for node in module.body}

    missing = [name for module in modules for name in undescribed(module.body, names)]

    assert names <= defined
    assert missing == []


@each_package
def test_package_has_a_docstring(package: ModuleType):
    assert package.__doc__


BLOCKED = (
    'pydantic_ai',
    'pydantic_ai_deferred',
    'langchain',
    'langchain_core',
    'yaml',
    'starlette',
    'rich',
    'sqlalchemy',
    'psycopg',
)
WITHOUT_THEM = f"""
import sys

BLOCKED = {BLOCKED!r}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in BLOCKED:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())

import asyncio
import tool_approval
import tool_approval.audit
import tool_approval.storage
from tool_approval.testing import ScriptedUI

def delete(path):
    return 'deleted ' + path

ui = ScriptedUI([True, False])
controller = tool_approval.ApprovalController(policy={{'delete': {{'approval': 'required'}}}}, ui=ui)
print(asyncio.run(tool_approval.execute_tool(delete, 'delete', {{'path': 'a'}}, controller)))
try:
    asyncio.run(tool_approval.execute_tool(delete, 'delete', {{'path': 'b'}}, controller))
except tool_approval.ApprovalDenied as denied:
    print(denied.tool_name)
ui.assert_done()
print(sorted(name for name in BLOCKED if name in sys.modules))
"""


def test_core_runs_without_any_framework_ui_or_database():
    done = subprocess.run(
        [sys.executable, '-W', 'error', '-c', WITHOUT_THEM], capture_output=True, text=True, timeout=60
    )

    assert (done.stdout.splitlines(), done.stderr) == (['deleted a', 'delete', '[]'], '')


LATE = {
    package: [module.name for module in pkgutil.iter_modules(package.__path__)]
    for package in (
        tool_approval,
        tool_approval.os_sandbox,
        tool_approval.settings,
        tool_approval.storage,
        tool_approval.tools.file_sandbox,
        tool_approval.tools.shell,
    )
}


@pytest.mark.parametrize('package', LATE, ids=lambda package: package.__name__)
def test_lazily_imported_names_are_listed_and_unknown_names_raise(package):
    assert set(package.__all__) <= set(dir(package))
    # A module of the same name would be found in its place, by whoever comes after it was imported.
    assert set(package.__all__).isdisjoint(LATE[package])
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = package.no_such_name
