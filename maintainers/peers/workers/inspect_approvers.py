"""Work with Inspect AI, whose approver is asked during each tool call.

Its agents usually run inside an evaluation, with a sample, a log and a display. This measures the loop that its
documentation shows for an agent of your own: `generate`, `execute_tools`, and again.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from inspect_ai.approval import Approval, ApprovalPolicy, approval, approver
from inspect_ai.log._transcript import Transcript, init_transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
    execute_tools,
    get_model,
)
from inspect_ai.tool import ToolCall, tool

from maintainers.peers.serve import serve
from maintainers.peers.work import Bench, Run


def _build(bench: Bench) -> Run:
    @tool
    def touch() -> Any:
        async def execute(number: int) -> str:
            """Touch a number.

            Args:
                number: The number.
            """
            return bench.touch(number)

        return execute

    @approver
    def person() -> Any:
        async def approve(message: Any, call: Any, view: Any, history: Any) -> Approval:
            await bench.answer()
            return Approval(decision='approve')

        return approve

    def respond(messages: list[ChatMessage], *args: Any) -> ModelOutput:
        position = len(messages) - 1
        numbers = bench.calls_of(messages[0].text, position, per_call=1, per_response=1)
        output = ModelOutput.from_content('mockllm/model', 'done')
        # With the usage given, nothing is downloaded to count tokens.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        if numbers is not None:
            calls = [ToolCall(id=f'{position}-{n}', function='touch', arguments={'number': n}) for n in numbers]
            output.choices[0].message = ChatMessageAssistant(content='', tool_calls=calls)
        return output

    model = get_model('mockllm/model', custom_outputs=respond)
    tools = [touch()]
    policies = [ApprovalPolicy(person(), '*')]

    async def run(prompt: str, is_asked: bool) -> None:
        # A sample has its own transcript. Without one, all runs of a process share a transcript that only grows.
        init_transcript(Transcript())
        messages: list[ChatMessage] = [ChatMessageUser(content=prompt)]
        with approval(policies) if is_asked else nullcontext():
            while True:
                output = await model.generate(messages, tools=tools)
                messages.append(output.message)
                if not output.message.tool_calls:
                    return
                messages.extend((await execute_tools(messages, tools)).messages)

    return run


if __name__ == '__main__':
    serve(_build, ['inspect-ai'])
