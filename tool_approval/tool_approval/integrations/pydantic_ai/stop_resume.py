"""Answer deferred calls between runs: one run ends with unanswered calls, and another resumes with the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults
from pydantic_ai.agent import AbstractAgent

from tool_approval.core.controller import ApprovalController
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import ApprovalUI
from tool_approval.core.request import CallFacts
from tool_approval.core.threads import wait_for

from .handler import Batch
from .requests import session_of_deps
from .results import External

DepsT = TypeVar('DepsT')
OutputT = TypeVar('OutputT')
P = ParamSpec('P')
T = TypeVar('T')


async def collect_approvals(
    requests: DeferredToolRequests,
    *,
    ui: ApprovalUI | None = None,
    mode: str = 'interactive',
    memory: ApprovalMemory | None = None,
    controller: ApprovalController | None = None,
    external: External | None = None,
    session: str | None = None,
    caller: str | None = None,
) -> DeferredToolResults:
    """Answer every deferred call that a run ended with.

    Args:
        requests: The run's output.
        ui: The UI that asks the approver.
        mode: `interactive`, `approve_all` or `strict`.
        memory: Remembered approvals. Pass the same memory each time the conversation stops. `None` uses a new memory.
        controller: Controller in place of `ui`, `mode` and `memory`. Give the same controller to the
            `ApprovalToolset`s. Give the controller a lasting `key` if another process may resume the run.
        external: Functions that execute external calls, by tool name.
        session: The conversation for which approvals are remembered. `None` uses the whole memory as one conversation.
        caller: The agent's name.

    Returns:
        The results of all calls, to be passed as `deferred_tool_results` when the run is resumed.

    Raises:
        ValueError: Both a controller and one of `ui`, `mode` and `memory` are given, or `mode` is unknown.
        StoreError: Remembered approvals cannot be trusted or saved.
    """
    controller = _controller(controller, ui, mode, memory)
    facts = CallFacts(session_id=session, caller=caller)
    return await Batch(controller, requests, external=external or {}, facts=facts, ctx=None).answer()


async def run_with_approval(
    agent: AbstractAgent[DepsT, OutputT],
    prompt: Any = None,
    *,
    ui: ApprovalUI | None = None,
    mode: str = 'interactive',
    memory: ApprovalMemory | None = None,
    controller: ApprovalController | None = None,
    external: External | None = None,
    session: str | None = None,
    **run: Any,
) -> AgentRunResult[OutputT]:
    """Run an agent until it returns its output; each time it stops, answer with `collect_approvals` and resume.

    Use this function if you cannot pass a `deferred_tool_handler`, which answers the calls inside a single run.

    Args:
        agent: Any agent. The output types need not contain `DeferredToolRequests`.
        prompt: The user's prompt, which appears once in the history.
        ui: As in `collect_approvals`.
        mode: As in `collect_approvals`.
        memory: Remembered approvals. With `None`, a new memory is created for this call of the function.
        controller: As in `collect_approvals`.
        external: As in `collect_approvals`.
        session: The conversation for which approvals are remembered. `None` uses `deps.session_id`. If the deps have no
            `session_id`, all calls of this function with the same `memory` share one conversation. If the deps have no
            `session_id` and a `controller` is given, each call of this function is a separate conversation.
        **run: Further keywords of the agent's `run`. `message_history` is the history before the prompt.

    Returns:
        The result of the last run, with the agent's own type of output.

    Raises:
        ValueError: As in `collect_approvals`. Nothing has run.
        StoreError: As in `collect_approvals`.
        UserError: `deps.session_id` is not a string. Nothing has run.
    """
    session, is_shared = session or session_of_deps(run.get('deps')), controller is not None
    controller = _controller(controller, ui, mode, memory)
    output_type = run.pop('output_type', None)
    types = [agent.output_type if output_type is None else output_type, DeferredToolRequests]
    result: AgentRunResult[Any] = await agent.run(prompt, output_type=types, **run)
    # Conversations may share a controller: without a name, these runs are a session of their own.
    session = session or (result.run_id if is_shared else None)
    while isinstance(result.output, DeferredToolRequests):
        answers = await collect_approvals(
            result.output, controller=controller, external=external, session=session, caller=agent.name
        )
        resumed: dict[str, Any] = {**run, 'message_history': result.all_messages(), 'deferred_tool_results': answers}
        result = await agent.run(output_type=types, **resumed)
    return cast('AgentRunResult[OutputT]', result)


def _controller(
    given: ApprovalController | None, ui: ApprovalUI | None, mode: str, memory: ApprovalMemory | None
) -> ApprovalController:
    if given is None:
        return ApprovalController(mode, ui=ui, memory=memory)
    if ui is not None or memory is not None or mode != 'interactive':
        raise ValueError('`controller` cannot be combined with `ui`, `mode` or `memory`')
    return given


def _blocking(start: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(start)
    def wait(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Not `asyncio.run`, which would remove the thread's event loop, and the host's `run_sync` keeps that loop.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                return runner.run(start(*args, **keywords))
        return wait_for(lambda: start(*args, **keywords))

    wait.__name__ = wait.__qualname__ = f'{start.__name__}_sync'
    return wait


collect_approvals_sync = _blocking(collect_approvals)
"""Like `collect_approvals`, for synchronous code. Blocks until all calls are decided.

If an event loop is running, this call blocks that loop, and the questions are asked on a loop in another thread.
"""

run_with_approval_sync = _blocking(run_with_approval)
"""Like `run_with_approval`, for synchronous code. Blocks until the run has ended."""
