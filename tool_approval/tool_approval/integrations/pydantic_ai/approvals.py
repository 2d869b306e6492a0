"""Everything about approval as one capability: `Agent(..., capabilities=[Approvals(...)])`."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, Protocol, Unpack

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler, WrapToolExecuteHandler
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    AgentStreamEvent,
    DeferredToolResultsEvent,
    ModelMessage,
    ModelResponse,
    ToolCallPart,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai_deferred import DeferredToolHandler, HandlerFunc
from pydantic_ai_deferred.keyword import allows_deferred

from tool_approval.approvals import Approvals as AnyApprovals
from tool_approval.approvals import Parts, Rules
from tool_approval.core.calls import Allowed, ExecutionLedger
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import CHANGED, Gate
from tool_approval.core.request import CallFacts
from tool_approval.core.threads import blocking

from .arguments import find_tool, own_checks
from .batch import Batch
from .guard import ApprovalToolset, is_declared, is_outside, only_reveals
from .requests import Requester, Session, facts_of
from .results import CallPlace, External, execute_once, refuse
from .seatbelt import is_guarded, is_same

Others = Literal['log', 'ask', 'refuse']
"""How to treat a call that other code approved in the same run."""


class Keeping(Protocol):
    """Keeps the deferred calls of a run that another process may continue, and executes them once."""

    def guard(self, toolset: AbstractToolset[Any], approvals: Approvals) -> ApprovalToolset:
        """Guard the tools, and look for tools that have changed."""
        ...  # pragma: no cover - a protocol has no body

    async def keep(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> None:
        """Keep the deferred calls of a response. The run then ends with them."""
        ...  # pragma: no cover - a protocol has no body

    def refuse(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> NoReturn:
        """Refuse the deferred calls of a nested run, which cannot end and be continued."""
        ...  # pragma: no cover - a protocol has no body

    async def execute(self, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute an approved call."""
        ...  # pragma: no cover - a protocol has no body


class Approvals(AnyApprovals, DeferredToolHandler[Any]):
    """Judges, asks about, binds, checks and logs every tool call of an agent.

    Give it to any agent of Pydantic AI as a capability, or to the `Agent` of `pydantic_ai_deferred` and its runs as
    `deferred_tool_handler`. It guards all tools: functions, toolsets, MCP servers and the tools of other capabilities.
    """

    is_guard = True

    def __init__(
        self,
        rules: Rules = None,
        *,
        external: External | None = None,
        session: Session = None,
        requester: Requester = None,
        others: Others = 'log',
        inherit: bool = True,
        id: str | None = 'approvals',
        **parts: Unpack[Parts],
    ) -> None:
        """Combine the parts.

        Args:
            rules: The rules; see `tool_approval.approvals.Rules`. A settings file that is named here is trusted.
            external: Functions that execute external calls or answer questions, by tool name.
            session: The conversation for which approvals are remembered.
            requester: Id of the person the agent works for, or a function that takes the run's context and returns it,
                such as `lambda ctx: ctx.deps.user`. Approvers see it, and the log contains it.
            others: How to treat a call that needs approval and that other code, such as another capability, approved
                in the same run: `log` runs it and logs that others approved it, `ask` asks the approver too, `refuse`
                refuses it. The mode `strict` refuses it in any case.
            inherit: Whether agents inside the tools of a run, without approvals of their own, use these. Such an agent
                must then have no other handler, and does not end with deferred calls.
            id: Id in the agent's capabilities. A run's capability replaces the agent's of the same id.
            **parts: See `tool_approval.approvals.Parts`. Without `ui`, a run of an agent whose output types contain
                `DeferredToolRequests` ends with the calls that need an approver; answer them with `answer`.

        Raises:
            ApprovalConfigError: The rules or the settings file are invalid.
            AuditError: The log or its key cannot be used.
            StoreError: The remembered approvals cannot be used.
            TypeError: A part is of the wrong type, or is given beside a controller.
            ValueError: `others`, `default` or `mode` is unknown, or the timeout is not positive.
        """
        if others not in ('log', 'ask', 'refuse'):
            raise ValueError(f"`others` must be 'log', 'ask' or 'refuse', not {others!r}")
        AnyApprovals.__init__(self, rules, **parts)
        DeferredToolHandler.__init__(self, self.__call__, id=id, inherit=inherit)
        self.external = external or {}
        """Functions that execute external calls, by tool name."""
        self.session = session
        """The conversation for which approvals are remembered."""
        self.requester = requester
        """Id of the person the agent works for, or a function that returns it."""
        self._answered: dict[str | None, set[str]] = {}
        self._answered_by: dict[str | None, Mapping[str, str]] = {}
        self._keeping: Keeping | None = None
        self.others: Others = others
        """How to treat a call that other code approved in the same run."""

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Refuse several `Approvals` with one id.

        Raises:
            UserError: There are several.
        """
        if len({id(each) for each in capabilities}) > 1:
            raise UserError('Two `Approvals` were given to one agent. Combine them into one: two cannot decide a call.')
        return capabilities[-1]

    def guard(self, toolset: AbstractToolset[Any]) -> ApprovalToolset:
        """Guard one toolset, of an agent whose other tools run without approval."""
        return ApprovalToolset(toolset, self) if self._keeping is None else self._keeping.guard(toolset, self)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Guard all tools, inside of every other capability, so that the guard sees the arguments that the tools get.

        Raises:
            UserError: Another capability of this kind answers the calls of the same run.
        """
        return super().get_wrapper_toolset(self.guard(toolset))

    def for_nested_run(self, handler: HandlerFunc[Any]) -> Approvals:
        """Return the capability of a nested run: the same guard, whose questions the outermost run asks."""
        nested = copy.copy(self)
        DeferredToolHandler.__init__(nested, handler, id=self.id)
        nested._answered, nested._answered_by = {}, {}
        return nested

    @property
    def is_nested(self) -> bool:
        """Whether a nested run inherited this capability."""
        return self is not self._original

    def for_keeping(
        self, keeping: Keeping, controller: ApprovalController, *, ledger: ExecutionLedger, session: Session
    ) -> Approvals:
        """Return the capability of one run whose deferred calls are kept. It replaces this object in that run."""
        kept = copy.copy(self)
        kept._controller, kept._ledger, kept.session, kept._keeping = controller, ledger, session, keeping
        kept._answered, kept._answered_by, kept._original = {}, {}, kept
        DeferredToolHandler.__init__(kept, kept.__call__, id=self.id, inherit=self.inherit)
        return kept

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Answer all deferred calls of a response. Without a UI, leave them to the caller of the run."""
        if self._keeping is not None and not self.is_nested:
            return await self._keeping.keep(ctx, requests)
        controller = self.controller
        is_alone = controller.ui is None and controller.mode == 'interactive' and not self.is_nested
        if is_alone and ctx.agent is not None and allows_deferred(ctx.agent.output_type):
            prepared = await self._batch(ctx, requests).prepare()
            asked = [each.request for each in prepared if each.verdict.is_needs_approval]
            if any(each is not None for each in await controller.triage(asked)):
                return None
        results = await super().handle_deferred_tool_calls(ctx, requests=requests)
        assert results is not None, 'the handler answers every call'
        self._answered.setdefault(ctx.run_id, set()).update(results.approvals)
        return results

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Guard a tool that another capability added around the guard, such as the code mode of a harness."""
        tool = find_tool(ctx, call.tool_name)
        is_free = only_reveals(tool_def) and self.controller.policy.rule_for(call.tool_name).approval is None
        if tool is None or is_free or not is_outside(tool):
            return await handler(args)
        guard, checks = self.guard(FunctionToolset()), own_checks(None, tool)
        return await guard.guarded(call.tool_name, args, ctx, tool, handler, checks=checks)

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Refuse a call of such a tool whose arguments another capability changed after the call was judged."""
        # Older hosts call this hook before the other one, which then judges what all capabilities made of the call.
        if is_guarded(ctx, self.controller) and not is_same(ctx, call.tool_name, args):
            refuse(CHANGED, 'refused')
        return args

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Keep which calls of the run were answered here, until the run ends."""
        try:
            return await super().wrap_run(ctx, handler=handler)
        finally:
            self._answered.pop(ctx.run_id, None)
            self._answered_by.pop(ctx.run_id, None)

    @property
    def has_on_event(self) -> bool:
        """Return `False`, because the host reports the results of deferred calls in runs that do not stream, too."""
        return False

    def listens_to(self, event: AgentStreamEvent) -> bool:
        """Whether `on_event` wants the event."""
        return isinstance(event, DeferredToolResultsEvent)

    async def on_event(self, ctx: RunContext[Any], *, event: AgentStreamEvent) -> None:
        """Note the names that other capabilities give for who answered. Older hosts tell no names."""
        if isinstance(event, DeferredToolResultsEvent):
            self._answered_by[ctx.run_id] = getattr(event.results, 'answered_by', {})

    def is_declared(self, ctx: RunContext[Any], tool_name: str) -> bool:
        """Return whether a tool is declared as deferred, which its guard hides from the host."""
        return super().is_declared(ctx, tool_name) or is_declared(find_tool(ctx, tool_name))

    def has_answered(self, ctx: RunContext[Any]) -> bool:
        """Whether the call being executed was decided here, in this run."""
        return ctx.tool_call_id in self._answered.get(ctx.run_id, ())

    def answered_by(self, ctx: RunContext[Any]) -> str | None:
        """Return the name that another capability gave for who approved the call being executed, if it gave one."""
        return self._answered_by.get(ctx.run_id, {}).get(ctx.tool_call_id or '')

    async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        """Answer all deferred calls of a response, as a `deferred_tool_handler`.

        Raises:
            StoreError: Remembered approvals cannot be trusted or saved. None of the calls in `requests` has run.
        """
        if self._keeping is not None:
            self._keeping.refuse(ctx, requests)
        return await self._batch(ctx, requests).answer()

    def _batch(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> Batch:
        facts = facts_of(ctx, self.session, requester=self.requester)
        return Batch(self.controller, requests, external=self.external, facts=facts, ctx=ctx, ledger=self.ledger)

    async def answer(
        self,
        requests: DeferredToolRequests,
        *,
        session: str | None = None,
        caller: str | None = None,
        messages: Sequence[ModelMessage] | None = None,
    ) -> DeferredToolResults:
        """Answer every deferred call that a run ended with, outside of the run.

        Args:
            requests: The run's output.
            session: The conversation for which approvals are remembered. `None` uses `session` of this object if it is
                a name, else the whole memory as one conversation.
            caller: The agent's name.
            messages: The run's `all_messages()`, by which a ledger identifies the calls. With a ledger, each external
                call is executed at most once, however often its run is answered.

        Returns:
            The results of all calls, to be passed as `deferred_tool_results` when the run is resumed.

        Raises:
            StoreError: Remembered approvals cannot be trusted or saved.
            UserError: There are a ledger and external functions, and the messages do not identify the calls.
        """
        place = None
        if self.ledger is not None and self.external:
            place = _place_of(requests, messages or ())
        named = self.session if isinstance(self.session, str) else None
        facts = CallFacts(session_id=session or named, caller=caller)
        batch = Batch(
            self.controller,
            requests,
            external=self.external,
            facts=facts,
            ctx=None,
            ledger=self.ledger,
            place=place,
        )
        return await batch.answer()

    answer_sync = blocking(answer)
    """Like `answer`, for synchronous code. Blocks until all calls are decided."""

    @property
    def is_kept(self) -> bool:
        """Whether a ledger executes approved calls."""
        return self.ledger is not None or self._keeping is not None

    async def execute_allowed(
        self, ctx: RunContext[Any], gate: Gate, allowed: Allowed, run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Execute a call that the guard allows, and log its outcome. A ledger executes approved calls at most once."""
        is_once = ctx.tool_call_approved and not allowed.call.is_enclosed
        execute = partial(execute_once, self.ledger if is_once else None, gate, allowed, run, ctx=ctx)
        return await (self._keeping.execute(execute) if self._keeping is not None and is_once else execute())


def _place_of(requests: DeferredToolRequests, messages: Sequence[ModelMessage]) -> CallPlace:
    ids = {call.tool_call_id for call in (*requests.approvals, *requests.calls)}
    for end in range(len(messages), 0, -1):
        made = messages[end - 1]
        if isinstance(made, ModelResponse) and ids <= {call.tool_call_id for call in made.tool_calls}:
            if made.conversation_id or made.run_id:
                # Attack: a later response has the same id, so that the call would count as another one.
                return CallPlace(messages[:end], made.conversation_id or '', made.run_id)
            break
    raise UserError('With a ledger, `answer` needs the messages that have the calls: `messages=result.all_messages()`.')


def capabilities_of(agent: AbstractAgent[Any, Any]) -> list[AbstractCapability[Any]]:
    """Return the capabilities that an agent was built with. A run's own would replace those of the same id."""
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return found


def as_approvals(given: object, options: Mapping[str, Any]) -> Approvals:
    """Return `given`, or the approvals of a controller with these options.

    Raises:
        UserError: `given` is neither, or has options of its own.
    """
    if isinstance(given, Approvals):
        if options:
            names = ', '.join(f'`{name}`' for name in options)
            raise UserError(f'The `Approvals` have their own {names}; give it to their constructor.')
        return given
    if not isinstance(given, ApprovalController):
        raise UserError(f'`ApprovalToolset` takes `Approvals` or an `ApprovalController`, not {type(given).__name__}.')
    try:
        return Approvals(given, **options)
    except ValueError as error:
        raise UserError(f'`ApprovalToolset` cannot be made: {error}.') from None
