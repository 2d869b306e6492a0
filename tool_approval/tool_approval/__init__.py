"""Human approval for the tool calls of AI agents: who is asked, who decides, what is remembered, what is written."""

from typing import TYPE_CHECKING

from .lazy import lazy_exports

if TYPE_CHECKING:
    from .canonical import canonical_json, digest, fingerprint
    from .config import PolicyConfig, ToolRule
    from .controller import ApprovalController
    from .decision import ApprovalDecision, ApprovalMode
    from .decorators import requires_approval
    from .errors import (
        ApprovalBlocked,
        ApprovalConfigError,
        ApprovalDenied,
        ApprovalError,
        ApprovalRefused,
        AuditError,
        MissingExtraError,
        NotCanonicalError,
        StoreError,
    )
    from .execute import execute_tool
    from .memory import ApprovalMemory
    from .policy import ApprovalPolicy
    from .presentation import ApprovalPresentation, truncate_for_display
    from .protocols import ApprovalAware, ApprovalStore, ApprovalUI, AuditSink, Presenter, RememberedApproval
    from .redact import Redactor
    from .request import ApprovalContext, ApprovalRequest, LineageEntry, RememberOption, simple_approval_request
    from .verdict import ApprovalResult, make_request

__version__ = '0.1.0'

__all__ = (
    'ApprovalAware',
    'ApprovalBlocked',
    'ApprovalConfigError',
    'ApprovalContext',
    'ApprovalController',
    'ApprovalDecision',
    'ApprovalDenied',
    'ApprovalError',
    'ApprovalMemory',
    'ApprovalMode',
    'ApprovalPolicy',
    'ApprovalPresentation',
    'ApprovalRefused',
    'ApprovalRequest',
    'ApprovalResult',
    'ApprovalStore',
    'ApprovalUI',
    'AuditError',
    'AuditSink',
    'LineageEntry',
    'MissingExtraError',
    'NotCanonicalError',
    'PolicyConfig',
    'Presenter',
    'Redactor',
    'RememberOption',
    'RememberedApproval',
    'StoreError',
    'ToolRule',
    '__version__',
    'canonical_json',
    'digest',
    'execute_tool',
    'fingerprint',
    'make_request',
    'requires_approval',
    'simple_approval_request',
    'truncate_for_display',
)

if not TYPE_CHECKING:  # pragma: no branch - for a type checker, a name that is not above is a mistake
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'canonical': ('canonical_json', 'digest', 'fingerprint'),
            'config': ('PolicyConfig', 'ToolRule'),
            'controller': ('ApprovalController',),
            'decision': ('ApprovalDecision', 'ApprovalMode'),
            'decorators': ('requires_approval',),
            'errors': (
                'ApprovalBlocked',
                'ApprovalConfigError',
                'ApprovalDenied',
                'ApprovalError',
                'ApprovalRefused',
                'AuditError',
                'MissingExtraError',
                'NotCanonicalError',
                'StoreError',
            ),
            'execute': ('execute_tool',),
            'memory': ('ApprovalMemory',),
            'policy': ('ApprovalPolicy',),
            'presentation': ('ApprovalPresentation', 'truncate_for_display'),
            'protocols': (
                'ApprovalAware',
                'ApprovalStore',
                'ApprovalUI',
                'AuditSink',
                'Presenter',
                'RememberedApproval',
            ),
            'redact': ('Redactor',),
            'request': (
                'ApprovalContext',
                'ApprovalRequest',
                'LineageEntry',
                'RememberOption',
                'simple_approval_request',
            ),
            'verdict': ('ApprovalResult', 'make_request'),
        },
    )
