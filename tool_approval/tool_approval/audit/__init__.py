"""Write what happens to calls to a log, read the log, and detect later changes to it."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .chain import Finding, Head, verify, verify_text
    from .jsonl import JsonlAuditSink, load_key
    from .reading import read_entries
    from .trace import agentack_events

__all__ = (
    'Finding',
    'Head',
    'JsonlAuditSink',
    'agentack_events',
    'load_key',
    'read_entries',
    'verify',
    'verify_text',
)

if not TYPE_CHECKING:  # pragma: no branch - type checkers must report names that are not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'chain': ('Finding', 'Head', 'verify', 'verify_text'),
            'jsonl': ('JsonlAuditSink', 'load_key'),
            'reading': ('read_entries',),
            'trace': ('agentack_events',),
        },
    )
