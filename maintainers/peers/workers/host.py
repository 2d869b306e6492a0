"""Work with Pydantic AI alone: `python -m maintainers.peers.workers.host [capability|stop-resume]`."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import sys

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls

from maintainers.peers.serve import serve
from maintainers.peers.work import Bench, Run

from .pydantic_ai_model import LIMITS, model, runner, tool


def _capability(bench: Bench) -> Run:
    async def approve(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        await bench.answer(len(requests.approvals))
        return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})

    agent = Agent(model(bench), capabilities=[HandleDeferredToolCalls(handler=approve)])
    agent.tool_plain(requires_approval=True)(tool(bench))
    return runner(bench, agent)


def _stop_resume(bench: Bench) -> Run:
    agent = Agent(model(bench), output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(tool(bench))
    unasked = runner(bench, agent)

    async def run(prompt: str, approval: bool) -> None:
        if not approval:
            return await unasked(prompt, False)
        result = await agent.run(prompt, usage_limits=LIMITS)
        while isinstance(requests := result.output, DeferredToolRequests):
            await bench.answer(len(requests.approvals))
            result = await agent.run(
                message_history=result.all_messages(),
                deferred_tool_results=DeferredToolResults(approvals={c.tool_call_id: True for c in requests.approvals}),
                usage_limits=LIMITS,
            )

    return run


if __name__ == '__main__':
    serve({'capability': _capability, 'stop-resume': _stop_resume}[sys.argv[1]], ['pydantic-ai-slim'])
