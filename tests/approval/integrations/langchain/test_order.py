"""Where the middleware stands among others that drop or change calls, and a UI that pauses the graph."""

from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tool_approval.core.gate import CHANGED
from tool_approval.integrations.langchain import ApprovalToolWrapper
from tool_approval.testing import RecordingUI

from tests.approval.parts import ListSink
from tool_approval import ApprovalController, ApprovalDecision

from .scripted import call, results, scripted

READS = [call('read', str(number), path=str(number)) for number in range(3)]
CONFIG = {'configurable': {'thread_id': 't'}}
DROPPED = 'Tool call limit exceeded. Do not make additional tool calls.'


@pytest.mark.parametrize('place', ['before', 'after'])
@pytest.mark.parametrize('behaviour', ['continue', 'error', 'end'])
def test_nobody_is_asked_about_calls_that_a_limit_drops(run: Any, files: Any, place: str, behaviour: Any):
    ui = RecordingUI(True)
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior=behaviour)
    agent = run.agent(scripted(READS, 'done'), files.tools(), ApprovalController(ui=ui), **{place: [limit]})

    if behaviour == 'error':
        with pytest.raises(Exception, match='limit'):
            run.invoke(agent)
    else:
        run.invoke(agent)

    assert [request.args['path'] for request in ui.requests] == (['0'] if behaviour == 'continue' else [])
    assert files.ran == (['read 0'] if behaviour == 'continue' else [])


def test_behind_another_hook_each_call_is_asked_about_when_it_is_about_to_run(run: Any, files: Any):
    ui = RecordingUI(lambda request: request.args['path'] != '1')
    limit = ToolCallLimitMiddleware(run_limit=3)

    told = run(scripted(READS, 'done'), files.tools(), ApprovalController(ui=ui), before=[limit])

    assert [request.metadata['batch_size'] for request in ui.requests] == [1, 1, 1]
    assert sorted(files.ran) == ['read 0', 'read 2']
    assert sorted(status for _, _, status in told) == ['error', 'success', 'success']


def test_behind_another_hook_calls_that_share_an_id_are_refused(run: Any, files: Any):
    ui = RecordingUI(True)
    model = scripted([call('read', '1', path='a'), call('write', '1', path='b')], 'done')

    told = run(model, files.tools(), ApprovalController(ui=ui), before=[ToolCallLimitMiddleware(run_limit=9)])

    assert ui.requests == []
    assert files.ran == []
    assert {content for _, content, _ in told} == {
        'Several calls of this response have the same id, so none of them was run.'
    }


EDIT = {'type': 'edit', 'edited_action': {'name': 'read', 'args': {'path': 'b'}}}
NOTICE = 'Do not re-issue'


@pytest.mark.parametrize('mode', ['batched', 'per_call'])
@pytest.mark.parametrize(
    ('place', 'answer', 'ran', 'asked'),
    [
        pytest.param('before', True, ['read b'], ['b'], id='before ours, approved'),
        pytest.param('before', False, [], ['b'], id='before ours, denied'),
        pytest.param('after', True, [], ['a'], id='after ours, approved'),
        pytest.param('after', False, [], ['a'], id='after ours, denied'),
    ],
)
def test_the_hosts_own_middleware_reports_an_edit_only_if_it_ran(
    run: Any, files: Any, mode: Any, place: str, answer: bool, ran: list[str], asked: list[str]
):
    ui = RecordingUI(answer)
    host = HumanInTheLoopMiddleware({'read': True}, interrupt_mode=mode)
    model = scripted([call('read', '1', path='a')], 'done')
    agent = run.agent(model, files.tools(), ApprovalController(ui=ui), checkpointer=InMemorySaver(), **{place: [host]})

    paused = run.output(agent, CONFIG)
    if '__interrupt__' in paused:
        resume: Any = EDIT if mode == 'per_call' else {'decisions': [EDIT]}
        messages = run.invoke(agent, CONFIG, Command(resume=resume))
    else:
        messages = paused['messages']

    [(_, content, status)] = results(messages)
    assert files.ran == ran
    assert [request.args['path'] for request in ui.requests] == asked
    assert (NOTICE in str(content)) is (status == 'success') is bool(ran)
    assert ran or content == (CHANGED if answer else model.told[-1][-1].content)


class PausingUI:
    """A UI that asks through the graph's own interrupts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
        self.asked.append(request.args['path'])
        return ApprovalDecision(approved=interrupt({'may it run?': request.args['path']}))


class BlockingPausingUI(PausingUI):
    """The same, with a method that may block."""

    def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
        return ApprovalDecision(approved=interrupt({'may it run?': request.args['path']}))


@pytest.mark.parametrize('ui_class', [PausingUI, BlockingPausingUI])
@pytest.mark.parametrize('answer', [True, False])
@pytest.mark.parametrize('arrangement', ['middleware', 'middleware behind a hook', 'wrapper'])
def test_a_ui_that_pauses_the_graph_denies_nothing(
    run: Any, files: Any, ui_class: type[PausingUI], answer: bool, arrangement: str
):
    audit, saver = ListSink(), InMemorySaver()
    controller = ApprovalController(ui=ui_class(), audit=audit)
    model = scripted([call('read', '1', path='a')], 'done')
    if arrangement == 'wrapper':
        tools = [ApprovalToolWrapper(files.tools()[0], controller)]
        agent = run.agent(model, tools, ApprovalController('approve_all'), checkpointer=saver)
    else:
        before = [ToolCallLimitMiddleware(run_limit=9)] if arrangement.endswith('hook') else []
        agent = run.agent(model, files.tools(), controller, checkpointer=saver, before=before)

    paused = run.output(agent, CONFIG)
    logged_before = list(audit.entries)
    told = results(run.invoke(agent, CONFIG, Command(resume=answer)))

    assert [each.value for each in paused['__interrupt__']] == [{'may it run?': 'a'}]
    assert logged_before == []
    assert files.ran == (['read a'] if answer else [])
    assert told[0][2] == ('success' if answer else 'error')
    assert [entry['approved'] for entry in audit.decisions()] == [answer]
