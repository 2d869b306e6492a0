"""What was decided and what came of it, written where it cannot be changed unnoticed."""

from .chain import Finding, Head, verify, verify_text
from .jsonl import JsonlAuditSink, load_key

__all__ = ('Finding', 'Head', 'JsonlAuditSink', 'load_key', 'verify', 'verify_text')
