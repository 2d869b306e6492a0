"""The old module name, and what the package exports."""

import importlib
import subprocess
import sys
import types

import pytest
from tool_approval.compat import blocking_approval
from tool_approval.compat.blocking_approval import AliasError, install_alias, uninstall_alias

from tool_approval import MissingExtraError

OLD = 'pydantic_ai_blocking_approval'


@pytest.fixture(autouse=True)
def without_the_old_name(monkeypatch):
    for name in [name for name in sys.modules if name.split('.')[0] == OLD]:
        monkeypatch.delitem(sys.modules, name)
    yield
    uninstall_alias()


def test_the_names_of_0_7_to_0_9_are_exported():
    of_0_7 = {
        'ApprovalController',
        'ApprovalDecision',
        'ApprovalMemory',
        'ApprovalRequest',
        'ApprovalResult',
        'ApprovalToolset',
        'SupportsApprovalDescription',
        'SupportsNeedsApproval',
    }
    new_since = {
        'ApprovalBlocked',
        'ApprovalCallback',
        'ApprovalConfig',
        'ApprovalDenied',
        'ApprovalError',
        'needs_approval_from_config',
    }
    ours = {'AliasError', 'ApprovalScope', '__version__', 'install_alias', 'uninstall_alias'}

    assert set(blocking_approval.__all__) == of_0_7 | new_since | ours
    assert all(hasattr(blocking_approval, name) for name in blocking_approval.__all__)
    assert blocking_approval.__version__ == '0.9.0'


def test_the_old_name_is_this_package():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(OLD)

    install_alias()

    assert importlib.import_module(OLD) is blocking_approval


@pytest.mark.parametrize('submodule', ['types', 'toolset', 'controller', 'memory'])
def test_the_old_submodules_are_the_same_modules_and_no_copies(submodule):
    install_alias()

    imported = importlib.import_module(f'{OLD}.{submodule}')

    assert imported is importlib.import_module(f'tool_approval.compat.blocking_approval.{submodule}')


def test_a_second_installation_changes_nothing():
    install_alias()
    before = dict(sys.modules)

    install_alias()

    assert sys.modules == before


def test_alias_refuses_to_install_over_the_imported_published_package(monkeypatch):
    published = types.ModuleType(OLD)
    published.__file__ = '/site-packages/pydantic_ai_blocking_approval/__init__.py'
    monkeypatch.setitem(sys.modules, OLD, published)

    with pytest.raises(AliasError, match=r'/site-packages/.*before it is imported') as raised:
        install_alias()

    assert raised.value.module is published
    assert raised.value.name == OLD
    assert sys.modules[OLD] is published
    assert f'{OLD}.types' not in sys.modules


def test_uninstalling_leaves_the_published_package_alone(monkeypatch):
    published = types.ModuleType(OLD)
    monkeypatch.setitem(sys.modules, OLD, published)

    uninstall_alias()

    assert sys.modules[OLD] is published


def test_uninstalling_takes_the_old_name_away():
    install_alias()

    uninstall_alias()

    assert not [name for name in sys.modules if name.split('.')[0] == OLD]


def test_without_pydantic_ai_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pydantic_ai', None)
    for name in ('pydantic_ai.tools', 'pydantic_ai.toolsets', 'tool_approval.compat.blocking_approval.toolset'):
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(MissingExtraError, match=r'tool_approval\[pydantic-ai\]'):
        importlib.import_module('tool_approval.compat.blocking_approval.toolset')


def test_code_for_the_old_name_runs_unchanged():
    code = """
        from tool_approval.compat.blocking_approval import install_alias
        install_alias()
        import pydantic_ai_blocking_approval
        from pydantic_ai_blocking_approval.types import ApprovalResult
        print(ApprovalResult is pydantic_ai_blocking_approval.ApprovalResult)
    """

    finished = subprocess.run(
        [sys.executable, '-c', '\n'.join(line.strip() for line in code.splitlines())], capture_output=True, text=True
    )

    assert finished.stdout == 'True\n', finished.stderr
