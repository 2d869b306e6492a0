"""Work with LangChain's `HumanInTheLoopMiddleware`: the graph stops, and `Command(resume=...)` resumes it."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import itertools
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from maintainers.peers.serve import serve
from maintainers.peers.work import RUN_LIMIT, Bench, Run


class _Scripted(BaseChatModel):
    bench: Any

    @property
    def _llm_type(self) -> str:
        return 'scripted'

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **settings: Any) -> ChatResult:
        position = len(messages) - 1
        numbers = self.bench.calls_of(messages[0].content, position, per_call=1, per_response=1)
        if numbers is None:
            said = AIMessage(content='done')
        else:
            calls = [{'name': 'touch', 'args': {'number': n}, 'id': f'{position}-{n}'} for n in numbers]
            said = AIMessage(content='', tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **settings: Any) -> ChatResult:
        return self._generate(messages)


def _build(bench: Bench) -> Run:
    async def touch(number: int) -> str:
        """Touch a number."""
        return bench.touch(number)

    tool = StructuredTool.from_function(coroutine=touch)
    plain = create_agent(_Scripted(bench=bench), [tool])
    saver = InMemorySaver()
    asking = create_agent(
        _Scripted(bench=bench),
        [tool],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={'touch': True})],
        checkpointer=saver,
    )
    threads = itertools.count()

    async def run(prompt: str, approval: bool) -> None:
        start: Any = {'messages': [{'role': 'user', 'content': prompt}]}
        if not approval:
            await plain.ainvoke(start, {'recursion_limit': RUN_LIMIT})
            return
        thread = str(next(threads))
        config: Any = {'configurable': {'thread_id': thread}, 'recursion_limit': RUN_LIMIT}
        state = await asking.ainvoke(start, config)
        while interrupts := state.get('__interrupt__'):
            calls = len(interrupts[0].value['action_requests'])
            await bench.answer(calls)
            state = await asking.ainvoke(Command(resume={'decisions': [{'type': 'approve'}] * calls}), config)
        # The saver keeps every step of every run until the thread is deleted.
        saver.delete_thread(thread)

    return run


if __name__ == '__main__':
    serve(_build, ['langchain', 'langgraph', 'langchain-core'])
