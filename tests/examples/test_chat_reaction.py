import asyncio

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


@pytest.mark.parametrize('emojis', [('👍', '👎'), ('👎', '👍')])
def test_reactions_in_opposite_order_reach_the_right_runs(load, finish, emojis):
    example = load('chat_reaction')

    async def scenario():
        chat = example.Chat(patience_s=60)
        runs = [asyncio.create_task(example.agent.run(name, deps=chat)) for name in ('one', 'two')]
        posts = sorted([await chat.posts.get(), await chat.posts.get()], key=lambda post: 'two' in post.text)
        for post, emoji in reversed(list(zip(posts, emojis, strict=True))):
            assert chat.react(post.number, emoji)
        return [(await run).output for run in runs]

    outputs = finish(scenario())

    expected = {'👍': '{} is live.', '👎': 'The reaction was 👎.'}
    assert outputs == [expected[emoji].format(name) for emoji, name in zip(emojis, ('one', 'two'), strict=True)]


def test_silence_denies_and_a_late_reaction_changes_nothing(load, finish):
    example = load('chat_reaction')

    async def scenario():
        chat = example.Chat(patience_s=0)
        result = await example.agent.run('shop', deps=chat)
        return result.output, chat.react((await chat.posts.get()).number, '👍')

    output, is_taken = finish(scenario())

    assert output == 'There was no answer in time.'
    assert not is_taken


def test_first_reaction_wins(load, finish):
    example = load('chat_reaction')

    async def scenario():
        chat = example.Chat(patience_s=60)
        waiting = asyncio.create_task(example.agent.run('shop', deps=chat))
        number = (await chat.posts.get()).number
        taken = [chat.react(number, '👎'), chat.react(number, '👍'), chat.react(number + 1, '👍')]
        return (await waiting).output, taken

    output, taken = finish(scenario())

    assert output == 'The reaction was 👎.'
    assert taken == [True, False, False]


def test_all_approvals_of_one_response_wait_together(load, finish):
    example = load('chat_reaction')

    def plan(messages, info):
        returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returns:
            return ModelResponse(parts=[TextPart(' '.join(str(part.content) for part in returns))])
        return ModelResponse(parts=[ToolCallPart('deploy', {'service': name}) for name in ('a', 'b')])

    async def scenario():
        chat = example.Chat(patience_s=60)
        waiting = asyncio.create_task(example.agent.run('go', deps=chat, model=FunctionModel(plan)))
        posts = [await chat.posts.get(), await chat.posts.get()]
        for post in reversed(posts):
            chat.react(post.number, '👍' if "'b'" in post.text else '🤷')
        return (await waiting).output

    assert finish(scenario()) == 'The reaction was 🤷. b is live.'
