"""The wrapper that asks before a tool of another toolset runs, and raises if it may not."""

from __future__ import annotations

import copy
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from pydantic import BaseModel

from tool_approval.core.arguments import materialised
from tool_approval.core.config import Default, ToolRule
from tool_approval.core.errors import MissingExtraError, NotCanonicalError
from tool_approval.core.policy import ApprovalPolicy
from tool_approval.core.request import ApprovalContext, describe
from tool_approval.core.tool_checks import approving, ask_check, judging
from tool_approval.core.verdict import ApprovalResult

try:
    from pydantic_ai.tools import AgentDepsT, RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
except ImportError as error:
    raise MissingExtraError('pydantic_ai', extra='pydantic-ai') from error

from tool_approval.integrations.pydantic_ai.guard import already_judged, logic_of

from .memory import ApprovalMemory
from .types import (
    ApprovalBlocked,
    ApprovalCallback,
    ApprovalConfig,
    ApprovalDenied,
    ApprovalRequest,
    ensure_decision,
    needs_approval_from_config,
)


class ApprovalToolset(WrapperToolset[AgentDepsT]):
    """Asks a callback before a tool runs. A denial or a block raises, and with that ends the agent's run.

    The first that speaks wins: blocked by anyone; `tool_configs`; the inner toolset's `needs_approval`, or `config`
    where it has none; `@requires_approval` on the tool's function; the default, which is to ask.

    A plain callback is called on the event loop, and blocks it until it returns: nothing else of the program goes on.
    An async one is awaited.
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
    ) -> None:
        """Wrap `inner`.

        Args:
            inner: The toolset whose tools are asked about.
            approval_callback: Decides each request: a plain function, or an async one.
            memory: What was approved for the session; a new one if `None`. A mapping in this place is the `config`,
                as of 0.9, where nothing is remembered.
            config: Settings by tool name; `pre_approved: True` lets a tool run without asking. A `needs_approval` that
                takes a fourth argument is passed it, and decides alone what it means.
            pre_approved: Deprecated: names of tools to run without asking, unless they have an entry in `tool_configs`.
            tool_configs: `approval` by tool name: `required`, `none`, `blocked` (or `deny`), or `once_per_session`,
                which asks once for the same arguments. It overrules `needs_approval`, but no block.
            default: What holds for a tool about which nothing is said: `required`, or `none` to run it. To be marked
                by `@requires_approval`, a tool has to be a function of a `FunctionToolset`.

        Raises:
            ApprovalConfigError: `tool_configs` has an unknown key or value.
            TypeError: The third argument is neither a memory nor a mapping, or the config is given twice.
            ValueError: There is no such default.
        """
        super().__init__(inner)
        if isinstance(memory, Mapping):
            if config is not None:
                raise TypeError('`config` is given twice: in the third place, and in its own')
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
                "`pre_approved` will be removed in the next major version; use tool_configs={name: {'approval': 'none'}}",
                DeprecationWarning,
                stacklevel=2,
            )
        self.config: ApprovalConfig = {} if config is None else config
        self._approval_callback = approval_callback
        self._tool_configs = ToolConfigs(tool_configs, pre_approved)
        self._default = default

    @property
    def id(self) -> str | None:
        """The inner toolset's."""
        return self.wrapped.id

    def __getattr__(self, name: str) -> Any:
        """Whatever else the inner toolset has."""
        # A copy under construction has no `wrapped` yet, and Python asks it for optional methods of its own.
        if name == 'wrapped' or name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    # The base class compares what is wrapped; wrappers that ask different people are not alike.
    def __eq__(self, other: object) -> bool:
        """Whether it is the very same wrapper."""
        return self is other

    def __hash__(self) -> int:
        """As of any object."""
        return id(self)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The same approvals around the inner toolset of this run."""
        return self._around(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The same approvals around the inner toolset of this step."""
        return self._around(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(
        self, visitor: Callable[[AbstractToolset[AgentDepsT]], AbstractToolset[AgentDepsT]]
    ) -> AbstractToolset[AgentDepsT]:
        """The same approvals around what the visitor makes of the inner toolset."""
        return self._around(self.wrapped.visit_and_replace(visitor))

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Ask if need be, and call the tool.

        Raises:
            ApprovalBlocked: The toolset, or the configuration, forbids the call. It has not run.
            ApprovalDenied: The callback denied it. It has not run.
            TypeError: `needs_approval` or the callback returned what nobody can read. It has not run.
            Exception: Whatever `needs_approval`, the callback or the tool raise; of the first two, it has not run.
        """
        args = _by_name(tool_args)
        if any(isinstance(value, Iterator) for value in args.values()):
            try:
                args = tool_args = materialised(args)
            except NotCanonicalError as error:
                raise ApprovalBlocked(name, f'the arguments cannot be judged ({error.problem})') from None
        with judging():
            verdict = await self._judge(name, args, ctx, tool)
            if verdict.is_blocked:
                raise ApprovalBlocked(name, verdict.reason)
            if not verdict.is_pre_approved:
                await self._ask(name, args, ctx, verdict)
            with approving(None if verdict.is_pre_approved else args), already_judged(ctx):
                return await super().call_tool(name, tool_args, ctx, tool)

    async def _judge(
        self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> ApprovalResult:
        rule = self._tool_configs.rule_for(name)
        if rule.approval == 'blocked':
            return ApprovalResult.blocked('the tool is blocked by `tool_configs`')
        own, marked = await self._check(name, args, ctx), await self._marked(name, args, tool)
        for verdict in (own, marked):
            if verdict is not None and verdict.is_blocked:
                return verdict
        if rule.approval == 'none':
            return ApprovalResult.pre_approved()
        if rule.approval == 'required':
            asking = [verdict for verdict in (own, marked) if verdict is not None and verdict.is_needs_approval]
            return asking[0] if asking else ApprovalResult.needs_approval()
        if own is not None:
            return own
        if needs_approval_from_config(name, self.config).is_pre_approved:
            return ApprovalResult.pre_approved()
        if marked is None and self._default == 'none':
            return ApprovalResult.pre_approved()
        return marked or ApprovalResult.needs_approval()

    async def _check(self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT]) -> ApprovalResult | None:
        """What the inner toolset says."""
        check: object = getattr(self.wrapped, 'needs_approval', None)
        if not callable(check):
            return None
        said = call_check(check, name, args, ctx, self.config)
        return read_verdict(await said if inspect.isawaitable(said) else said)

    async def _marked(self, name: str, args: dict[str, Any], tool: ToolsetTool[AgentDepsT]) -> ApprovalResult | None:
        """What the tool's function says."""
        # The function that a tool of a `FunctionToolset` calls; within combined toolsets too.
        function = next(logic_of(None, tool), None)
        if function is None:
            return None
        said = await ask_check(function, ApprovalContext(tool_name=name, args=args))
        if said == ApprovalResult.needs_approval():  # a bare mark says no more
            return ApprovalResult.needs_approval(_plain_description(name))
        return said

    async def _ask(self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], verdict: ApprovalResult) -> None:
        memory = self._memory
        if memory is not None:
            remembered = memory.lookup(name, args)
            if remembered is not None and remembered.approved:
                return
        description = self._describe(name, args, ctx, verdict)
        request = ApprovalRequest(tool_name=name, tool_args=args, description=description)
        answer = self._approval_callback(request)
        decision = ensure_decision(await answer if inspect.isawaitable(answer) else answer)
        if not decision.approved:
            raise ApprovalDenied(name, decision)
        if memory is not None:
            if self._tool_configs.is_once_per_session(name):
                decision = decision.model_copy(update={'remember': 'session'})
            memory.store(name, args, decision)

    def _describe(self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], verdict: ApprovalResult) -> str:
        rule = self._tool_configs.rule_for(name)
        if told := rule.description or verdict.description:
            return told
        describe_call: object = getattr(self.wrapped, 'get_approval_description', None)
        if callable(describe_call):
            return cast('str', describe_call(name, args, ctx))
        if rule.approval == 'required':
            return _plain_description(name)
        # The whole of it: a callback may show nothing else, and a cut would hide what runs.
        return describe(name, args, max_chars=sys.maxsize)

    def _around(self, wrapped: AbstractToolset[AgentDepsT]) -> ApprovalToolset[AgentDepsT]:
        if wrapped is self.wrapped:
            return self
        around = copy.copy(self)
        around.wrapped = wrapped
        return around


def _plain_description(name: str) -> str:
    return f'Tool call: {name}'


def _by_name(tool_args: object) -> dict[str, Any]:
    """Argument values by parameter name: a toolset may validate them into an object of its own."""
    if isinstance(tool_args, dict):
        return cast('dict[str, Any]', tool_args)
    if isinstance(tool_args, Mapping | BaseModel):
        return dict(cast('Mapping[str, Any]', tool_args))
    if is_dataclass(tool_args):
        return {field.name: getattr(tool_args, field.name) for field in fields(tool_args)}
    raise TypeError(f'arguments that are {type(tool_args).__name__} cannot be shown to an approver')


def call_check(check: Callable[..., object], name: str, args: Any, ctx: object, config: object) -> object:
    """What `check` returns, called with as many of the four arguments as it takes: all, the first three, or two.

    Raises:
        TypeError: It takes none of these.
        Exception: Whatever it raises.
    """
    signature = inspect.signature(check)
    attempts: tuple[tuple[tuple[object, ...], dict[str, object]], ...] = (
        ((name, args, ctx, config), {}),
        ((name, args, ctx), {'config': config}),
        ((name, args, ctx), {}),
        ((name, args), {}),
    )
    for positional, named in attempts:
        try:
            signature.bind(*positional, **named)
        except TypeError:
            continue
        return check(*positional, **named)
    raise TypeError(f'`needs_approval{signature}` must take `name, tool_args, ctx` and, if it likes, `config`')


def read_verdict(said: object) -> ApprovalResult:
    """The verdict in what `needs_approval` said.

    Args:
        said: An `ApprovalResult` of ours; an object with its predicates, such as the published package's; a bool; or
            a mapping with a `description`.

    Raises:
        TypeError: It is none of these.
    """
    match said:
        case ApprovalResult():
            return said
        case True:
            return ApprovalResult.needs_approval()
        case False:
            return ApprovalResult.pre_approved()
        case {'description': str() as description}:
            return ApprovalResult.needs_approval(description=description)
        case _:
            return _read_foreign(said)


def _read_foreign(said: object) -> ApprovalResult:
    predicates = tuple(getattr(said, name, None) for name in ('is_blocked', 'is_needs_approval', 'is_pre_approved'))
    match predicates:
        case True, False, False:
            reason: object = getattr(said, 'block_reason', None)
            return ApprovalResult.blocked(reason if isinstance(reason, str) else '')
        case False, True, False:
            return ApprovalResult.needs_approval()
        case False, False, True:
            return ApprovalResult.pre_approved()
        case _:
            raise TypeError(
                "`needs_approval` must return an `ApprovalResult`, a bool, or `{'description': ...}`, "
                f'not {type(said).__name__}'
            )


_OLDER_VALUES = {'deny': 'blocked', 'once_per_session': 'required'}


class ToolConfigs:
    """`{tool name: {'approval': ..., 'description': ...}}`, checked."""

    def __init__(self, tool_configs: Mapping[str, Any] | None, pre_approved: Iterable[str] | None) -> None:
        """Read both.

        Args:
            tool_configs: `approval` is `required`, `none`, `blocked` or `deny`, `once_per_session`, or missing.
            pre_approved: Names of tools that are not asked about, unless they have an entry in `tool_configs`.

        Raises:
            ApprovalConfigError: An unknown key or value.
        """
        entries = {name: {'approval': 'none'} for name in pre_approved or ()} | dict(tool_configs or {})
        self._once_per_session = {name for name, entry in entries.items() if _approval_of(entry) == 'once_per_session'}
        self._policy = ApprovalPolicy({name: _in_todays_words(entry) for name, entry in entries.items()})

    def rule_for(self, tool_name: str) -> ToolRule:
        """What is configured for a tool; an empty rule if nothing is."""
        return self._policy.rule_for(tool_name)

    def is_once_per_session(self, tool_name: str) -> bool:
        """Whether each approval of the tool is remembered, whatever the callback says of that."""
        return tool_name in self._once_per_session


def _approval_of(entry: object) -> object:
    return cast('Mapping[str, object]', entry).get('approval') if isinstance(entry, Mapping) else None


def _in_todays_words(entry: Any) -> Any:
    approval = _approval_of(entry)
    if not isinstance(approval, str) or approval not in _OLDER_VALUES:
        return entry
    return {**entry, 'approval': _OLDER_VALUES[approval]}
