"""Where approvals are kept that hold `always`."""

from .file_store import FileApprovalStore, default_path

__all__ = ('FileApprovalStore', 'default_path')
