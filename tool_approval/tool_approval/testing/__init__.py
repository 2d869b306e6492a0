"""Provide fake UIs for tests, and test suites for implementations of the protocols."""

from .composition import check_composition
from .conformance import check_audit_sink, check_inbox_store, check_store, check_ui
from .uis import RecordingUI, ScriptedUI, approve_all, deny_all

__all__ = (
    'RecordingUI',
    'ScriptedUI',
    'approve_all',
    'check_audit_sink',
    'check_composition',
    'check_inbox_store',
    'check_store',
    'check_ui',
    'deny_all',
)
