"""Work with `deferred_tool_handler`: `python -m maintainers.peers.workers.ours [async|sync|layer|layer-audit]`."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai_deferred import Agent

from maintainers.peers.serve import serve
from maintainers.peers.work import Bench, Run

from .pydantic_ai_model import model, runner, tool


def _async_handler(bench: Bench) -> Any:
    async def approve(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        await bench.answer(len(requests.approvals))
        return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})

    return approve


def _sync_handler(bench: Bench) -> Any:
    def approve(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        bench.answer_blocking(len(requests.approvals))
        return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})

    return approve


def _layer(bench: Bench, log: Path | None) -> Any:
    from tool_approval.audit import JsonlAuditSink
    from tool_approval.integrations.pydantic_ai import Approvals

    from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalPolicy, ApprovalRequest

    class Person:
        async def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:
            await bench.answer()
            return ApprovalDecision(approved=True)

    controller = ApprovalController(
        policy=ApprovalPolicy({'touch': {'approval': 'required'}}),
        memory=ApprovalMemory(),
        audit=None if log is None else JsonlAuditSink(log, key=b'k' * 32),
        ui=Person(),
    )
    return Approvals(controller, session='bench', default='none')


def _build(bench: Bench, kind: str, folder: Path) -> Run:
    handlers = {
        'async': _async_handler,
        'sync': _sync_handler,
        'layer': lambda bench: _layer(bench, None),
        'layer-audit': lambda bench: _layer(bench, folder / 'audit.jsonl'),
    }
    agent = Agent(model(bench), deferred_tool_handler=handlers[kind](bench))
    agent.tool_plain(requires_approval=True)(tool(bench))
    return runner(bench, agent)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as temporary:
        serve(
            lambda bench: _build(bench, sys.argv[1], Path(temporary)),
            ['pydantic-ai-deferred-handler', 'tool-approval', 'pydantic-ai-slim'],
        )
