"""Offer the exports of `pydantic-ai-blocking-approval` 0.7 to 0.9 under the same names.

To migrate existing code, import the names from here instead of `pydantic_ai_blocking_approval`. The rest of the code
stays the same. If the code cannot be changed, call `install_alias()` before the code is imported.
"""

from .alias import AliasError, install_alias, uninstall_alias
from .controller import ApprovalController
from .memory import ApprovalMemory
from .toolset import ApprovalToolset
from .types import (
    ApprovalBlocked,
    ApprovalCallback,
    ApprovalConfig,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalError,
    ApprovalRequest,
    ApprovalResult,
    ApprovalScope,
    SupportsApprovalDescription,
    SupportsNeedsApproval,
    needs_approval_from_config,
)

__version__ = '0.9.0'
"""Newest release of `pydantic-ai-blocking-approval` that this package can replace."""

__all__ = (
    'AliasError',
    'ApprovalBlocked',
    'ApprovalCallback',
    'ApprovalConfig',
    'ApprovalController',
    'ApprovalDecision',
    'ApprovalDenied',
    'ApprovalError',
    'ApprovalMemory',
    'ApprovalRequest',
    'ApprovalResult',
    'ApprovalScope',
    'ApprovalToolset',
    'SupportsApprovalDescription',
    'SupportsNeedsApproval',
    '__version__',
    'install_alias',
    'needs_approval_from_config',
    'uninstall_alias',
)
