"""Entries as OpenTelemetry gets them, with its own SDK, and with logfire and a collector on loopback."""

import asyncio
import sys

import pytest

pytest.importorskip('opentelemetry.sdk', reason='the development environment has the SDK of OpenTelemetry')

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tool_approval.audit.otel import OTelSink, attributes_of
from tool_approval.testing import ScriptedUI, approve_all

from tests.approval.collector import collecting
from tests.approval.parts import ListSink, decide, noon, request_for
from tool_approval import (
    ApprovalController,
    ApprovalDenied,
    AuditError,
    MissingExtraError,
    execute_tool,
    requires_approval,
)


@pytest.fixture
def telemetry():
    """A tracer provider, and the spans that it exports."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


@requires_approval(exclude_keys=['pin'])
def pay(amount: int, pin: str) -> str:
    return f'paid {amount}'


def attempt(sink, answer):
    controller = ApprovalController(ui=ScriptedUI([answer]), audit=sink, now=noon)
    return asyncio.run(execute_tool(pay, 'pay', {'amount': 1, 'pin': 'hunter22'}, controller, {'run_id': 'r'}))


def test_entries_are_events_of_the_current_span(telemetry):
    (provider, exporter), log = telemetry, ListSink()
    sink = OTelSink(log, tracer_provider=provider)

    with provider.get_tracer('app').start_as_current_span('work'):
        assert attempt(sink, True) == 'paid 1'

    [span] = exporter.get_finished_spans()
    assert [event.name for event in span.events] == [
        'tool_approval.question', 'tool_approval.decision', 'tool_approval.outcome',
    ]  # fmt: skip
    decision = dict(span.events[1].attributes)
    assert decision['gen_ai.tool.name'] == 'pay'
    assert decision['tool_approval.approved'] is True
    assert decision['tool_approval.decided_by'] == ('ui',)
    assert decision['tool_approval.payload'] == '{"amount":1}'
    assert decision['tool_approval.at'] == '2026-03-04T12:00:00+00:00'
    assert 'hunter22' not in str([dict(event.attributes) for event in span.events])
    assert [entry['event'] for entry in log.all] == ['question', 'decision', 'outcome']


def test_without_a_current_span_each_entry_has_its_own(telemetry):
    provider, exporter = telemetry

    with pytest.raises(ApprovalDenied):
        attempt(OTelSink(ListSink(), tracer_provider=provider), 'no')

    assert [(span.name, span.parent) for span in exporter.get_finished_spans()] == [
        ('tool_approval.question', None),
        ('tool_approval.decision', None),
    ]


def test_a_log_that_cannot_be_written_denies_and_nothing_is_reported(telemetry):
    provider, exporter = telemetry

    class Full:
        def record(self, entry):
            raise AuditError('log', 'the disk is full')

    decision = decide(
        ApprovalController(ui=approve_all(), audit=OTelSink(Full(), tracer_provider=provider)), request_for()
    )

    assert not decision.approved
    assert exporter.get_finished_spans() == ()


def test_attributes_have_values_that_opentelemetry_takes():
    entry = {
        'event': 'decision', 'tool_name': 'pay', 'tool_call_id': '1', 'approved': False, 'decided_by': ['ada'],
        'payload': {'b': 1, 'a': [1.5]}, 'lineage': [], 'note': None, 'response': float('nan'), 'mac': 'x',
        'odd': [float('nan')],
    }  # fmt: skip

    found = attributes_of(entry)

    assert str(found.pop('tool_approval.response')) == 'nan'
    assert found == {
        'gen_ai.tool.name': 'pay',
        'gen_ai.tool.call.id': '1',
        'tool_approval.approved': False,
        'tool_approval.decided_by': ['ada'],
        'tool_approval.payload': '{"a":[1.5],"b":1}',
        'tool_approval.lineage': [],
        'tool_approval.odd': 'not JSON: a number is too long or not finite',
    }


def test_a_sink_is_needed():
    with pytest.raises(TypeError, match='an audit sink'):
        OTelSink('audit.jsonl')


def test_the_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'opentelemetry', None)

    with pytest.raises(MissingExtraError, match='opentelemetry-api'):
        OTelSink(ListSink())


def test_logfire_sends_the_entries_to_a_collector(tmp_path, monkeypatch):
    import logfire
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    monkeypatch.chdir(tmp_path)
    with collecting() as collector:
        local = logfire.configure(
            local=True,
            send_to_logfire=False,
            console=False,
            inspect_arguments=False,
            additional_span_processors=[SimpleSpanProcessor(OTLPSpanExporter(endpoint=collector.place))],
        )
        sink = OTelSink(ListSink(), tracer_provider=local.config.get_tracer_provider())

        with local.span('work'):
            attempt(sink, True)
        local.force_flush()

    events = [event for span in collector.spans() if span.name == 'work' for event in span.events]
    assert [event.name for event in events] == [
        'tool_approval.question', 'tool_approval.decision', 'tool_approval.outcome',
    ]  # fmt: skip
    told = {attribute.key: attribute.value.string_value for attribute in events[2].attributes}
    assert (told['gen_ai.tool.name'], told['tool_approval.outcome']) == ('pay', 'executed')
