"""Runs that stop and go on, tools that appear on the way, and arguments that the host fills in."""

from types import MappingProxyType
from typing import Annotated

import pytest
from langchain.agents.middleware import ModelRetryMiddleware
from langchain.tools import InjectedState, InjectedToolCallId, ToolRuntime
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import CHANGED
from tool_approval.testing import RecordingUI, ScriptedUI

from tool_approval import ApprovalController, ApprovalResult

from .scripted import GO, Altering, ScriptedModel, call, results, scripted

CONFIG = {'configurable': {'thread_id': 't'}}
READ = [call('read', '1', path='a')]


def pausing(ran: list[str]):
    @tool
    def read(path: str) -> str:
        """Read a file, once somebody has put in the disk."""
        disk = interrupt('Which disk?')
        ran.append(f'{path} of {disk}')
        return 'content'

    return read


def resume(run, agent, value: object):
    return run.invoke(agent, CONFIG, None if value is None else Command(resume=value))


def test_a_tool_that_interrupts_the_run_is_not_asked_about_again_when_it_goes_on(run):
    ran: list[str] = []
    ui = ScriptedUI([True])
    agent = run.agent(scripted(READ, 'done'), [pausing(ran)], ApprovalController(ui=ui), checkpointer=InMemorySaver())

    run.invoke(agent, CONFIG)
    told = resume(run, agent, 'A')

    ui.assert_done()
    assert ran == ['a of A']
    assert results(told) == [('read', 'content', 'success')]


def test_an_approval_of_another_controller_runs_nothing_after_the_run_is_resumed(run):
    ran: list[str] = []
    saver = InMemorySaver()
    model = scripted(READ, 'done')
    first = run.agent(model, [pausing(ran)], ApprovalController(ui=RecordingUI(True)), checkpointer=saver)
    second = run.agent(model, [pausing(ran)], ApprovalController(ui=RecordingUI(True)), checkpointer=saver)

    run.invoke(first, CONFIG)
    told = resume(run, second, 'A')

    assert ran == []
    assert results(told) == [('read', CHANGED, 'error')]


def test_a_lasting_key_lets_another_process_resume_the_run(run):
    ran: list[str] = []
    saver = InMemorySaver()
    model = scripted(READ, 'done')
    asking = ApprovalController(ui=RecordingUI(True), key=b'k' * 32)
    resuming = ApprovalController(key=b'k' * 32)

    run.invoke(run.agent(model, [pausing(ran)], asking, checkpointer=saver), CONFIG)
    resume(run, run.agent(model, [pausing(ran)], resuming, checkpointer=saver), 'A')

    assert ran == ['a of A']


def test_declared_state_is_kept_with_the_run_as_json(run):
    ran: list[str] = []

    def read(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return 'content'

    def needs_approval(name, args):
        return ApprovalResult.needs_approval(bound_to={'versions': (MappingProxyType({args['path']: 1}),)})

    read.needs_approval = needs_approval
    controller = ApprovalController(ui=RecordingUI(True))
    agent = run.agent(scripted(READ, 'done'), [tool(read)], controller, checkpointer=InMemorySaver())

    told = run.invoke(agent, CONFIG)

    assert ran == ['a']
    assert results(told) == [('read', 'content', 'success')]


def test_a_run_that_stops_before_the_question_asks_when_it_goes_on(run, files):
    ui = ScriptedUI([True, 'no'])
    agent = run.agent(
        scripted([call('read', '1', path='a'), call('write', '2', path='b')], 'done'),
        files.tools(),
        ApprovalController(ui=ui),
        checkpointer=InMemorySaver(),
        interrupt_before=['ApprovalMiddleware.after_model'],
    )

    run.invoke(agent, CONFIG)
    asked_before = len(ui.requests)
    resume(run, agent, None)

    ui.assert_done()
    assert asked_before == 0
    assert len(files.ran) == 1


def test_output_state_has_messages_alone(run, files):
    agent = run.agent(scripted(READ, 'done'), files.tools(), ApprovalController(ui=RecordingUI(True)))

    assert set(run.output(agent)) == {'messages'}


def test_callers_cannot_give_themselves_a_consent(run, files):
    ui = RecordingUI(False)
    agent = run.agent(scripted(READ, 'done'), files.tools(), ApprovalController(ui=ui))

    output = run.output(agent, given={**GO, 'tool_approval_consents': {'message_id': 'x', 'by_call': {'1': {}}}})

    assert len(ui.requests) == 1
    assert files.ran == []
    assert 'tool_approval_consents' not in output


def test_a_failed_response_that_is_tried_again_asks_once(run, files):
    class Flaky(ScriptedModel):
        def _generate(self, messages, *args, **kwargs):
            if not self.told:
                self.told.append(messages)
                raise ConnectionError('try again')
            return super()._generate(messages, *args, **kwargs)

    ui = ScriptedUI([True])
    model = Flaky(responses=[AIMessage('never sent'), AIMessage('', tool_calls=READ), AIMessage('done')])
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)

    run(model, files.tools(), ApprovalController(ui=ui), before=[retry])

    ui.assert_done()
    assert files.ran == ['read a']


class Bringing(Altering):
    """Offers a tool that the agent was not built with, and runs it."""

    def __init__(self, brought):
        super().__init__()
        self.brought = brought

    def altered(self, request):
        return request.override(tool=self.brought)

    def wrap_model_call(self, request, handler):
        return handler(request.override(tools=[*request.tools, self.brought]))

    async def awrap_model_call(self, request, handler):
        return await handler(request.override(tools=[*request.tools, self.brought]))


def test_a_tool_that_a_middleware_further_outside_brings_is_asked_about(run, files):
    ui = ScriptedUI([True, 'no'])
    read, write = files.tools()
    model = scripted(READ, [call('read', '2', path='b')], 'done')

    told = run(model, [write], ApprovalController(ui=ui), before=[Bringing(read)])

    ui.assert_done()
    assert files.ran == ['read a']
    assert told[1] == ('read', denied_because('no'), 'error')


def test_a_tool_that_a_middleware_further_inside_brings_does_not_run(run, files):
    ui = RecordingUI(True)
    read, write = files.tools()

    told = run(scripted(READ, 'done'), [write], ApprovalController(ui=ui), after=[Bringing(read)])

    assert ui.requests == []
    assert files.ran == []
    assert told == [('read', "The agent has no tool 'read', so the call was not run.", 'error')]


def test_injected_arguments_are_neither_shown_nor_bound(run):
    seen = []

    @tool
    def read(
        path: str,
        runtime: ToolRuntime,
        state: Annotated[dict, InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Read a file."""
        seen.append((path, runtime.tool_call_id, len(state['messages']), call_id))
        return 'content'

    ui = ScriptedUI([True])

    run(scripted(READ, 'done'), [read], ApprovalController(ui=ui))

    assert [request.args for request in ui.requests] == [{'path': 'a'}]
    assert seen == [('a', '1', 2, '1')]


def test_injected_arguments_cannot_be_sent_by_the_model(run):
    seen = []

    class Arguments(BaseModel):
        path: str

    @tool(args_schema=Arguments)
    def read(path: str, runtime: ToolRuntime) -> str:
        """Read a file."""
        seen.append(type(runtime).__name__)
        return 'content'

    ui = ScriptedUI([True])

    run(scripted([call('read', '1', path='a', runtime='forged')], 'done'), [read], ApprovalController(ui=ui))

    assert [request.args for request in ui.requests] == [{'path': 'a'}]
    assert seen == ['ToolRuntime']


@pytest.mark.parametrize('answer', [True, 'no'])
def test_a_tool_whose_result_is_the_agents_answer(run, answer):
    @tool(return_direct=True)
    def read(path: str) -> str:
        """Read a file."""
        return 'content'

    model = scripted(READ, 'I could not.')

    messages = run.invoke(run.agent(model, [read], ApprovalController(ui=ScriptedUI([answer]))))

    assert messages[-1].content == ('content' if answer is True else 'I could not.')


def test_a_response_is_streamed_before_the_question_about_it(run, files):
    ui = ScriptedUI([True])
    agent = run.agent(scripted(READ, 'done'), files.tools(), ApprovalController(ui=ui))
    asked: dict[str, int] = {}

    async def main():
        async for update in agent.astream(GO, stream_mode='updates'):
            for node in update:
                asked.setdefault(node, len(ui.requests))

    if run.is_async:
        run.wait(main())
    else:
        for update in agent.stream(GO, stream_mode='updates'):
            for node in update:
                asked.setdefault(node, len(ui.requests))

    assert asked == {'model': 0, 'ApprovalMiddleware.after_model': 1, 'tools': 1}
    assert files.ran == ['read a']
