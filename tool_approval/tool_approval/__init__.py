"""Human approval for the tool calls of AI agents: rules, questions, remembered approvals and an audit log."""

from typing import TYPE_CHECKING

from .core import lazy_exports

if TYPE_CHECKING:
    from .approvals import Approvals
    from .core.bounds import Bounds, Left
    from .core.canonical import canonical_json, digest, fingerprint
    from .core.conditions import Condition
    from .core.config import PolicyConfig, RuleCase, ToolRule
    from .core.controller import ApprovalController
    from .core.count import Count
    from .core.decision import ApprovalDecision, ApprovalMode
    from .core.errors import (
        ApprovalBlocked,
        ApprovalConfigError,
        ApprovalDenied,
        ApprovalError,
        ApprovalRefused,
        AuditError,
        ExecutionNotRepeated,
        MissingExtraError,
        NotCanonicalError,
        StoreError,
    )
    from .core.escalating import Escalating
    from .core.execute import execute_tool
    from .core.first_of import FirstOf, answered_elsewhere
    from .core.memory import ApprovalMemory
    from .core.offers import Offer
    from .core.policy import ApprovalPolicy
    from .core.presentation import ApprovalPresentation, truncate_for_display
    from .core.protocols import ApprovalAware, ApprovalStore, ApprovalUI, AuditSink, Presenter, RememberedApproval
    from .core.redact import Redactor
    from .core.request import ApprovalContext, ApprovalRequest, LineageEntry, RememberOption, simple_approval_request
    from .core.reviewed import CallToReview, Opinion, Reviewed, Reviewer
    from .core.tool_checks import CurrentCall, current_call, requires_approval
    from .core.verdict import ApprovalResult, make_request

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
    'Approvals',
    'AuditError',
    'AuditSink',
    'Bounds',
    'CallToReview',
    'Condition',
    'Count',
    'CurrentCall',
    'Escalating',
    'ExecutionNotRepeated',
    'FirstOf',
    'Left',
    'LineageEntry',
    'MissingExtraError',
    'NotCanonicalError',
    'Offer',
    'Opinion',
    'PolicyConfig',
    'Presenter',
    'Redactor',
    'RememberOption',
    'RememberedApproval',
    'Reviewed',
    'Reviewer',
    'RuleCase',
    'StoreError',
    'ToolRule',
    '__version__',
    'answered_elsewhere',
    'canonical_json',
    'current_call',
    'digest',
    'execute_tool',
    'fingerprint',
    'make_request',
    'requires_approval',
    'simple_approval_request',
    'truncate_for_display',
)

if not TYPE_CHECKING:  # pragma: no branch - type checkers must report names that are not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'approvals': ('Approvals',),
            'core.bounds': ('Bounds', 'Left'),
            'core.canonical': ('canonical_json', 'digest', 'fingerprint'),
            'core.conditions': ('Condition',),
            'core.config': ('PolicyConfig', 'RuleCase', 'ToolRule'),
            'core.controller': ('ApprovalController',),
            'core.count': ('Count',),
            'core.escalating': ('Escalating',),
            'core.decision': ('ApprovalDecision', 'ApprovalMode'),
            'core.tool_checks': ('CurrentCall', 'current_call', 'requires_approval'),
            'core.errors': (
                'ApprovalBlocked',
                'ApprovalConfigError',
                'ApprovalDenied',
                'ApprovalError',
                'ApprovalRefused',
                'AuditError',
                'ExecutionNotRepeated',
                'MissingExtraError',
                'NotCanonicalError',
                'StoreError',
            ),
            'core.execute': ('execute_tool',),
            'core.first_of': ('FirstOf', 'answered_elsewhere'),
            'core.memory': ('ApprovalMemory',),
            'core.offers': ('Offer',),
            'core.policy': ('ApprovalPolicy',),
            'core.presentation': ('ApprovalPresentation', 'truncate_for_display'),
            'core.protocols': (
                'ApprovalAware',
                'ApprovalStore',
                'ApprovalUI',
                'AuditSink',
                'Presenter',
                'RememberedApproval',
            ),
            'core.redact': ('Redactor',),
            'core.request': (
                'ApprovalContext',
                'ApprovalRequest',
                'LineageEntry',
                'RememberOption',
                'simple_approval_request',
            ),
            'core.reviewed': ('CallToReview', 'Opinion', 'Reviewed', 'Reviewer'),
            'core.verdict': ('ApprovalResult', 'make_request'),
        },
    )
