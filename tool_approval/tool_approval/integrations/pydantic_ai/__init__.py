"""Ask for approval in Pydantic AI: with a handler inside the run, or by stopping and resuming."""

try:
    import pydantic_ai as _host
except ImportError:
    from tool_approval.core.errors import MissingExtraError

    raise MissingExtraError('pydantic_ai', extra='pydantic-ai') from None

from .approvals import Approvals
from .file_toolset import FileToolset
from .guard import ApprovalToolset
from .requests import build_approval_requests
from .shell_toolset import ShellToolset
from .stop_resume import collect_approvals, collect_approvals_sync, run_with_approval, run_with_approval_sync

__all__ = (
    'ApprovalToolset',
    'Approvals',
    'FileToolset',
    'ShellToolset',
    'build_approval_requests',
    'collect_approvals',
    'collect_approvals_sync',
    'run_with_approval',
    'run_with_approval_sync',
)

del _host
