"""Ask for approval in the OpenAI Agents SDK, while the run waits: for one tool, or for all tools of an agent."""

from __future__ import annotations

try:
    import agents as _host
except ImportError:
    from tool_approval.core.errors import MissingExtraError

    raise MissingExtraError('openai-agents', extra='openai-agents') from None

import copy
import hashlib
import inspect
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

from agents import (
    Agent,
    CodeInterpreterTool,
    FileSearchTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    ImageGenerationTool,
    ProgrammaticToolCallingTool,
    RunContextWrapper,
    Tool,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolSearchTool,
    WebSearchTool,
)
from agents.function_schema import function_schema as _function_schema

# The public function does not say whether the result is an error; the extra names the releases that have this one.
from agents.tool import _invoke_function_tool_with_metadata as invoke  # pyright: ignore[reportPrivateUsage]
from agents.tool_context import ToolContext
from agents.tracing import get_current_trace
from pydantic import BaseModel, ValidationError

from tool_approval.approvals import Approvals
from tool_approval.core.arguments import materialised, read_arguments
from tool_approval.core.calls import Allowed, Call, Refused, Responded, cannot_be_judged
from tool_approval.core.canonical import canonical_json
from tool_approval.core.edits import Reading, edited
from tool_approval.core.errors import NotCanonicalError, UsedUp, check_type
from tool_approval.core.fields import parameters_of
from tool_approval.core.gate import Gate
from tool_approval.core.request import CallFacts
from tool_approval.core.tool_checks import judging

__all__ = ('guarded', 'guarded_tool')

del _host

OfRun: TypeAlias = str | Callable[[RunContextWrapper[Any]], str | None] | None
"""A text about a run, or a function that returns the text for the run's context; `None` for nothing."""

_HOSTED = (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    ProgrammaticToolCallingTool,
    ToolSearchTool,
    WebSearchTool,
)
"""Tools that run at the model's provider, so that no call of them reaches this process."""

_PARTS = ('text', 'image', 'file')
"""Types of the parts that a result may consist of."""

_IS_ERROR = '_function_tool_default_failure_handled'
"""Attribute of a call's context: whether the result is an error text, and need not have the form of the tool's output.
The SDK has no public way to return such a text (test_a_refusal_needs_no_form)."""


def guarded(agent: Agent[Any], approvals: Approvals, *, session: OfRun = None, requester: OfRun = None) -> Agent[Any]:
    """Return a copy of an agent, all of whose tools are decided with `approvals`: functions, MCP servers and agents.

    Agents to which the agent can hand over are guarded too, unless they are guarded already. An agent that is used as a
    tool is not: guard it before `as_tool`, or only the call of the whole agent is asked about.

    Args:
        agent: The agent. It is not modified. Tools that it gets later are guarded when a run uses them.
        approvals: Rules, memory, UI, log and key.
        session: Id of the conversation for which approvals are remembered. `None` uses the `group_id` of the run's
            configuration.
        requester: Id of the person that the agent works for.

    Raises:
        TypeError: The agent is an instance of a subclass, or has a tool that runs in this process and is not a
            function: a computer, a shell, patches or a custom tool. Or `approvals` has a wrong type, or a ledger.
    """
    return _Guard(approvals, session, requester).agent(agent, {})


def guarded_tool(
    tool: FunctionTool, approvals: Approvals, *, session: OfRun = None, requester: OfRun = None
) -> FunctionTool:
    """Return a copy of a function tool whose calls are decided with `approvals`; see `guarded`.

    Raises:
        TypeError: `tool` is not a function tool. Use `function_tool` of the SDK to make a tool from a function.
    """
    check_type('tool', tool, 'a `FunctionTool`', FunctionTool)
    return cast('FunctionTool', _Guard(approvals, session, requester).tool(tool))


class _Guard:
    def __init__(self, approvals: Approvals, session: OfRun, requester: OfRun) -> None:
        check_type('approvals', approvals, 'an `Approvals`', Approvals)
        if approvals.ledger is not None:
            raise TypeError('the calls of the OpenAI Agents SDK cannot go through a ledger; make `Approvals` without')
        self.approvals = approvals
        self._session = session
        self._requester = requester

    def agent(self, agent: Agent[Any], made: dict[int, Agent[Any]]) -> Agent[Any]:
        """Return the guarded copy of an agent, which `made` has for agents that were met before."""
        if isinstance(agent, _GuardedAgent):
            return agent
        if type(agent) is not Agent:
            raise TypeError(f'a {type(agent).__name__} may bring tools of its own, so it cannot be guarded')
        if id(agent) not in made:
            given: dict[str, Any] = {each.name: getattr(agent, each.name) for each in fields(agent) if each.init}
            given |= {'tools': [self.tool(each) for each in agent.tools], 'handoffs': []}
            made[id(agent)] = copied = _GuardedAgent(**given, guard=self)
            copied.handoffs = [self._handoff(each, made) for each in agent.handoffs]
        return made[id(agent)]

    def _handoff(self, target: Agent[Any] | Handoff[Any, Any], made: dict[int, Agent[Any]]) -> Any:
        if not isinstance(target, Handoff):
            return self.agent(target, made)
        hand_over = target.on_invoke_handoff

        async def on_invoke_handoff(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
            return self.agent(await hand_over(context, arguments), made)

        return replace(target, on_invoke_handoff=on_invoke_handoff)

    def tool(self, tool: Tool) -> Tool:
        """Return a guarded copy of a tool.

        Raises:
            TypeError: The tool runs in this process, and is not a function.
        """
        if isinstance(tool, _HOSTED) or isinstance(getattr(tool, 'on_invoke_tool', None), _Invoker):
            return tool
        if not isinstance(tool, FunctionTool):
            raise TypeError(f'a {type(tool).__name__} cannot be guarded; offer what it does as a function')
        guarded = copy.copy(tool)
        # The time that a tool may take does not include the time for an answer: the invoker observes it.
        guarded.timeout_seconds = None
        guarded.on_invoke_tool = _Invoker(self, tool)
        return guarded

    def facts(self, context: ToolContext[Any], tool_digest: str | None) -> CallFacts:
        """Return what is known about a call."""
        trace, config = get_current_trace(), context.run_config
        session = _of_run(self._session, context) or (None if config is None else config.group_id)
        # Without tracing, the calls of one run cannot be distinguished from others: no approval outlasts its call.
        run_id = '' if trace is None else trace.trace_id
        return CallFacts(
            run_id=run_id if run_id.startswith('trace_') else f'call_{secrets.token_hex(8)}',
            session_id=session,
            caller=None if context.agent is None else context.agent.name,
            requester=_of_run(self._requester, context),
            tool_digest=tool_digest,
        )


@dataclass
class _GuardedAgent(Agent[Any]):
    guard: _Guard | None = None

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        # Attack: a hook, a copy with other tools or an MCP server brings tools that are not guarded yet
        # (test_tools_that_come_later_are_guarded).
        guard = cast('_Guard', self.guard)
        return [guard.tool(each) for each in await super().get_all_tools(run_context)]


class _Invoker:
    """Runs a tool's call, if it is allowed. It takes the place of the tool's own `on_invoke_tool`."""

    def __init__(self, guard: _Guard, tool: FunctionTool) -> None:
        self._guard = guard
        self._tool = tool

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        gate = self._guard.approvals.gate
        with judging():
            try:
                settled = await self._settle(gate, context, arguments)
            except (ValueError, RecursionError) as error:
                settled = Refused(reason=cannot_be_judged(self._tool.qualified_name, _problem(error)))
            if isinstance(settled, Allowed):
                try:
                    return await self._run(gate, settled, context)
                except UsedUp as over:
                    settled = Refused(reason=over.reason)
        is_result = isinstance(settled, Responded) and isinstance(settled.response, Mapping)
        setattr(context, _IS_ERROR, not is_result)
        return settled.told if isinstance(settled, Refused) else settled.text

    async def _settle(self, gate: Gate, context: ToolContext[Any], arguments: str) -> Refused | Allowed | Responded:
        given: object = json.loads(arguments) if arguments else {}
        if not isinstance(given, dict):
            raise ValueError('they are not a JSON object')  # noqa: TRY004 - like all other reasons
        call = self._read(context, cast('dict[str, Any]', given))
        prepared = await gate.prepare(call)

        async def again(call: Call) -> Call:
            # A check may have changed what it was shown, and a validator may return another value each time.
            return self._read(context, call.given or {})

        return await gate.settle(prepared, again)

    async def _run(self, gate: Gate, allowed: Allowed, context: ToolContext[Any]) -> Any:
        text = json.dumps(allowed.call.given)
        context.tool_arguments = text
        with gate.execution(allowed) as execution:
            result = await invoke(function_tool=self._tool, context=context, arguments=text)
            if result.is_sdk_generated_error:
                execution.outcome = 'failed'
                setattr(context, _IS_ERROR, True)
        # A result of a declared form has no place for a notice.
        has_place = self._tool.output_json_schema is None or result.is_sdk_generated_error
        return _with_notice(result.output, execution.notice) if has_place else result.output

    def _read(self, context: ToolContext[Any], given: Mapping[str, Any]) -> Call:
        own = json.loads(json.dumps(given))
        reading = self._validated(own)

        def reread(changed: Mapping[str, Any]) -> Call:
            model = self._model
            known = {} if model is None else parameters_of(model.model_fields, model.model_config)
            return self._read(context, edited(changed, own, reading, self._validated, parameters=known))

        return Call(
            tool_name=self._tool.qualified_name,
            arguments=reading.arguments,
            values=reading.values,
            given=own,
            facts=self._guard.facts(context, self._digest),
            tool_call_id=context.tool_call_id,
            checks=[] if self._function is None else [self._function],
            framework_context=context,
            bound_to={'tool_definition': self._digest},
            args_schema=self._tool.params_json_schema,
            reread=reread,
        )

    def _validated(self, given: dict[str, Any]) -> Reading:
        model = self._model
        if model is None:
            # The tool reads its arguments itself, so that they are shown as the model gave them.
            return Reading(given, read_arguments(given, given))
        try:
            # Not `model_validate`: a parameter's alias may be given in the same way as the SDK gives it.
            found = model(**given)
        except ValidationError as error:
            problems = [f'{".".join(map(str, each["loc"]))}: {each["msg"]}' for each in error.errors()]
            raise ValueError(f'the values do not match the schema of the tool: {"; ".join(problems)}') from None
        except Exception as error:  # noqa: BLE001 - a tool's own validator may fail in any way
            raise ValueError(f'the values could not be validated ({type(error).__name__})') from None
        values = materialised({name: vars(found)[name] for name in model.model_fields})
        known = parameters_of(model.model_fields, model.model_config)
        return Reading(values, read_arguments(values, given, parameters=known))

    @cached_property
    def _function(self) -> Callable[..., Any] | None:
        return getattr(self._tool, '__wrapped__', None)

    @cached_property
    def _model(self) -> type[BaseModel] | None:
        """The model of a function's parameters, as the SDK makes it; `None` for a tool that is made in another way."""
        if self._function is None or not inspect.isroutine(self._function):
            return None
        tool, strict = self._tool, self._tool.strict_json_schema
        made = _function_schema(self._function, name_override=tool.name, strict_json_schema=strict)
        return made.params_pydantic_model

    @cached_property
    def _digest(self) -> str | None:
        definition = [self._tool.qualified_name, self._tool.description, self._tool.params_json_schema]
        try:
            return hashlib.sha256(canonical_json(definition).encode()).hexdigest()
        except NotCanonicalError:
            return None


def _of_run(given: OfRun, context: RunContextWrapper[Any]) -> str | None:
    return given(context) if callable(given) else given


def _problem(error: Exception) -> str:
    if isinstance(error, NotCanonicalError):
        return error.problem
    if isinstance(error, RecursionError | json.JSONDecodeError):
        return 'they are not valid JSON'
    return str(error)


def _with_notice(result: object, notice: str | None) -> Any:
    """Add a notice for the model to a tool's result, which may be a text, an image, a file or a list of these."""
    if notice is None:
        return result
    text = f'[{notice}]'
    parts = list(cast('list[object]', result)) if isinstance(result, list | tuple) else [result]
    if parts and all(map(_is_part, parts)):
        return [*parts, ToolOutputText(text=text)]
    return f'{result}\n\n{text}'


def _is_part(value: object) -> bool:
    kind = cast('dict[str, object]', value).get('type') if isinstance(value, dict) else None
    return isinstance(value, ToolOutputText | ToolOutputImage | ToolOutputFileContent) or kind in _PARTS
