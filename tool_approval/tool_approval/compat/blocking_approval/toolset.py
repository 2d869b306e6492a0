"""Ask for approval before a tool of another toolset runs, and raise an exception if the call is refused."""

from __future__ import annotations

import copy
import inspect
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, cast

from pydantic import BaseModel

from tool_approval.approvals import Approvals, Path
from tool_approval.core.arguments import materialised
from tool_approval.core.config import Default
from tool_approval.core.entries import Outcome
from tool_approval.core.errors import MissingExtraError, NotCanonicalError
from tool_approval.core.gate import CHANGED, Gate
from tool_approval.core.policy import ApprovalPolicy
from tool_approval.core.presentation import NEEDS_A_PERSON
from tool_approval.core.protocols import AuditSink
from tool_approval.core.request import ApprovalContext, describe
from tool_approval.core.request import ApprovalRequest as CoreRequest
from tool_approval.core.tool_checks import approving, ask_check, judging
from tool_approval.core.verdict import ApprovalResult

try:
    from pydantic_ai.tools import AgentDepsT, RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
except ImportError as error:
    raise MissingExtraError('pydantic_ai', extra='pydantic-ai') from error

from tool_approval.integrations.pydantic_ai.arguments import function_of
from tool_approval.integrations.pydantic_ai.requests import executing
from tool_approval.integrations.pydantic_ai.results import outcome_of
from tool_approval.integrations.pydantic_ai.seatbelt import frozen, guarding

from .memory import ApprovalMemory
from .types import (
    ApprovalBlocked,
    ApprovalCallback,
    ApprovalConfig,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalRequest,
    ensure_decision,
    needs_approval_from_config,
)


class ApprovalToolset(WrapperToolset[AgentDepsT]):
    """Asks a callback before a tool runs. A denied or blocked call raises an exception, which ends the agent's run.

    The first of these verdicts decides: (1) a block from any source, (2) `tool_configs`, (3) the inner toolset's
    `needs_approval`, or `config` if there is no such method, (4) `@requires_approval` on the tool's function, (5) the
    default, which is to ask.

    A plain callback blocks the event loop until the callback returns. An async callback is awaited.
    """

    def __init__(
        self,
        inner: AbstractToolset[AgentDepsT],
        approval_callback: ApprovalCallback,
        memory: ApprovalMemory | ApprovalConfig | None = None,
        config: ApprovalConfig | None = None,
        *,
        pre_approved: Iterable[str] | None = None,
        tool_configs: Mapping[str, Any] | None = None,
        default: Default = 'required',
        log: Path | AuditSink | None = None,
    ) -> None:
        """Wrap `inner`.

        Args:
            inner: The toolset whose tools need approval.
            approval_callback: Decides each request: a plain function, or an async one.
            memory: Calls approved for the session; with `None`, a new memory is created. A mapping in this position is
                used as the `config`, as in version 0.9. Approvals are then not remembered.
            config: Settings by tool name; `pre_approved: True` lets a tool run without asking. If `inner` has a
                `needs_approval` method, only that method gets the config, as an optional fourth argument.
            pre_approved: Deprecated: names of tools to run without asking, unless they have an entry in `tool_configs`.
            tool_configs: Settings by tool name. `approval` is `required`, `none`, `blocked` (or `deny`), or
                `once_per_session`, which remembers each approval for later calls with the same arguments. This setting
                overrides `needs_approval`, but unblocks no call.
            default: Verdict if no other source decides: `required`, or `none` to run the tool without asking. Only
                functions of a `FunctionToolset` can be marked with `@requires_approval`.
            log: Path of a log of decisions and outcomes, or an audit sink. Calls that run without asking are not
                logged. If a decision cannot be logged, the call raises `AuditError`, and the tool does not run.

        Raises:
            ApprovalConfigError: `tool_configs` has an unknown key or value.
            TypeError: The third argument is neither a memory nor a mapping, or `config` is given twice.
            ValueError: `default` is neither `required` nor `none`.
        """
        super().__init__(inner)
        if isinstance(memory, Mapping):
            if config is not None:
                raise TypeError('`config` is given twice: as the third argument and by name')
            self._memory, config = None, memory
        elif memory is None:
            self._memory = ApprovalMemory()
        elif callable(getattr(memory, 'lookup', None)) and callable(getattr(memory, 'store', None)):
            self._memory = memory
        else:
            raise TypeError(f'expected an `ApprovalMemory` or a mapping as third argument, not {memory!r}')
        if default not in ('required', 'none'):
            raise ValueError(f"unknown default {default!r}; use 'required' or 'none'")
        if pre_approved is not None:
            warnings.warn(
                '`pre_approved` will be removed in the next major version; '
                "use tool_configs={name: {'approval': 'none'}}",
                DeprecationWarning,
                stacklevel=2,
            )
        self.config: ApprovalConfig = {} if config is None else config
        self._approval_callback = approval_callback
        entries = {name: {'approval': 'none'} for name in pre_approved or ()} | dict(tool_configs or {})
        self._once_per_session = {name for name, entry in entries.items() if _older_value(entry) == 'once_per_session'}
        self._policy = ApprovalPolicy({name: _in_todays_words(entry) for name, entry in entries.items()})
        self._default = default
        self._gate = None if log is None else Approvals(log=log).gate

    @property
    def id(self) -> str | None:
        """Id of the inner toolset."""
        return self.wrapped.id

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the inner toolset."""
        # A copy under construction has no `wrapped` yet, and Python looks up optional special methods on it.
        if name == 'wrapped' or name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    # The base class compares only the wrapped toolsets; wrappers with different callbacks are not equal.
    __eq__ = object.__eq__  # pyright: ignore[reportAssignmentType]
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return a copy of this wrapper, with the result of `wrapped.for_run` as the inner toolset."""
        return self._around(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return a copy of this wrapper, with the result of `wrapped.for_run_step` as the inner toolset."""
        return self._around(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(
        self, visitor: Callable[[AbstractToolset[AgentDepsT]], AbstractToolset[AgentDepsT]]
    ) -> AbstractToolset[AgentDepsT]:
        """Let the visitor replace the inner toolset, and return a copy of this wrapper with the new inner toolset."""
        return self._around(self.wrapped.visit_and_replace(visitor))

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Ask if necessary, and call the tool.

        Raises:
            ApprovalBlocked: The toolset or the configuration forbids the call, or the arguments were changed while the
                callback was asked. The tool has not run.
            AuditError: The decision could not be logged. The tool has not run.
            ApprovalDenied: The callback denied the call. The tool has not run.
            TypeError: `needs_approval` or the callback returned a value of a wrong type. The tool has not run.
            Exception: Any exception that `needs_approval`, the callback or the tool raises. The tool has not run,
                unless it raised the exception itself.
        """
        args = _by_name(tool_args)
        if any(isinstance(value, Iterator) for value in args.values()):
            try:
                args = tool_args = materialised(args)
            except NotCanonicalError as error:
                raise ApprovalBlocked(name, f'the arguments are invalid ({error.problem})') from None
        with judging():
            record = _Record() if self._gate is None else await _Record.of(self._gate, name, args, ctx, tool)
            verdict = await self._judge(name, args, ctx, tool)
            if verdict.bound_to.get(NEEDS_A_PERSON) is True:
                verdict = ApprovalResult.blocked('only a prompt that shows the whole request can approve this call')
            _check_block(name, verdict, record)
            if verdict.is_pre_approved:
                record, approved = record.of_unasked(), None
            else:
                approved, shown = args, frozen(args)
                try:
                    decision = await self._ask(name, args, ctx, verdict)
                except ApprovalDenied as denial:
                    record.decide(approved=False, by='ui', note=denial.decision.note)
                    raise
                # Attack: the callback changes the arguments that it was shown, or the call is blocked meanwhile.
                again = await self._judge(name, args, ctx, tool)
                _check_block(name, again if frozen(args) == shown else _CHANGED, record)
                record.decide(approved=True, by='memory' if decision is None else 'ui')
                if decision is not None and self._memory is not None:
                    self._memory.store(name, args, decision)
            judged = [function_of(tool), *([] if self._has_two_checks else [self.wrapped])]
            with approving(approved, verdict.bound_to), guarding(ctx, tool_args, judged), record.execution():
                return await super().call_tool(name, tool_args, ctx, tool)

    @property
    def _has_two_checks(self) -> bool:
        # `needs_approval` is asked here, so the other check would not be.
        return all(callable(getattr(self.wrapped, name, None)) for name in ('needs_approval', 'check_approval'))

    async def _judge(
        self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> ApprovalResult:
        configured = self._policy.rule_for(name, args).approval
        if configured == 'blocked':
            return ApprovalResult.blocked('the tool is blocked by `tool_configs`')
        own, marked = await self._check(name, args, ctx), await self._marked(name, args, tool)
        verdicts = [verdict for verdict in (own, marked) if verdict is not None]
        for verdict in verdicts:
            if verdict.is_blocked:
                return verdict
        if configured == 'required':
            asking = (verdict for verdict in verdicts if verdict.is_needs_approval)
            return next(asking, ApprovalResult.needs_approval())
        if configured is None and own is not None:
            return own
        is_default = marked is None and self._default == 'none'
        if configured == 'none' or is_default or needs_approval_from_config(name, self.config).is_pre_approved:
            return ApprovalResult.pre_approved()
        return marked or ApprovalResult.needs_approval()

    async def _check(self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT]) -> ApprovalResult | None:
        """Return the verdict of the inner toolset."""
        check: object = getattr(self.wrapped, 'needs_approval', None)
        if not callable(check):
            return await ask_check(self.wrapped, ApprovalContext(tool_name=name, args=args))
        verdict = _call_check(check, name, args, ctx, self.config)
        return _read_verdict(await verdict if inspect.isawaitable(verdict) else verdict)

    async def _marked(self, name: str, args: dict[str, Any], tool: ToolsetTool[AgentDepsT]) -> ApprovalResult | None:
        """Return the verdict of `@requires_approval`, or `None` if the tool's function does not have this decorator."""
        function = function_of(tool)
        if function is None:
            return None
        verdict = await ask_check(function, ApprovalContext(tool_name=name, args=args))
        if verdict == ApprovalResult.needs_approval():  # a mark without arguments gives no details
            return ApprovalResult.needs_approval(_plain_description(name))
        return verdict

    async def _ask(
        self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], verdict: ApprovalResult
    ) -> ApprovalDecision | None:
        """Return the callback's approval, or `None` if the call is approved for the session."""
        remembered = None if self._memory is None else self._memory.lookup(name, args)
        if remembered is not None and remembered.approved:
            return None
        description = self._describe(name, args, ctx, verdict)
        answer = self._approval_callback(ApprovalRequest(tool_name=name, tool_args=args, description=description))
        decision = ensure_decision(await answer if inspect.isawaitable(answer) else answer)
        if not decision.approved:
            raise ApprovalDenied(name, decision)
        return decision.model_copy(update={'remember': 'session'}) if name in self._once_per_session else decision

    def _describe(self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], verdict: ApprovalResult) -> str:
        rule = self._policy.rule_for(name, args)
        if description := rule.description or verdict.description:
            return description
        describe_call: object = getattr(self.wrapped, 'get_approval_description', None)
        if callable(describe_call):
            return cast('str', describe_call(name, args, ctx))
        if rule.approval == 'required':
            return _plain_description(name)
        # In full: a callback may show only this line, and a cut would hide what runs.
        return describe(name, args, max_chars=sys.maxsize)

    def _around(self, wrapped: AbstractToolset[AgentDepsT]) -> ApprovalToolset[AgentDepsT]:
        if wrapped is self.wrapped:
            return self
        around = copy.copy(self)
        around.wrapped = wrapped
        return around


_CHANGED = ApprovalResult.blocked(CHANGED)


@dataclass
class _Record:
    """Logs what was decided about a call, and how the call ended. Without a log, it does nothing."""

    gate: Gate | None = None
    request: CoreRequest | None = None

    @classmethod
    async def of(
        cls, gate: Gate, name: str, args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> _Record:
        call, problem = executing(ctx, name, args, tool=tool)
        return cls(gate, (await gate.prepare(call, blocked=problem)).request)

    def decide(self, *, approved: bool, by: str, note: str | None = None) -> None:
        if self.gate is not None and self.request is not None:
            self.gate.controller.record_decision(self.request, approved=approved, note=note, by=by)

    def of_unasked(self) -> _Record:
        if self.gate is None or self.request is None or not self.gate.controller.logs_unasked:
            return _Record()
        self.gate.controller.record_unasked(self.request)
        return self

    def block(self, reason: str | None) -> None:
        if self.gate is not None and self.request is not None:
            self.gate.controller.record_unasked(self.request, note=reason or 'The call is blocked.')

    @contextmanager
    def execution(self) -> Generator[None]:
        started_at = None if self.gate is None else self.gate.controller.now()
        try:
            yield
        except BaseException as error:
            self._end(outcome_of(error), error, started_at=started_at)
            raise
        self._end('executed', started_at=started_at)

    def _end(self, outcome: Outcome, error: BaseException | None = None, *, started_at: datetime | None) -> None:
        if self.gate is not None and self.request is not None:
            error = error if outcome == 'failed' else None
            self.gate.controller.record_outcome(self.request, outcome, error=error, started_at=started_at)


def _check_block(name: str, verdict: ApprovalResult, record: _Record) -> None:
    if verdict.is_blocked:
        record.block(verdict.reason)
        raise ApprovalBlocked(name, verdict.reason)


def _plain_description(name: str) -> str:
    return f'Tool call: {name}'


def _by_name(tool_args: object) -> dict[str, Any]:
    """Return argument values by parameter name, even if validation has turned the arguments into an object."""
    if isinstance(tool_args, dict):
        return cast('dict[str, Any]', tool_args)
    if isinstance(tool_args, Mapping | BaseModel):
        return dict(cast('Mapping[str, Any]', tool_args))
    if is_dataclass(tool_args):
        return {field.name: getattr(tool_args, field.name) for field in fields(tool_args)}
    raise TypeError(f'arguments of type {type(tool_args).__name__} cannot be shown to an approver')


def _call_check(check: Callable[..., object], name: str, args: Any, ctx: object, config: object) -> object:
    """Call `check` with as many arguments as it accepts: all four, the first three, or the first two."""
    signature = inspect.signature(check)
    attempts: list[tuple[tuple[object, ...], dict[str, object]]] = [
        ((name, args, ctx, config), {}),
        ((name, args, ctx), {'config': config}),
        ((name, args, ctx), {}),
        ((name, args), {}),
    ]
    for positional, named in attempts:
        try:
            signature.bind(*positional, **named)
        except TypeError:
            continue
        return check(*positional, **named)
    raise TypeError(f'`needs_approval{signature}` must take `name, tool_args, ctx` and optionally `config`')


def _read_verdict(said: object) -> ApprovalResult:
    """Return the verdict for a value that `needs_approval` returned. `SupportsNeedsApproval` lists the valid values."""
    match said:
        case ApprovalResult():
            return said
        case True | object(is_blocked=False, is_needs_approval=True, is_pre_approved=False):
            return ApprovalResult.needs_approval()
        case False | object(is_blocked=False, is_needs_approval=False, is_pre_approved=True):
            return ApprovalResult.pre_approved()
        case {'description': str() as description}:
            return ApprovalResult.needs_approval(description=description)
        case object(is_blocked=True, is_needs_approval=False, is_pre_approved=False):
            reason: object = getattr(said, 'block_reason', None)
            return ApprovalResult.blocked(reason if isinstance(reason, str) else '')
        case _:
            raise TypeError(
                "`needs_approval` must return an `ApprovalResult`, a bool, or `{'description': ...}`, "
                f'not {type(said).__name__}'
            )


_TODAYS_WORDS = {'deny': 'blocked', 'once_per_session': 'required'}


def _older_value(entry: object) -> str | None:
    approval = cast('Mapping[str, object]', entry).get('approval') if isinstance(entry, Mapping) else None
    return approval if isinstance(approval, str) and approval in _TODAYS_WORDS else None


def _in_todays_words(entry: Any) -> Any:
    older = _older_value(entry)
    return entry if older is None else {**entry, 'approval': _TODAYS_WORDS[older]}
