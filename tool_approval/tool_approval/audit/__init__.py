"""Write decisions and outcomes to a log in which changes are detected."""

from .chain import Finding, Head, verify, verify_text
from .jsonl import JsonlAuditSink, load_key

__all__ = ('Finding', 'Head', 'JsonlAuditSink', 'load_key', 'verify', 'verify_text')
