"""Write what happens to calls to a log, read the log, and detect later changes to it."""

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
