"""Decide calls, and bind what was decided to what runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, PydanticUserError

from tool_approval.core.arguments import restored
from tool_approval.core.canonical import canonical_json
from tool_approval.core.controller import ApprovalController
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.verdict import ApprovalResult, make_request

from .arguments import ToolArguments, read_arguments


def find_place(
    config: RunnableConfig | None, *, caller: str | None = None, run_id: str | None = None
) -> dict[str, Any]:
    """The metadata of an `ApprovalContext`: `run_id`, `session_id` and `caller`, where they are known.

    Args:
        config: What the host runs with. `configurable.thread_id`, else `configurable.session_id`, is the session.
        caller: The agent's name, in place of the one the host tells.
        run_id: The agent run's id. Without one: the configuration's, and inside of a graph that of the single step,
            so that what is remembered for a session ends with the call.
    """
    told = config or {}
    configurable = cast('Mapping[str, object]', told.get('configurable') or {})
    metadata = cast('Mapping[str, object]', told.get('metadata') or {})
    step = _text(metadata.get('langgraph_checkpoint_ns'))
    # Inside of another agent's tool the host hands down the outer agent's name, and an unnamed agent would use what
    # was approved for the agent above it (test_unnamed_agent_in_a_tool_shares_nothing).
    named = _text(metadata.get('lc_agent_name')) if '|' not in (step or '') else None
    place = {
        'run_id': run_id or _text(told.get('run_id')) or step,
        'session_id': _text(configurable.get('thread_id')) or _text(configurable.get('session_id')),
        'caller': caller or named,
    }
    return {key: value for key, value in place.items() if value is not None}


def definition_digest(tool: BaseTool) -> str | None:
    """64 hexadecimal digits of what the model is told of the tool; `None` if its schema cannot be written down."""
    schema = tool.tool_call_schema
    try:
        # Some types have no JSON schema, and pydantic says so with errors of several kinds.
        told = schema.model_json_schema() if isinstance(schema, type) and issubclass(schema, BaseModel) else schema
        return hashlib.sha256(canonical_json([tool.name, tool.description, told]).encode()).hexdigest()
    except (NotCanonicalError, TypeError, ValueError, PydanticUserError):
        return None


def own_logic(tool: BaseTool) -> Iterator[object]:
    """What may say itself whether a call needs approval: the tool, and the functions behind it."""
    yield tool
    for name in ('func', 'coroutine'):
        function: object = getattr(tool, name, None)
        if function is not None:
            yield function


def _text(value: object) -> str | None:
    # The host takes numbers and UUIDs for ids, too.
    return str(value) if value is not None and value != '' else None


CHANGED = 'The call changed after it was approved, so it was not run.'
"""What the model is told when what would run is not what was approved."""

_DEFINITION = 'tool_definition'
"""What an approval is bound to beside the arguments: another tool may go by the same name later."""


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """One call that wants to run."""

    tool: BaseTool
    """What would run."""
    name: str
    """The name the model calls it by."""
    arguments: ToolArguments
    """What it would run with."""
    call_id: str | None
    """The call's id, where it has one."""
    place: Mapping[str, Any]
    """Metadata: where the call stands."""
    config: RunnableConfig | None
    """What the host runs with, for the tool's own logic."""

    @cached_property
    def definition(self) -> str | None:
        """Digest of what the model is told of the tool."""
        return definition_digest(self.tool)

    @property
    def context(self) -> ApprovalContext:
        """The call as the tool's own logic is told of it."""
        facts = {'tool_digest': self.definition} if self.definition is not None else {}
        return ApprovalContext(tool_name=self.name, args=self.arguments.values, metadata={**self.place, **facts})

    def request(self, controller: ApprovalController, verdict: ApprovalResult) -> ApprovalRequest:
        """The request for approval of the call."""
        hides = self.arguments.read.is_altered
        request = make_request(self.context, verdict, tool_call_id=self.call_id, hides_arguments=hides)
        return request.model_copy(update={'bound_to': self.bound_to(controller, verdict.bound_to)})

    def bound_to(self, controller: ApprovalController, declared: Mapping[str, Any]) -> dict[str, Any]:
        """What must not change until the call runs, beside its arguments: what the tool declares, and more."""
        return {**controller.bound_to(self.arguments.read, declared), _DEFINITION: self.definition}


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The call does not run."""

    reason: str
    """Why, for who made it."""
    is_block: bool = False
    """Whether policy refused it, so that nobody was asked."""


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """The call may run, and just this one."""

    call: PendingCall
    """The call, with the arguments it runs with."""
    digest: str
    """What it is bound to."""
    declared: Mapping[str, Any]
    """What the tool declares beside the arguments, as part of the digest."""
    request: ApprovalRequest | None
    """What the outcome is written down for; `None` where nobody had to decide."""
    is_changed: bool = False
    """Whether the approver changed the arguments."""


Settled: TypeAlias = Refused | Allowed
"""What becomes of a call before it runs."""


async def decide(controller: ApprovalController, calls: Sequence[PendingCall], *, default: str) -> list[Settled]:
    """Decide all calls of a response, before any of them runs.

    Args:
        controller: Judges and decides.
        calls: The calls, in the order the model made them.
        default: What holds for a tool about which nothing is said.

    Returns:
        What became of each, in order.

    Raises:
        AuditError: A refusal could not be written down. Nothing has run.
        StoreError: Remembered approvals cannot be trusted. Nothing has run.
    """
    settled: dict[int, Settled] = {}
    asked: list[tuple[int, PendingCall, ApprovalResult]] = []
    requests: list[ApprovalRequest] = []
    for index, call in enumerate(calls):
        verdict = await _judge(controller, call, default)
        if verdict.is_blocked:
            settled[index] = _block(controller, call, verdict)
            continue
        request = call.request(controller, verdict)
        if verdict.is_pre_approved:
            digest = _digest(controller, request)
            settled[index] = Allowed(call=call, digest=digest, declared=verdict.bound_to, request=None)
        else:
            asked.append((index, call, verdict))
            requests.append(request)
    decisions = await controller.request_approvals(requests)
    for (index, call, verdict), request, decision in zip(asked, requests, decisions, strict=True):
        settled[index] = await _settle(controller, call, verdict, request, decision, default)
    return [settled[index] for index in range(len(calls))]


async def decide_alone(controller: ApprovalController, call: PendingCall, default: str) -> Settled:
    """Decide a call that runs as soon as it is allowed."""
    [settled] = await decide(controller, [call], default=default)
    if isinstance(settled, Refused) or settled.request is None:
        return settled
    return await confirm(controller, settled, default=default)


async def confirm(controller: ApprovalController, allowed: Allowed, *, default: str) -> Settled:
    """Look again at a call that was approved, right before it runs: time has passed since.

    Args:
        controller: Judges, and knows its own digests.
        allowed: The call as it would run now, and what the approval is bound to.
        default: What holds for a tool about which nothing is said.

    Raises:
        AuditError: A block could not be written down. Nothing has run.
    """
    call = allowed.call
    verdict = await _judge(controller, call, default)
    if verdict.is_blocked:
        return _block(controller, call, verdict)
    request = call.request(controller, verdict)
    if not controller.is_bound(allowed.digest, call.name, request.args, request.bound_to):
        controller.record_outcome(request, 'refused')
        return Refused(reason=CHANGED)
    return replace(allowed, declared=verdict.bound_to, request=request)


def check_default(default: str) -> None:
    """Refuse a default that policy does not know.

    Raises:
        ValueError: It is neither `required` nor `none`.
    """
    if default not in ('required', 'none'):
        raise ValueError(f"`default` must be 'required' or 'none', not {default!r}")


def unfit(name: str, error: ValueError) -> Refused:
    """What becomes of a call whose arguments do not fit its tool: nobody is asked about it."""
    return Refused(reason=f'The arguments of {name!r} cannot be used: {error}. The call was not run.')


async def _settle(
    controller: ApprovalController,
    call: PendingCall,
    verdict: ApprovalResult,
    request: ApprovalRequest,
    decision: ApprovalDecision,
    default: str,
) -> Settled:
    if not decision.approved:
        return Refused(reason=decision.note or 'The call was denied.', is_block=decision.decided_by == 'policy')
    if decision.override_args is None:
        return Allowed(call=call, digest=_digest(controller, request), declared=verdict.bound_to, request=request)
    try:
        edited = restored(decision.override_args, request.args, call.arguments.given_json)
        before = call.arguments
        arguments = read_arguments(call.tool, edited, judges_injected=before.judges_injected)
        set_apart = {name: value for name, value in before.injected.items() if name not in before.values}
        changed = replace(call, arguments=replace(arguments, injected={**set_apart, **arguments.injected}))
        verdict = await _judge(controller, changed, default)
        if verdict.is_blocked:
            return _block(controller, changed, verdict)
        changed_request = changed.request(controller, verdict)
        digest = _digest(controller, changed_request)
    except ValueError as error:
        controller.record_outcome(request, 'refused')
        return Refused(reason=f"The approver's arguments cannot be used: {error}. The call was not run.")
    return Allowed(call=changed, digest=digest, declared=verdict.bound_to, request=changed_request, is_changed=True)


async def _judge(controller: ApprovalController, call: PendingCall, default: str) -> ApprovalResult:
    logic = list(own_logic(call.tool))
    return await controller.judge(call.context, logic=logic, framework_context=call.config, default=default)


def _block(controller: ApprovalController, call: PendingCall, verdict: ApprovalResult) -> Refused:
    reason = verdict.reason or f'The tool {call.name!r} is blocked.'
    controller.record_block(call.request(controller, verdict), reason)
    return Refused(reason=reason, is_block=True)


def _digest(controller: ApprovalController, request: ApprovalRequest) -> str:
    return controller.digest(request.tool_name, request.args, request.bound_to)
