"""Work with the OpenAI Agents SDK: `needs_approval`, interruptions, and runs that resume from their `RunState`."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from maintainers.peers.serve import serve
from maintainers.peers.work import RUN_LIMIT, Bench, Run


class _Scripted(Model):
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **settings: Any) -> ModelResponse:
        position = len(input) - 1
        # A call is one item, and its output another one.
        numbers = self._bench.calls_of(input[0]['content'], position, per_call=2, per_response=0)
        if numbers is None:
            text = ResponseOutputText(text='done', type='output_text', annotations=[])
            output: list[Any] = [
                ResponseOutputMessage(id='m', type='message', role='assistant', status='completed', content=[text])
            ]
        else:
            output = [
                ResponseFunctionToolCall(
                    type='function_call', name='touch', arguments=f'{{"number": {n}}}', call_id=f'{position}-{n}'
                )
                for n in numbers
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **settings: Any) -> Any:
        raise NotImplementedError


def _build(bench: Bench) -> Run:
    # Tracing sends data to a server.
    set_tracing_disabled(True)

    async def touch(number: int) -> str:
        return bench.touch(number)

    model = _Scripted(bench)
    plain = Agent(name='plain', model=model, tools=[function_tool(touch)])
    asking = Agent(name='asking', model=model, tools=[function_tool(touch, needs_approval=True)])

    async def run(prompt: str, approval: bool) -> None:
        if not approval:
            await Runner.run(plain, prompt, max_turns=RUN_LIMIT)
            return
        result = await Runner.run(asking, prompt, max_turns=RUN_LIMIT)
        while result.interruptions:
            await bench.answer(len(result.interruptions))
            state = result.to_state()
            for interruption in result.interruptions:
                state.approve(interruption)
            result = await Runner.run(asking, state, max_turns=RUN_LIMIT)

    return run


if __name__ == '__main__':
    serve(_build, ['openai-agents', 'openai'])
