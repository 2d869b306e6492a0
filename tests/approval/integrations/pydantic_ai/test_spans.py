"""Spans of calls, with the SDK of OpenTelemetry, and with logfire and a collector on loopback."""

import asyncio

import pydantic_ai
import pytest

pytest.importorskip('opentelemetry.sdk', reason='the development environment has the SDK of OpenTelemetry')

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import DeferredToolRequests
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, WrapperToolset
from tool_approval.audit.otel import OTelSink
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import ScriptedUI

from tests.approval.collector import collecting
from tests.approval.parts import KEY, ListSink
from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalDecision

PAY = call('pay', '1', amount=10)


@pytest.fixture
def telemetry():
    """A tracer provider, and the spans that it exports."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def operations(exporter):
    """The operation of each span about a tool, with its name. Both have to be of one kind."""
    spans = [span for span in exporter.get_finished_spans() if 'gen_ai.tool.name' in (span.attributes or {})]
    for span in spans:
        assert span.name == f'{span.attributes["gen_ai.operation.name"]} {span.attributes["gen_ai.tool.name"]}'
    return [span.name for span in spans]


def payer(provider, *responses, **agent):
    made = pydantic_ai.Agent(scripted(*(responses or [[PAY]]), 'done'), name='bot', **agent)
    made.instrument = InstrumentationSettings(tracer_provider=provider)

    @made.tool_plain
    def pay(amount: int) -> str:
        return f'paid {amount}'

    return made


ASKED, RAN, REFUSED, ANSWERED = 'ask_about_tool pay', 'execute_tool pay', 'refuse_tool pay', 'answer_tool pay'


@pytest.mark.parametrize(
    ('rule', 'options', 'answers', 'expected'),
    [
        ('required', {}, [True], [ASKED, RAN]),
        ('required', {}, ['no'], [ASKED]),
        ('required', {}, [ApprovalDecision(approved=True, override_args={'amount': 5})], [ASKED, RAN]),
        ('required', {}, [ApprovalDecision(approved=False, response='paid by hand')], [ASKED, ANSWERED]),
        ('required', {'mode': 'strict'}, [], [ASKED]),
        ('none', {}, [], [RAN]),
        ('blocked', {}, [], [REFUSED]),
    ],
    ids=['approved', 'denied', 'edited', 'answered', 'strict', 'unasked', 'blocked'],
)
@pytest.mark.parametrize('streams', [False, True])
def test_a_call_that_runs_has_one_span_and_one_that_does_not_run_has_none(
    telemetry, streams, rule, options, answers, expected
):
    provider, exporter = telemetry
    rules = {'pay': {'approval': rule, 'answers': ['approve', 'edit', 'respond']}}
    approvals = Approvals(rules, ui=ScriptedUI(answers), **options)
    agent = payer(provider, capabilities=[approvals])

    async def run():
        if not streams:
            await agent.run('go')
            return
        async with agent.run_stream('go') as result:
            await result.get_output()

    asyncio.run(run())

    assert operations(exporter) == expected


def test_each_call_of_a_response_has_its_spans(telemetry):
    provider, exporter = telemetry
    agent = payer(
        provider,
        [PAY, call('pay', '2', amount=20), call('pay', '3', amount=30)],
        capabilities=[Approvals(ui=ScriptedUI([True, 'no', True]))],
    )

    agent.run_sync('go')

    assert sorted(operations(exporter)) == [ASKED, ASKED, ASKED, RAN, RAN]
    ran = [each for each in exporter.get_finished_spans() if each.name == RAN]
    assert [each.attributes['gen_ai.tool.call.id'] for each in ran] == ['1', '3']


def test_a_call_that_was_resumed_has_one_span(telemetry):
    provider, exporter = telemetry
    approvals = Approvals(key=KEY)
    agent = payer(provider, output_type=[str, DeferredToolRequests], capabilities=[approvals])
    answering = Approvals(ui=ScriptedUI([True]), key=KEY)

    stopped = agent.run_sync('go')
    results = answering.answer_sync(stopped.output)
    agent.run_sync(message_history=stopped.all_messages(), deferred_tool_results=results)

    assert operations(exporter) == [ASKED, RAN]


def test_an_external_call_has_the_span_of_its_function(telemetry):
    provider, exporter = telemetry
    tracer = provider.get_tracer('app')

    def fetch(path: str) -> str:
        tracer.start_span('inside').end()
        return f'content of {path}'

    schema = {'type': 'object', 'properties': {'path': {'type': 'string'}}}
    approvals = Approvals({'fetch': {'approval': 'required'}}, ui=ScriptedUI([True, 'no']), external={'fetch': fetch})
    agent = pydantic_ai.Agent(
        scripted([call('fetch', '1', path='a'), call('fetch', '2', path='b')], 'done'),
        toolsets=[ExternalToolset([ToolDefinition(name='fetch', parameters_json_schema=schema)])],
        capabilities=[approvals],
    )
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    result = agent.run_sync('go')

    assert returns(result.all_messages())['1'][0] == 'content of a'
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert operations(exporter).count('execute_tool fetch') == 1
    assert spans['inside'].parent.span_id == spans['execute_tool fetch'].context.span_id


def test_without_instrumentation_the_span_of_the_program_keeps_its_name(telemetry):
    provider, exporter = telemetry
    agent = payer(provider, capabilities=[Approvals(ui=ScriptedUI(['no']))])
    agent.instrument = False

    with provider.get_tracer('app').start_as_current_span('work', attributes={'gen_ai.tool.name': 'pay'}):
        agent.run_sync('go')

    assert [span.name for span in exporter.get_finished_spans()] == ['work']


def test_a_call_within_the_call_of_another_tool_leaves_its_span(telemetry):
    provider, exporter = telemetry

    class Calling(WrapperToolset):
        async def call_tool(self, name, tool_args, ctx, tool):
            if name != 'outer':
                return await super().call_tool(name, tool_args, ctx, tool)
            try:
                return await super().call_tool('pay', {'amount': 1}, ctx, (await self.get_tools(ctx))['pay'])
            except ToolFailed:
                return 'the payment was refused'

    def outer() -> str: ...

    def pay(amount: int) -> str: ...

    class Wrapping(AbstractCapability):
        def get_wrapper_toolset(self, toolset):
            return Calling(toolset)

    approvals = Approvals({'outer': {'approval': 'none'}, 'pay': {'approval': 'blocked'}})
    agent = pydantic_ai.Agent(
        scripted([call('outer', '1')], 'done'),
        toolsets=[FunctionToolset([outer, pay])],
        capabilities=[approvals, Wrapping()],
    )
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    result = agent.run_sync('go')

    assert returns(result.all_messages())['1'][0] == 'the payment was refused'
    assert operations(exporter) == ['execute_tool outer']


def test_logfire_sends_one_span_of_a_call_to_a_collector(tmp_path, monkeypatch):
    logfire = pytest.importorskip('logfire', reason='logfire: not in the development environment')
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
        agent = payer(
            None,
            [PAY, call('pay', '2', amount=20)],
            capabilities=[Approvals(ui=ScriptedUI([True, 'no']), log=sink)],
        )
        local.instrument_pydantic_ai(agent)

        agent.run_sync('go')
        local.force_flush()

    spans = [span for span in collector.spans() if 'pay' in span.name]
    assert sorted(span.name for span in spans) == [ASKED, ASKED, RAN]
    [ran] = [span for span in spans if span.name == RAN]
    assert [event.name for event in ran.events] == ['tool_approval.outcome']
    messages = [each.value.string_value for span in spans for each in span.attributes if each.key == 'logfire.msg']
    assert sorted(messages) == [ASKED, ASKED, 'running tool: pay']
