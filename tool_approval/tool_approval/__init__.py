"""Human approval for the tool calls of AI agents: who is asked, who decides, what is remembered, what is written."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    'ApprovalAware': 'protocols',
    'ApprovalBlocked': 'errors',
    'ApprovalConfigError': 'errors',
    'ApprovalContext': 'request',
    'ApprovalController': 'controller',
    'ApprovalDecision': 'decision',
    'ApprovalDenied': 'errors',
    'ApprovalError': 'errors',
    'ApprovalMemory': 'memory',
    'ApprovalMode': 'decision',
    'ApprovalPolicy': 'policy',
    'ApprovalPresentation': 'presentation',
    'ApprovalRefused': 'errors',
    'ApprovalRequest': 'request',
    'ApprovalResult': 'verdict',
    'ApprovalStore': 'protocols',
    'ApprovalUI': 'protocols',
    'AuditError': 'errors',
    'AuditSink': 'protocols',
    'LineageEntry': 'request',
    'MissingExtraError': 'errors',
    'NotCanonicalError': 'errors',
    'PolicyConfig': 'config',
    'Presenter': 'protocols',
    'Redactor': 'redact',
    'RememberOption': 'request',
    'RememberedApproval': 'protocols',
    'StoreError': 'errors',
    'ToolRule': 'config',
    'canonical_json': 'canonical',
    'digest': 'canonical',
    'execute_tool': 'execute',
    'fingerprint': 'canonical',
    'make_request': 'verdict',
    'requires_approval': 'decorators',
    'simple_approval_request': 'request',
    'truncate_for_display': 'presentation',
}
"""Where each name is: imported when it is asked for, so that a program waits for no more than it uses."""

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = globals()[name] = getattr(import_module(f'.{_HOMES[name]}', __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
