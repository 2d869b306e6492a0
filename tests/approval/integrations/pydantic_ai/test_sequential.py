"""Approved calls of one response to sequential tools run one after the other, in the order of the response."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, PreparedToolset
from pydantic_ai_deferred import Agent as DeferredAgent
from tool_approval.integrations.pydantic_ai import (
    Approvals,
    ApprovalToolset,
    FileToolset,
    ShellToolset,
    run_with_approval_sync,
)
from tool_approval.testing import approve_all
from tool_approval.tools.shell import ShellTool

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalContext, ApprovalController, ApprovalRequest

FILES = {'paths': {'notes': {'root': 'notes', 'mode': 'rw'}}}


class Traced:
    """Records when each execution begins and ends, and lets whatever could overlap it run in between."""

    events: list[str]

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        if not ctx.tool_call_approved:
            return await super().call_tool(name, tool_args, ctx, tool)  # type: ignore[misc]
        self.events.append(f'begin {ctx.tool_call_id}')
        for _ in range(20):
            await asyncio.sleep(0)
        result = await super().call_tool(name, tool_args, ctx, tool)  # type: ignore[misc]
        self.events.append(f'end {ctx.tool_call_id}')
        return result


class TracedFiles(Traced, FileToolset):
    pass


class TracedShell(Traced, ShellToolset):
    pass


class TracedAndPrepared(Traced, PreparedToolset[Any]):
    pass


def files(base: Any) -> tuple[Any, list[Any]]:
    (base / 'notes').mkdir()
    calls = [call('write_file', str(number), path=f'notes/{number}', content='') for number in (1, 2, 3)]
    return TracedFiles(FILES, base), calls


def shell(base: Any) -> tuple[Any, list[Any]]:
    return TracedShell(ShellTool(cwd=base)), [
        call('run_shell', str(number), command=f'touch {number}') for number in (1, 2, 3)
    ]


def prepared(base: Any) -> tuple[Any, list[Any]]:
    def step(number: str) -> str:
        return number

    inner = FunctionToolset([step], requires_approval=True)
    calls = [call('step', str(number), number=str(number)) for number in (1, 2, 3)]
    return TracedAndPrepared(inner, one_at_a_time), calls


async def one_at_a_time(ctx: Any, tools: list[ToolDefinition]) -> list[ToolDefinition]:
    return [replace(tool, sequential=True) for tool in tools]


def inside_the_run(toolset: AbstractToolset[Any], controller: ApprovalController, calls: list[Any]) -> None:
    agent = DeferredAgent(scripted(calls, 'done'), toolsets=[toolset])
    agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))


def stop_and_resume(toolset: AbstractToolset[Any], controller: ApprovalController, calls: list[Any]) -> None:
    run_with_approval_sync(Agent(scripted(calls, 'done'), toolsets=[toolset]), 'go', controller=controller)


@pytest.mark.parametrize('run', [inside_the_run, stop_and_resume])
@pytest.mark.parametrize('is_guarded', [True, False], ids=['guarded', 'bare'])
@pytest.mark.parametrize('make', [files, shell, prepared])
def test_approved_calls_of_one_response_run_one_after_the_other(make: Any, is_guarded: bool, run: Any, tmp_path: Any):
    controller = ApprovalController(ui=approve_all())
    toolset, calls = make(tmp_path)
    toolset.events = []

    run(ApprovalToolset(toolset, controller) if is_guarded else toolset, controller, calls)

    assert toolset.events == ['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 3', 'end 3']


@pytest.mark.parametrize(('is_sequential', 'left'), [(True, 40), (False, -20)])
def test_a_call_bound_to_the_effect_of_another_is_refused_only_if_the_tool_is_sequential(
    is_sequential: bool, left: int
):
    balance = [100]

    def check_approval(ctx: ApprovalContext) -> ApprovalRequest:
        return ApprovalRequest(tool_name=ctx.tool_name, args=ctx.args, bound_to={'balance': balance[0]})

    async def pay(amount: int) -> str:
        await asyncio.sleep(0)
        balance[0] -= amount
        return 'paid'

    pay.check_approval = check_approval  # type: ignore[attr-defined]
    agent = Agent(
        scripted([call('pay', '1', amount=60), call('pay', '2', amount=60)], 'done'),
        tools=[Tool(pay, sequential=is_sequential)],
        capabilities=[Approvals(ui=approve_all())],
    )

    agent.run_sync('go')

    assert balance == [left]
