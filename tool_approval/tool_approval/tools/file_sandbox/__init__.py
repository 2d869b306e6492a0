"""Rules for the files that an agent may use. A call uses exactly the files that were checked."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .commit import FileToolError
    from .config import PathApproval, PathConfig, SandboxConfig
    from .operations import perform
    from .rules import Operation
    from .sandbox import Decision, FileAccess, FileSandbox
    from .tools import FileTool, FileTools

__all__ = (
    'Decision',
    'FileAccess',
    'FileSandbox',
    'FileTool',
    'FileToolError',
    'FileTools',
    'Operation',
    'PathApproval',
    'PathConfig',
    'SandboxConfig',
    'perform',
)

if not TYPE_CHECKING:  # pragma: no branch - so that type checkers report names that are not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'commit': ('FileToolError',),
            'config': ('PathApproval', 'PathConfig', 'SandboxConfig'),
            'operations': ('perform',),
            'rules': ('Operation',),
            'sandbox': ('FileAccess', 'Decision', 'FileSandbox'),
            'tools': ('FileTool', 'FileTools'),
        },
    )
