"""Turns of a conversation, and its history when one does not end."""

import asyncio

import pytest
from pydantic_ai import DeferredToolResults
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai_deferred import Agent
from tool_approval.assistant.conversation import FAILED, NO_RESULT, STOPPED, Conversation, closed, has_answer
from tool_approval.assistant.events import TurnView
from tool_approval.assistant.stories.scene import scripted

from tool_approval import ApprovalMemory

from .shown import shown_screen


async def approve(ctx, requests):
    return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})


def started(agent, plan, **more):
    screen = shown_screen()
    return Conversation(
        agent, handler=approve, view=TurnView(screen), memory=ApprovalMemory(), model=scripted(plan), **more
    ), screen


def texts(messages):
    return [part.content for message in messages for part in message.parts if hasattr(part, 'content')]


def test_a_turn_is_shown_as_it_comes_and_remembered():
    conversation, screen = started(Agent(), lambda results: 'It is done.')

    end = asyncio.run(conversation.take_turn('Do it.'))

    assert end == 'done'
    assert screen.shown == '● It is done.\n'
    assert [text.strip() for text in texts(conversation.messages)] == ['Do it.', 'It is done.']


def test_call_that_the_model_must_retry_is_shown():
    steps = iter([[ToolCallPart('nothing', {})], 'Then not.'])
    conversation, screen = started(Agent(), lambda results: next(steps))

    asyncio.run(conversation.take_turn('Do it.'))

    lines = screen.shown.splitlines()
    assert lines[0] == '  → nothing {}'
    assert lines[1].startswith('  │ ')
    assert "Unknown tool name: 'nothing'" in lines[1]
    assert lines[-1] == '● Then not.'


def test_a_stopped_turn_leaves_a_history_that_a_next_turn_can_follow():
    agent = Agent()
    is_slow = asyncio.Event()

    @agent.tool_plain
    async def slow():
        is_slow.set()
        await asyncio.Event().wait()

    steps = iter([[ToolCallPart('slow')], 'Again.'])
    conversation, _ = started(agent, lambda results: next(steps))

    async def main():
        turn = asyncio.create_task(conversation.take_turn('Begin.'))
        await is_slow.wait()
        conversation.view.stop()
        first = await turn
        history = list(conversation.messages)
        agent_says = await conversation.take_turn('Go on.')
        return first, history, agent_says

    first, history, second = asyncio.run(main())

    assert (first, second) == ('stopped', 'done')
    results = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [result.content for result in results] == [NO_RESULT]
    assert history[-1].parts[0].content == STOPPED


def test_stopping_where_no_turn_runs_does_nothing():
    conversation, _ = started(Agent(), lambda results: 'done')

    conversation.view.stop()

    assert conversation.messages == []


def test_a_turn_that_fails_raises_and_can_be_followed():
    fails = [True]

    def plan(results):
        if fails.pop() if fails else False:
            raise ConnectionError('the line is dead')
        return 'Better.'

    conversation, _ = started(Agent(), plan)

    async def main():
        with pytest.raises(ConnectionError):
            await conversation.take_turn('One.')
        history = list(conversation.messages)
        await conversation.take_turn('Two.')
        return history

    history = asyncio.run(main())

    assert texts(history) == ['One.', FAILED]
    assert [text.strip() for text in texts(conversation.messages)] == ['One.', FAILED, 'Two.', 'Better.']


def test_cancellation_from_outside_is_raised():
    agent = Agent()
    is_slow = asyncio.Event()

    @agent.tool_plain
    async def slow():
        is_slow.set()
        await asyncio.Event().wait()

    conversation, _ = started(agent, lambda results: [ToolCallPart('slow')])

    async def main():
        turn = asyncio.create_task(conversation.take_turn('Begin.'))
        await is_slow.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(main())

    assert conversation.messages[-1].parts[0].content == STOPPED


def test_a_turn_that_is_stopped_before_it_began_keeps_what_was_said():
    before = [ModelRequest.user_text_prompt('Earlier.'), ModelResponse([TextPart('Yes.')])]
    conversation, _ = started(Agent(), lambda results: 'done', messages=list(before))

    async def main():
        turn = asyncio.create_task(conversation.take_turn('Now.'))
        await asyncio.sleep(0)
        conversation.view.stop()
        return await turn

    assert asyncio.run(main()) == 'stopped'
    assert texts(conversation.messages) == ['Earlier.', 'Yes.', 'Now.', STOPPED]


def test_history_that_ends_with_an_answer_is_unchanged():
    said = [ModelRequest.user_text_prompt('One.'), ModelResponse([TextPart('Half an ans')])]

    assert closed([], said, 'One.') == said


MESSAGES = [ModelRequest.user_text_prompt('Hello.'), ModelResponse([TextPart('Hi.')])]


@pytest.mark.parametrize(
    ('messages', 'expected'),
    [
        ([], False),
        (MESSAGES, True),
        (MESSAGES[:1], False),
        ([MESSAGES[0], ModelResponse([TextPart(FAILED)])], False),
        ([MESSAGES[0], ModelResponse([TextPart(STOPPED)])], False),
        ([*MESSAGES, MESSAGES[0], ModelResponse([TextPart(FAILED)])], True),
        ([MESSAGES[0], ModelResponse([ToolCallPart('pay', {})]), ModelResponse([TextPart(FAILED)])], True),
    ],
)
def test_only_a_conversation_with_an_answer_of_the_model_counts_as_answered(messages, expected):
    assert has_answer(messages) is expected
