"""An editor that speaks the Agent Client Protocol is asked, and its answer decides."""

import asyncio
import os
import socket
import sys
from contextlib import asynccontextmanager

import pytest

acp = pytest.importorskip('acp')
from acp.schema import AllowedOutcome, DeniedOutcome

GONE = 'old.log is gone'
DENIED = 'The approver denied this call'


class Editor:
    """Answers requests for permission in order, and keeps what it was asked and told."""

    def __init__(self, *chosen):
        self.chosen = list(chosen)
        self.asked = []
        self.texts = []

    def on_connect(self, conn):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((session_id, tool_call, {option.option_id: option.kind for option in options}))
        chosen = self.chosen.pop(0)
        if isinstance(chosen, Exception):
            raise chosen
        outcome = DeniedOutcome(outcome='cancelled')
        if chosen is not None:
            outcome = AllowedOutcome(outcome='selected', option_id=chosen)
        return acp.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.texts.append(update.content.text)


@asynccontextmanager
async def connected(load, editor):
    """Connect the editor with the example, in this process."""
    ends = socket.socketpair()
    (of_agent, to_editor), (of_editor, to_agent) = [await asyncio.open_connection(sock=end) for end in ends]
    running = asyncio.ensure_future(acp.run_agent(load('acp_agent').Deleter(), to_editor, of_agent))
    agent = acp.connect_to_agent(editor, to_agent, of_editor)
    try:
        yield agent
    finally:
        await agent.close()
        for writer in (to_agent, to_editor):
            writer.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def prompts(agent, count):
    """Let the editor send prompts, in one session."""
    await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
    session = await agent.new_session(cwd='/', mcp_servers=[])
    for _ in range(count):
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block('Make room.')])
    return session.session_id


@pytest.fixture
def texts(load, finish):
    """Send prompts, and return what the editor was told."""

    def texts(editor, count=1):
        async def story():
            async with connected(load, editor) as agent:
                assert {asked[0] for asked in editor.asked} <= {await prompts(agent, count)}

        finish(story())
        return editor.texts

    return texts


def test_an_approved_call_runs_and_a_denied_one_does_not(command, finish):
    editor = Editor('approve', 'deny')
    start = [sys.executable, *command('acp_agent')[1:]]

    async def story():
        async with acp.spawn_agent_process(editor, *start, env=dict(os.environ)) as (agent, _):
            return await prompts(agent, 2)

    session_id = finish(story())

    approved, denied = editor.texts
    assert approved == GONE
    assert denied.startswith(DENIED)
    assert {asked[0] for asked in editor.asked} == {session_id}
    _, call, options = editor.asked[0]
    assert (call.title, call.raw_input) == ('delete', {'path': 'old.log'})
    assert '```\n| path: "old.log"\n```' in call.content[0].content.text
    assert options == {
        'approve': 'allow_once',
        'session': 'allow_always',
        'deny': 'reject_once',
        'deny_session': 'reject_always',
    }


@pytest.mark.parametrize(('chosen', 'told'), [('session', GONE), ('deny_session', DENIED)])
def test_an_answer_for_the_session_is_asked_once(texts, chosen, told):
    editor = Editor(chosen)

    answers = texts(editor, 2)

    assert len(editor.asked) == 1
    assert answers[0].startswith(told)
    assert ('is gone' in answers[1]) is (told == GONE)


@pytest.mark.parametrize('chosen', [None, 'always', 'edit', '', acp.RequestError.internal_error()])
def test_an_answer_that_was_not_offered_denies_the_call(texts, chosen):
    [text] = texts(Editor(chosen))

    assert 'is gone' not in text


def test_methods_that_the_agent_does_not_have_are_errors(load, finish):
    async def story():
        async with connected(load, Editor()) as agent:
            with pytest.raises(acp.RequestError):
                await agent.load_session(cwd='/', session_id='x', mcp_servers=[])
            with pytest.raises(acp.RequestError):
                await agent.prompt(session_id='x', prompt=[acp.text_block('Make room.')])

    finish(story())
