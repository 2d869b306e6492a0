"""Work with `pydantic-ai-blocking-approval`, a toolset that asks during each tool call."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai_blocking_approval import ApprovalDecision, ApprovalRequest, ApprovalToolset

from maintainers.peers.serve import serve
from maintainers.peers.work import Bench, Run

from .pydantic_ai_model import model, runner, tool


def _build(bench: Bench) -> Run:
    async def approve(request: ApprovalRequest) -> ApprovalDecision:
        await bench.answer()
        return ApprovalDecision(approved=True)

    toolset = ApprovalToolset(FunctionToolset([tool(bench)]), approve)
    return runner(bench, Agent(model(bench), toolsets=[toolset]))


if __name__ == '__main__':
    serve(_build, ['pydantic-ai-blocking-approval', 'pydantic-ai-slim'])
