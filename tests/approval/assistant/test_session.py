"""A session: what a person may say between turns, and how a turn is stopped."""

import asyncio
import os
import signal

import pytest
from pydantic_ai.messages import ToolCallPart
from pydantic_ai_deferred import Agent
from tool_approval.assistant.asking import ConversationUI
from tool_approval.assistant.conversation import (
    EXIT_FAILED,
    EXIT_STOPPED,
    FAILED,
    NO_RESULT,
    REQUESTS,
    Conversation,
    hold_session,
)
from tool_approval.assistant.errors import AssistantError
from tool_approval.assistant.events import TurnView
from tool_approval.assistant.stories.scene import scripted
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.storage import FileApprovalStore

from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalRequest

from .shown import shown_screen


class Stops:
    """A UI at which the person stops the run."""

    async def choose(self, request, *, mode):
        raise KeyboardInterrupt

    async def choose_group(self, requests, *, mode):
        raise KeyboardInterrupt


class Approves:
    """A UI at which the person approves."""

    async def choose(self, request, *, mode):
        return ApprovalDecision(approved=True)

    async def choose_group(self, requests, *, mode):
        return [ApprovalDecision(approved=True)] * len(requests)


class Turns:
    """Where a conversation is kept; it knows how many messages there were, each time that there were more."""

    def __init__(self, turns):
        self._turns = turns

    def save(self, messages):
        if self._turns[-1:] != [len(messages)]:
            self._turns.append(len(messages))

    def discard(self):
        self._turns.append('discarded')


def session(prompts, plan, *, inner=None, agent=None, memory=None, requests=REQUESTS, **options):
    turns, view = [], TurnView(shown_screen())
    ui = ConversationUI(inner or Approves(), view)
    memory = memory or ApprovalMemory()
    controller = ApprovalController(ui=ui, memory=memory)
    conversation = Conversation(
        agent or Agent(),
        handler=Approvals(controller, default='none'),
        view=view,
        memory=memory,
        model=scripted(plan),
        requests=requests,
    )
    status = hold_session(conversation, prompts, **{'saved': Turns(turns), **options})
    return status, view.screen.shown, turns


def with_tool():
    agent = Agent()

    @agent.tool_plain(requires_approval=True)
    def act() -> str:
        return 'acted'

    return agent


def test_each_prompt_is_a_turn():
    status, shown, turns = session(['one', 'two'], lambda results: 'yes')

    assert status == 0
    assert shown == '● yes\n● yes\n'
    assert turns == [2, 4]


@pytest.mark.parametrize('calls', [1, 2])
def test_stopping_at_a_question_stops_the_turn_and_not_the_session(calls):
    steps = iter([[ToolCallPart('act') for _ in range(calls)], 'second'])

    status, shown, _ = session(['one', 'two'], lambda results: next(steps), inner=Stops(), agent=with_tool())

    assert 'Stopped.\n' in shown
    assert shown.rstrip().endswith('second')
    assert status == 0


def test_a_stopped_last_turn_is_the_exit_status():
    status, _, _ = session(['one'], lambda results: [ToolCallPart('act')], inner=Stops(), agent=with_tool())

    assert status == EXIT_STOPPED


def test_approved_call_runs():
    steps = iter([[ToolCallPart('act')], 'done'])

    _, shown, _ = session(['one'], lambda results: next(steps), agent=with_tool())

    assert '│ acted' in shown


def test_ctrl_c_stops_a_tool_and_not_the_program():
    agent = Agent()

    @agent.tool_plain
    async def slow() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    steps = iter([[ToolCallPart('slow')], 'second'])

    status, shown, turns = session(['one', 'two'], lambda results: next(steps), agent=agent)

    assert 'Stopped.\n' in shown
    assert (status, len(turns)) == (0, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ('options', 'tool', 'made', 'advice'),
    [({'requests': 3}, 'again', 3, '--requests N'), ({}, 'nothing', 2, '--retries N')],
)
def test_a_turn_that_ends_by_a_limit_says_how_to_go_on(options, tool, made, advice):
    agent = Agent()

    @agent.tool_plain
    def again() -> str:
        return 'once more'

    said = []

    def plan(results):
        said.append(len(results))
        return 'I went on.' if len(said) > made else [ToolCallPart(tool)]

    status, shown, turns = session(['one', 'Go on'], plan, agent=agent, **options)

    assert advice in shown
    assert 'Send another message' in shown
    assert shown.rstrip().endswith('I went on.')
    assert (status, turns[-1]) == (0, 2 * made + 4)


def test_failed_turn_is_one_line_and_the_session_continues():
    steps = iter([ConnectionError('the \x1b line is\n dead'), 'second'])

    def plan(results):
        step = next(steps)
        if isinstance(step, Exception):
            raise step
        return step

    status, shown, _ = session(['one', 'two'], plan)

    assert 'The run failed: the <U+001B> line is dead\n' in shown
    assert shown.rstrip().endswith('second')
    assert status == 0


def test_a_failed_last_turn_is_the_exit_status():
    def plan(results):
        raise ConnectionError('the line is dead')

    assert session(['one'], plan)[0] == EXIT_FAILED


def test_with_debug_the_error_passes():
    def plan(results):
        raise ConnectionError('the line is dead')

    with pytest.raises(ConnectionError):
        session(['one'], plan, debug=True)


def test_remembered_approvals_are_listed_and_forgotten(tmp_path):
    memory = ApprovalMemory(FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json'))
    request = ApprovalRequest(tool_name='act', description='Act \u202e once', session_id='s')
    for remember in ('session', 'always'):
        memory.store(request, ApprovalDecision(approved=True, remember=remember))

    _, shown, turns = session(
        ['/approvals', '/forget 3', '/forget 1', '/forget 1', '/approvals'], lambda results: '', memory=memory
    )

    assert '  1. session  act: Act <U+202E> once\n  2. always  act: Act <U+202E> once\n' in shown
    assert '  Forgotten: Act <U+202E> once\n' in shown
    assert shown.endswith('  No approval is remembered.\n')
    assert turns == []
    assert len(memory) == 0


def test_help_is_shown_and_quit_leaves():
    _, shown, turns = session(['/help', '/quit', 'never said'], lambda results: 'never')

    assert shown.startswith('  /approvals ')
    assert turns == []


class Breaks(Turns):
    """Where nothing can be kept, until the turn has ended."""

    def save(self, messages):
        self._turns.append(messages)
        if len(self._turns) == 1:
            raise AssistantError('the disk is full')


def test_running_turn_is_saved_as_a_history_that_can_be_continued():
    kept, steps = [], iter([[ToolCallPart('act')], 'done'])

    class Keeps:
        def save(self, messages):
            kept.append([[part.content for part in message.parts if hasattr(part, 'content')] for message in messages])

    session(['one'], lambda results: next(steps), agent=with_tool(), saved=Keeps())

    assert kept == [[['one'], [], [NO_RESULT], [FAILED]], [['one'], [], ['acted'], ['done ']]]


def test_failed_save_during_a_turn_does_not_end_the_turn():
    turns, steps = [], iter([[ToolCallPart('act')], 'done'])

    status, shown, _ = session(['one'], lambda results: next(steps), agent=with_tool(), saved=Breaks(turns))

    assert status == 0
    assert 'done' in shown
    assert len(turns) == 2


def test_the_conversation_is_written_into_a_new_file(tmp_path):
    path = tmp_path / 'a talk.md'
    steps = iter([[ToolCallPart('act')], 'done\x1b[2J'])

    _, shown, _ = session(
        ['one', f'/save {path}', f'/save {path}', '/save'], lambda results: next(steps), agent=with_tool()
    )

    assert path.read_text() == (
        '## You\n\n> one\n\nCall of act:\n\n    {}\n\nResult of act:\n\n    acted\n\n## Agent\n\n> done<U+001B>[2J \n'
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert f'  Written: {path}\n' in shown
    assert f"  '{path}' cannot be written: File exists\n" in shown
    assert shown.endswith('  /save takes the name of a new file.\n')


def test_discarded_conversation_starts_anew():
    seen = []

    def plan(results):
        seen.append(len(results))
        return 'yes'

    _, shown, turns = session(['one', '/discard', 'two'], plan)

    assert 'The conversation is deleted.' in shown
    assert turns == [2, 'discarded', 2]


def test_unsaved_conversation_can_be_discarded():
    assert 'is deleted' in session(['/discard'], lambda results: '', saved=None)[1]


def test_unknown_command_is_reported_with_the_list():
    _, shown, turns = session(['/what is this'], lambda results: 'never')

    assert shown.startswith('  There is no command /what. The commands are:\n  /approvals ')
    assert turns == []


@pytest.mark.parametrize('words', ['/forget', '/forget 1', '/forget x', '/forget 1 2'])
def test_forget_refuses_numbers_that_are_not_listed(words):
    _, shown, _ = session([words], lambda results: 'never')

    assert shown == '  /forget takes a number from the list of /approvals, which has 0 entries.\n'


@pytest.mark.parametrize(('prompt', 'options'), [('/help', {'obeys': False}), ('/etc/hosts is odd', {})])
def test_prompt_reaches_the_agent(prompt, options):
    _, shown, turns = session([prompt], lambda results: 'I see.', **options)

    assert shown.strip() == '● I see.'
    assert turns == [2]


@pytest.mark.parametrize('number', [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_stops_the_turn_and_then_the_program(number):
    agent = Agent()
    ended = []

    @agent.tool_plain
    async def slow() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append('slow')

    before = signal.getsignal(number)

    with pytest.raises(SystemExit) as stopped:
        session(['one', 'two'], lambda results: [ToolCallPart('slow')], agent=agent)

    assert stopped.value.code == 128 + number
    assert ended == ['slow']
    assert signal.getsignal(number) is before


def test_a_program_that_ignores_the_end_of_its_terminal_goes_on():
    agent = Agent()

    @agent.tool_plain
    async def slow() -> str:
        os.kill(os.getpid(), signal.SIGHUP)
        return 'slow but sure'

    steps = iter([[ToolCallPart('slow')], 'done'])
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        status, shown, _ = session(['one'], lambda results: next(steps), agent=agent)
        after = signal.getsignal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert status == 0
    assert '│ slow but sure' in shown
    assert after is signal.SIG_IGN
