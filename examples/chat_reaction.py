"""Post to a chat and wait for a reaction: `python examples/chat_reaction.py`.

The handler is a coroutine function, so it waits on the event loop, and any number of runs can wait at once. The chat is
a queue in this process. For a real chat, let `Chat.ask` post through its API, and call `Chat.react` for its events.
"""

import asyncio
from dataclasses import dataclass, field

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent


@dataclass(frozen=True)
class Post:
    """A question in the chat."""

    number: int
    """Number of the post. Reactions refer to it, so that they may come in any order."""
    text: str
    """Text of the post."""


@dataclass
class Chat:
    """A chat channel in which an agent asks."""

    patience_s: float
    """Seconds that a question waits for a reaction."""
    posts: asyncio.Queue[Post] = field(default_factory=asyncio.Queue[Post])
    """Posts, oldest first."""
    _waiting: dict[int, asyncio.Future[str]] = field(default_factory=dict[int, asyncio.Future[str]])
    _last_number: int = 0

    async def ask(self, text: str) -> str | None:
        """Post `text`, and return the first reaction to it, or `None` if there is none in time."""
        self._last_number += 1
        post = Post(self._last_number, text)
        reaction = self._waiting[post.number] = asyncio.get_running_loop().create_future()
        await self.posts.put(post)
        try:
            async with asyncio.timeout(self.patience_s):
                return await reaction
        except TimeoutError:
            return None
        finally:
            del self._waiting[post.number]

    def react(self, number: int, emoji: str) -> bool:
        """Take a reaction from the chat. Return `False` if it is too late, because no run waits for the post."""
        reaction = self._waiting.get(number)
        if reaction is None or reaction.done():
            return False
        reaction.set_result(emoji)
        return True


async def ask_in_chat(ctx: RunContext[Chat], requests: DeferredToolRequests) -> DeferredToolResults:
    """Post every request of a model response, and wait for all reactions together."""
    texts = [f'May I run {call.tool_name} with {call.args_as_dict()!r}?' for call in requests.approvals]
    reactions = await asyncio.gather(*(ctx.deps.ask(text) for text in texts))
    results = DeferredToolResults()
    for call, reaction in zip(requests.approvals, reactions, strict=True):
        if reaction == '👍':
            results.approvals[call.tool_call_id] = ToolApproved()
        else:
            reason = 'There was no answer in time.' if reaction is None else f'The reaction was {reaction}.'
            results.approvals[call.tool_call_id] = ToolDenied(reason)
    for call in requests.calls:
        results.calls[call.tool_call_id] = ToolFailed('The chat cannot carry this out.')
    return results


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: deploy the service in the prompt, then report."""
    part = messages[-1].parts[0]
    if isinstance(part, UserPromptPart):
        return ModelResponse(parts=[ToolCallPart('deploy', {'service': str(part.content)})])
    assert isinstance(part, ToolReturnPart)
    return ModelResponse(parts=[TextPart(str(part.content))])


agent = Agent(FunctionModel(plan), deps_type=Chat, deferred_tool_handler=ask_in_chat)


@agent.tool_plain(requires_approval=True)
def deploy(service: str) -> str:
    """Deploy a service."""
    return f'{service} is live.'


async def main() -> None:
    chat = Chat(patience_s=60)

    async def run(service: str) -> None:
        result = await agent.run(service, deps=chat)
        print(f'run {service!r} ended: {result.output}')

    async with asyncio.TaskGroup() as runs:
        shop = runs.create_task(run('shop'))
        for_shop = await chat.posts.get()
        blog = runs.create_task(run('blog'))
        for_blog = await chat.posts.get()
        print(for_shop.text, for_blog.text, sep='\n')
        # Both runs wait now. Answer the second question first.
        chat.react(for_blog.number, '👍')
        await blog
        chat.react(for_shop.number, '👎')
        await shop

    chat.patience_s = 0.1  # no one reads the chat any more
    await run('wiki')
    print('A late yes counts:', chat.react((await chat.posts.get()).number, '👍'))


if __name__ == '__main__':
    asyncio.run(main())
