"""Store `always` approvals."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .file_store import FileApprovalStore
    from .private_file import default_path

__all__ = ('FileApprovalStore', 'default_path')

if not TYPE_CHECKING:  # pragma: no branch - type checkers must report names that are not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'file_store': ('FileApprovalStore',),
            'private_file': ('default_path',),
        },
    )
