"""Provide the old module name, for code that cannot be changed."""

from __future__ import annotations

import sys
from types import ModuleType

from tool_approval.core.errors import ApprovalError

OLD_NAME = 'pydantic_ai_blocking_approval'
"""Import name of the published package."""


class AliasError(ApprovalError, ImportError):
    """The old module name already belongs to another module. An alias would mix that module's classes with ours."""

    def __init__(self, module: ModuleType) -> None:
        """Set the message, which names the file of the other module."""
        self.module = module
        found = getattr(module, '__file__', None) or 'a module without a file'
        super().__init__(
            f'{OLD_NAME!r} was already imported from {found}; call install_alias() before it is imported',
            name=OLD_NAME,
        )


def install_alias() -> None:
    """Let code import this package and its submodules under the old name `pydantic_ai_blocking_approval`.

    Call this function before any code imports the old name. A second call changes nothing.

    Raises:
        AliasError: The name belongs to another module. No module was changed.
    """
    modules = _own_modules()
    found = sys.modules.get(OLD_NAME)
    if found is not None and found is not modules[OLD_NAME]:
        raise AliasError(found)
    # Also the submodules: Python would load a second copy of them under the old name.
    sys.modules.update(modules)


def uninstall_alias() -> None:
    """Remove the old name if it refers to this package. Code that has already imported the modules keeps them."""
    for name, module in _own_modules().items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


def _own_modules() -> dict[str, ModuleType]:
    package = __name__.rpartition('.')[0]
    return {
        OLD_NAME + name.removeprefix(package): module
        for name, module in list(sys.modules.items())
        if name == package or name.startswith(f'{package}.')
    }
