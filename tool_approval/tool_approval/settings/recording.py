"""Which settings a decision was made under, in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tool_approval.core.protocols import AuditSink

from .files import LoadedSettings


class SettingsAudit:
    """An audit sink whose first line says which settings were loaded, and whose every line names their digest."""

    def __init__(self, sink: AuditSink, loaded: LoadedSettings) -> None:
        """Write down what was loaded.

        Args:
            sink: Where lines go.
            loaded: The settings that decisions are made under from now on.

        Raises:
            AuditError: It cannot be written.
        """
        self._sink = sink
        self._digest = loaded.digest
        sink.record(
            {
                'event': 'settings',
                'source': None if loaded.source is None else _writable(str(loaded.source)),
                'settings_digest': loaded.digest,
                'trusted': loaded.trusted,
                'why_untrusted': None if loaded.why_untrusted is None else _writable(loaded.why_untrusted),
            }
        )

    def record(self, entry: Mapping[str, Any]) -> None:
        """See `AuditSink`."""
        self._sink.record({**entry, 'settings_digest': self._digest})


def _writable(text: str) -> str:
    # Half characters, as in the name of a file, cannot be written.
    return text.encode(errors='replace').decode()
