"""Answer deferred calls between runs: one run ends with unanswered calls, and another resumes with the answers."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UserError

from tool_approval.core.controller import ApprovalController
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import ApprovalUI
from tool_approval.core.request import CallFacts
from tool_approval.core.threads import blocking

from .approvals import Approvals, capabilities_of
from .batch import Batch
from .requests import Session, session_of_deps
from .results import External

DepsT = TypeVar('DepsT')
OutputT = TypeVar('OutputT')


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
    """Run an agent, with its tools guarded by `Approvals` that are made of the arguments.

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
        The result of the run.

    Raises:
        ValueError: As in `collect_approvals`. Nothing has run.
        StoreError: As in `collect_approvals`.
        UserError: `deps.session_id` is not a string, or the agent has `Approvals` of its own. Nothing has run.
    """
    if any(isinstance(each, Approvals) for each in capabilities_of(agent)):
        # Attack: the capability of a run replaces the agent's, so stricter rules of the agent would not hold.
        raise UserError('The agent has `Approvals` of its own: call `agent.run`, or `approvals.answer` after it stops.')
    session, is_shared = session or session_of_deps(run.get('deps')), controller is not None
    controller = _controller(controller, ui, mode, memory)
    # Conversations may share a controller: without a name, the run is a session of its own.
    name: Session = session or (_of_the_run if is_shared else 'memory')
    approvals = Approvals(controller, external=external, session=name, default='none')
    capabilities = [*(run.pop('capabilities', None) or ()), approvals]
    return await agent.run(prompt, capabilities=capabilities, **run)


def _of_the_run(ctx: RunContext[Any]) -> str | None:
    return ctx.run_id


def _controller(
    given: ApprovalController | None, ui: ApprovalUI | None, mode: str, memory: ApprovalMemory | None
) -> ApprovalController:
    if given is None:
        return ApprovalController(mode, ui=ui, memory=memory)
    if ui is not None or memory is not None or mode != 'interactive':
        raise ValueError('`controller` cannot be combined with `ui`, `mode` or `memory`')
    return given


collect_approvals_sync = blocking(collect_approvals)
"""Like `collect_approvals`, for synchronous code. Blocks until all calls are decided.

If an event loop is running, this call blocks that loop, and the questions are asked on a loop in another thread.
"""

run_with_approval_sync = blocking(run_with_approval)
"""Like `run_with_approval`, for synchronous code. Blocks until the run has ended."""
