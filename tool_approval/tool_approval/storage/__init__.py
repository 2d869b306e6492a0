"""Where approvals are kept that hold `always`."""

from typing import TYPE_CHECKING

from tool_approval.core.lazy import lazy_exports

if TYPE_CHECKING:
    from .file_store import FileApprovalStore
    from .location import default_path

__all__ = ('FileApprovalStore', 'default_path')

if not TYPE_CHECKING:  # pragma: no branch - for a type checker, a name that is not above is a mistake
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'file_store': ('FileApprovalStore',),
            'location': ('default_path',),
        },
    )
