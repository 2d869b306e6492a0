"""Write decisions and outcomes to a log, and detect later changes to the log."""

from .chain import Finding, Head, verify, verify_text
from .jsonl import JsonlAuditSink, load_key

__all__ = ('Finding', 'Head', 'JsonlAuditSink', 'load_key', 'verify', 'verify_text')
