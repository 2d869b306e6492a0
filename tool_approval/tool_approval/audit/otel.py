"""Report the entries of a log to OpenTelemetry, beside the log itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import MissingExtraError, NotCanonicalError, check_methods
from tool_approval.core.protocols import AuditSink

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

_NAMES: Mapping[str, str] = {'tool_name': 'gen_ai.tool.name', 'tool_call_id': 'gen_ai.tool.call.id'}
"""Fields for which OpenTelemetry has names of its own (semantic conventions for generative AI)."""

_LEFT_OUT = frozenset({'event', 'line', 'previous', 'mac'})


class OTelSink:
    """Writes each entry to another sink, and then adds it as an event to the current span.

    The other sink keeps the log: a call does not run if that sink cannot write. Events in
    OpenTelemetry may be lost, as all telemetry. If no span is recorded, the entry gets a span of its own, which has no
    duration.
    """

    def __init__(self, sink: AuditSink, *, tracer_provider: TracerProvider | None = None) -> None:
        """Report to OpenTelemetry.

        Args:
            sink: Sink that keeps the log, such as `JsonlAuditSink`.
            tracer_provider: Provider of the tracer; `None` uses the provider of the process.

        Raises:
            MissingExtraError: The API of OpenTelemetry is not installed.
            TypeError: `sink` is not an audit sink.
        """
        check_methods('sink', sink, "an audit sink such as `JsonlAuditSink('audit.jsonl', key=...)`", 'record')
        try:
            from opentelemetry import trace
        except ImportError:
            raise MissingExtraError('opentelemetry-api', extra='otel') from None
        self._sink = sink
        self._current_span = trace.get_current_span
        self._tracer = trace.get_tracer('tool_approval', tracer_provider=tracer_provider)

    def record(self, entry: Mapping[str, Any]) -> None:
        """Write an entry; see `AuditSink`. The attributes are those of `attributes_of`.

        Raises:
            AuditError: The other sink cannot write the entry. It is then not reported.
        """
        self._sink.record(entry)
        name, attributes = f'tool_approval.{entry.get("event")}', attributes_of(entry)
        span = self._current_span()
        if span.is_recording():
            span.add_event(name, attributes)
        else:
            self._tracer.start_span(name, attributes=attributes).end()


def attributes_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an entry.

    Returns:
        `gen_ai.tool.name`, `gen_ai.tool.call.id`, and `tool_approval.<field>` for each other field that has a value.
        Texts, numbers, booleans and lists of texts are as in the entry; anything else is JSON.
    """
    return {
        _NAMES.get(name, f'tool_approval.{name}'): _attribute(value)
        for name, value in entry.items()
        if name not in _LEFT_OUT and value is not None
    }


def _attribute(value: object) -> bool | int | float | str | Sequence[str]:
    given: Any = value
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in given):
        return list(given)
    try:
        return canonical_json(given)
    except NotCanonicalError as error:
        return f'not JSON: {error.problem}'
