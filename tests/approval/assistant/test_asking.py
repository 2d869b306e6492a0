"""The UI of a conversation."""

import asyncio

import pytest
from pydantic_ai.messages import FunctionToolCallEvent, ToolCallPart
from pydantic_ai_deferred import Agent
from tool_approval.assistant import asking
from tool_approval.assistant.asking import ConversationUI
from tool_approval.assistant.conversation import STOPPED, Conversation
from tool_approval.assistant.events import TurnView
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.ui.terminal import TerminalUI
from tool_approval.ui.terminal.tty import NoTerminal

from tests.approval.parts import ListSink, logged
from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalRequest

from .shown import shown_screen

REQUEST = ApprovalRequest(tool_name='act', tool_call_id='1', description='Act')


class Inner:
    """Writes on the screen while it asks, as a tool that runs beside the question does."""

    def __init__(self, screen, *, stops=False):
        self._screen = screen
        self._stops = stops

    async def choose(self, request, *, mode):
        [decision] = await self.choose_group([request], mode=mode)
        return decision

    async def choose_group(self, requests, *, mode):
        self._screen.write('beside\n')
        self._screen.write_now('Question?\n')
        if self._stops:
            raise KeyboardInterrupt
        return [ApprovalDecision(approved=True)] * len(requests)


class Plain:
    """A UI whose methods are plain functions."""

    def choose(self, request, *, mode):
        return ApprovalDecision(approved=False)


def made(*, stops=False):
    view = TurnView(shown_screen())
    return ConversationUI(Inner(view.screen, stops=stops), view), view


def test_text_written_during_a_question_follows_it():
    ui, view = made()

    decision = asyncio.run(ui.choose(REQUEST, mode='interactive'))

    assert decision.approved
    assert view.screen.shown == 'Question?\nbeside\n'


def test_a_call_that_was_asked_about_is_not_shown_again():
    ui, view = made()
    view.show(FunctionToolCallEvent(part=ToolCallPart('act', {}, tool_call_id='1')))

    asyncio.run(ui.choose(REQUEST, mode='interactive'))
    view.end()

    assert '→' not in view.screen.shown


def test_groups_are_asked_about_together():
    ui, view = made()

    decisions = asyncio.run(ui.choose_group([REQUEST, ApprovalRequest(tool_name='act')], mode='interactive'))

    assert [decision.approved for decision in decisions] == [True, True]
    assert view.screen.shown.count('Question?') == 1


@pytest.mark.parametrize('groups', [True, False])
def test_calls_between_the_questions_are_named_before_a_person_is_asked(groups):
    ui, view = made()
    ui.groups_responses = groups
    for name, call_id in (('act', '1'), ('look', '2')):
        view.show(FunctionToolCallEvent(part=ToolCallPart(name, {}, tool_call_id=call_id)))

    asyncio.run(ui.choose(REQUEST, mode='interactive'))

    assert ('? act: Act\n  → look {}\nQuestion?' in view.screen.shown) == groups


def test_a_ui_of_plain_functions_is_asked_too():
    ui = ConversationUI(Plain(), TurnView(shown_screen()))

    assert not asyncio.run(ui.choose(REQUEST, mode='interactive')).approved


def test_only_a_person_is_asked_about_all_of_a_response_together():
    assert ConversationUI(TerminalUI(), TurnView(shown_screen())).groups_responses
    assert not made()[0].groups_responses


@pytest.mark.parametrize('count', [1, 2])
def test_stopping_ends_the_turn_when_the_denial_is_written_down(count):
    ui, view = made(stops=True)
    sink = ListSink()
    controller = ApprovalController(ui=ui, audit=sink)
    requests = [ApprovalRequest(tool_name='act', args={'n': n}, group_id='g') for n in range(count)]

    async def main():
        turn = asyncio.create_task(controller.request_approvals([*requests, REQUEST]))
        view.task = turn
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(main())

    assert view.screen.shown == 'Question?\nbeside\n'
    assert [(entry['approved'], entry['note']) for entry in sink.entries] == [
        (False, 'The user stopped the run.')
    ] * count


def test_stopping_outside_a_turn_ends_the_run_that_asks():
    sink = ListSink()
    controller = ApprovalController(ui=made(stops=True)[0], audit=sink)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(controller.request_approval(REQUEST))

    assert [(entry['approved'], entry['note']) for entry in sink.entries] == [(False, 'The user stopped the run.')]


def asks_then_acts(acted):
    """An agent whose first call is asked about, and whose second is not."""
    agent = Agent(scripted([call('guarded', 'q')], [call('free', 'f')], 'done'), name='inner')
    agent.tool_plain(name='guarded', requires_approval=True)(lambda: acted.append('guarded'))
    agent.tool_plain(name='free')(lambda: acted.append('free'))
    return agent


def in_a_coroutine(agent, ended):
    async def delegate() -> str:
        try:
            return (await agent.run('go')).output
        finally:
            for _ in range(100):
                await asyncio.sleep(0)  # what it does to tidy up is not cut short
            ended.append('tidied up')

    return delegate


def in_a_loop_of_its_own(agent, ended):
    def delegate() -> str:
        try:
            return asyncio.run(agent.run('go')).output
        finally:
            ended.append('tidied up')

    return delegate


@pytest.mark.parametrize(
    'levels',
    [
        [in_a_coroutine],
        [in_a_coroutine] * 5,
        [in_a_loop_of_its_own],
        [in_a_coroutine, in_a_loop_of_its_own, in_a_coroutine],
    ],
)
def test_stopping_at_a_question_of_a_nested_agent_stops_the_turn(levels, caplog):
    ui, view = made(stops=True)
    sink = ListSink()
    acted, ended = [], []
    agent = asks_then_acts(acted)
    for level in levels:
        above = Agent(scripted([call('delegate', '1')], 'done'))
        above.tool_plain(name='delegate')(level(agent, ended))
        agent = above
    handler = Approvals(ApprovalController(ui=ui, audit=sink), default='none')
    conversation = Conversation(agent, handler=handler, view=view, memory=ApprovalMemory())

    async def main():
        end = await conversation.take_turn('go')
        # A thread that was left behind ends as well.
        async with asyncio.timeout(60):
            while len(ended) < len(levels):
                await asyncio.sleep(0)
        return end

    assert asyncio.run(main()) == 'stopped'
    assert acted == []
    assert ended == ['tidied up'] * len(levels)
    assert [(entry['approved'], entry['note']) for entry in sink.entries] == [(False, 'The user stopped the run.')]
    assert logged(caplog) == []
    assert conversation.messages[-1].parts[0].content == STOPPED


@pytest.mark.parametrize('has_terminal', [True, False])
def test_inbox_asks_together_with_the_terminal_or_alone(monkeypatch, tmp_path, has_terminal):
    """The terminal is not printed to where there is none: that would say that the call was denied."""

    class NoneHere:
        def __init__(self):
            raise NoTerminal('there is none')

    class Here:
        def close(self):
            pass

    monkeypatch.setattr(asking, 'Terminal', Here if has_terminal else NoneHere)
    made = []
    monkeypatch.setattr(asking, 'FirstOf', lambda *uis: made.extend(type(ui).__name__ for ui in uis))
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        asking.ask_at_terminal_or_in(inbox)(ApprovalMemory(), {})

    assert made == (['TerminalUI', 'InboxUI'] if has_terminal else ['InboxUI'])
