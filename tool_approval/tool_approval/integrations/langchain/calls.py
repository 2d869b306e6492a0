"""Read the arguments of a LangChain call in the form that the tool gets, and decide whether the call may run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import PydanticUserError

from tool_approval.core.arguments import CallArguments, as_json
from tool_approval.core.arguments import read_arguments as read_json
from tool_approval.core.calls import Call, GateResult, Refused
from tool_approval.core.canonical import canonical_json
from tool_approval.core.edits import Reading, edited
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.fields import Parameter, parameters_of, place_in
from tool_approval.core.gate import Gate
from tool_approval.core.request import ApprovalContext, CallFacts

from .validation import injected_fields, is_model, validated


@dataclass(frozen=True, kw_only=True)
class CallReader:
    """Reads one call of a tool, and reads it again after other code may have changed the arguments."""

    tool: BaseTool
    """Tool that would run."""
    name: str
    """Name by which the model calls the tool."""
    call_id: str | None
    """Id of the call, or `None` if the tool was called by code, not by a model."""
    facts: CallFacts
    """Run, session and agent of the call."""
    config: RunnableConfig
    """LangChain's configuration of the run, for the tool's own checks."""
    judges_injected: bool = False
    """Whether the model may set parameters that the host fills in; see `read_arguments`."""

    def read(self, given: object) -> Call:
        """Read the arguments in `given`, and return the call that has these arguments.

        Raises:
            ValueError: The arguments do not fit the tool, or cannot be judged. The error's message names the problem.
        """
        arguments = read_arguments(self.tool, given, judges_injected=self.judges_injected)
        schema = schema_of(self.tool)
        definition = definition_digest(self.tool, schema)

        def reread(changed: Mapping[str, object]) -> Call:
            return self.read(edited_arguments(self.tool, changed, arguments, judges_injected=self.judges_injected))

        facts = self.facts._replace(tool_digest=definition)
        functions = (getattr(self.tool, name, None) for name in ('func', 'coroutine'))
        return Call(
            tool_name=self.name,
            arguments=arguments.read,
            values=arguments.read.shown,
            given={**arguments.given, **arguments.injected},
            facts=facts,
            metadata={name: value for name, value in facts.as_metadata().items() if value is not None},
            tool_call_id=self.call_id,
            checks=[
                _with_config(checked, self.config)
                for checked in (self.tool, *(function for function in functions if function is not None))
            ],
            framework_context=self.config,
            # Another tool may have the same name later.
            bound_to={'tool_definition': definition},
            args_schema=schema,
            reread=reread,
        )

    def unfit(self, error: ValueError) -> Refused:
        """Return the refusal for a call whose arguments are invalid. No approver is asked."""
        return Refused(reason=f'The arguments of {self.name!r} are invalid ({error}), so the call was not run.')


def _with_config(checked: object, config: RunnableConfig) -> object:
    """Return an object with the check of a tool or function, which gets the configuration as `metadata['config']`."""
    check: object = getattr(checked, 'check_approval', None)
    if not callable(check):
        return checked

    def check_approval(context: ApprovalContext) -> object:
        # Only the check gets it: requests are stored and logged.
        return check(context.model_copy(update={'metadata': {**context.metadata, 'config': config}}))

    return SimpleNamespace(check_approval=check_approval)


async def decide_alone(gate: Gate, reader: CallReader, given: object) -> GateResult:
    """Decide a single call, which runs immediately if it is allowed.

    Raises:
        AuditError: A refusal could not be logged. No call has run.
        StoreError: Remembered approvals cannot be trusted. No call has run.
    """
    try:
        call = reader.read(given)
    except ValueError as error:
        return reader.unfit(error)
    return await gate.settle(await gate.prepare(call))


def find_facts(config: RunnableConfig, *, caller: str | None = None, run_id: str | None = None) -> CallFacts:
    """Return the run, session and agent of a call as far as these are known.

    Args:
        config: The configuration, whose `configurable.thread_id` (or else `configurable.session_id`) is the session,
            and whose `configurable.requester` is the id of the person the agent works for.
        caller: Name of the agent, instead of the name in the configuration.
        run_id: The id of the agent run. `None` uses the id in the configuration. Inside a graph, that id changes with
            each step. Therefore, if the session has no id, an approval for the session ends with the call.
    """
    configurable = cast('Mapping[str, object]', config.get('configurable') or {})
    metadata = cast('Mapping[str, object]', config.get('metadata') or {})
    step = _text(metadata.get('langgraph_checkpoint_ns'))
    # Inside another agent's tool the host passes down the outer agent's name. An unnamed agent would use the approvals
    # of the agent above it (test_unnamed_agent_in_a_tool_shares_nothing).
    named = _text(metadata.get('lc_agent_name')) if '|' not in (step or '') else None
    return CallFacts(
        run_id=run_id or _text(config.get('run_id')) or step,
        session_id=_text(configurable.get('thread_id')) or _text(configurable.get('session_id')),
        caller=caller or named,
        requester=_text(configurable.get('requester')),
    )


def _text(value: object) -> str | None:
    # The host also accepts numbers and UUIDs as ids.
    return str(value) if value is not None and value != '' else None


def schema_of(tool: BaseTool) -> Mapping[str, Any] | None:
    """Return the JSON schema of a tool's arguments as the model sees it, or `None` if it has no JSON form."""
    schema = tool.tool_call_schema
    try:
        # Some types have no JSON schema; pydantic raises several kinds of errors for them.
        parameters: Any = schema.model_json_schema() if is_model(schema) else schema
        canonical_json(parameters)
    except (NotCanonicalError, TypeError, ValueError, PydanticUserError):
        return None
    return cast('dict[str, Any]', parameters) if isinstance(parameters, dict) else None


def definition_digest(tool: BaseTool, schema: Mapping[str, Any] | None) -> str | None:
    """Return a hexadecimal digest of the tool as the model sees it, or `None` if its schema has no JSON form."""
    if schema is None:
        return None
    try:
        return hashlib.sha256(canonical_json([tool.name, tool.description, schema]).encode()).hexdigest()
    except NotCanonicalError:
        return None


@dataclass(frozen=True, kw_only=True)
class ToolArguments:
    """Arguments of one call."""

    given: dict[str, Any]
    """A copy of the given arguments, plus defaults that are made anew each time. The tool is called with this copy."""
    values: dict[str, Any]
    """Arguments that the tool's function gets: validated, with all defaults."""
    read: CallArguments
    """The same arguments in JSON form."""
    injected: dict[str, Any]
    """Arguments for parameters that the host fills in, such as the graph's state. They are passed on unchanged."""


def read_arguments(tool: BaseTool, given: object, *, judges_injected: bool = False) -> ToolArguments:
    """Read and validate the input of a tool.

    Args:
        tool: The tool.
        given: Values by parameter name, or a string, which the host uses as the tool's first parameter.
        judges_injected: Whether to judge and show the values of parameters that the host fills in. This is necessary if
            a model may have sent these values. A value without a JSON form is left out.

    Raises:
        ValueError: The arguments do not fit the tool, cannot be copied, or have no JSON form. The error's message names
            the problem.
    """
    if isinstance(given, str) and not isinstance(tool.args_schema, dict):
        given = {_first_key(tool): given}
    if not isinstance(given, Mapping):
        raise ValueError('the input is not a mapping of names to values')  # noqa: TRY004 - like all other reasons
    by_host, items = injected_keys(tool), cast('Mapping[str, Any]', given).items()
    injected = {name: value for name, value in items if name in by_host}
    try:
        passed = deepcopy({name: value for name, value in items if name not in by_host})
    except Exception as error:  # noqa: BLE001 - a value of any type may refuse to be copied, in any way
        raise ValueError(f'an argument cannot be copied ({type(error).__name__})') from None
    values = validated(tool, passed, injected)
    passed_json = as_json(passed, in_clear=True)
    # Attack: the host's own call and a model's look alike, so a model may send a value that the host should fill in.
    seen = {name: value for name, value in injected.items() if judges_injected and _is_json(value)}
    parameters = parameters_for(tool)
    read = read_json({**values, **seen}, {**_used(passed_json, values, parameters), **seen}, parameters=parameters)
    bound = {'given': passed_json, 'received': read.bound.get('received', read.shown)}
    return ToolArguments(
        given=passed,
        values={**values, **seen},
        read=read._replace(bound=bound, bound_text=canonical_json(bound)),
        injected=injected,
    )


def edited_arguments(
    tool: BaseTool, changed: Mapping[str, Any], before: ToolArguments, *, judges_injected: bool = False
) -> dict[str, Any]:
    """Return the input that a tool must be given so that it gets an approver's edit; see `edited`.

    Raises:
        ValueError: The edit does not fit the tool, does not take effect, or would change something else.
    """

    def validate(given: dict[str, Any]) -> Reading:
        arguments = read_arguments(tool, given, judges_injected=judges_injected)
        return Reading(arguments.values, arguments.read)

    before_edit = Reading(before.values, before.read)
    given = {**before.given, **before.injected}
    return edited(changed, given, before_edit, validate, parameters=parameters_for(tool))


def parameters_for(tool: BaseTool) -> dict[str, Parameter]:
    """Return how the tool's schema fills in each parameter; empty if the tool has no schema of pydantic."""
    schema = tool.args_schema
    return parameters_of(schema.model_fields, schema.model_config) if is_model(schema) else {}


def _used(given: Mapping[str, Any], values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the given values without those that the tool ignores."""
    places = [place_in(given, each.places) for name, each in parameters.items() if name in values]
    keys = {place[0] for place in places if place is not None}
    return {key: value for key, value in given.items() if key in keys or (key in values and key not in parameters)}


def _is_json(value: object) -> bool:
    match value:
        case dict():
            return all(_is_json(item) for item in cast('dict[object, object]', value).values())
        case list():
            return all(_is_json(item) for item in cast('list[object]', value))
        case _:
            return value is None or type(value) in (str, int, float, bool)


def _first_key(tool: BaseTool) -> str:
    parameters, by_host = parameters_for(tool), injected_fields(tool.args_schema)
    if not parameters:
        return next(iter(tool.args), 'tool_input')
    places = [place for name, each in parameters.items() if name not in by_host for place in each.places]
    return next((str(place[0]) for place in places if len(place) == 1), 'tool_input')


def injected_keys(tool: BaseTool) -> frozenset[str]:
    """Return the keys of arguments for the parameters that the host fills in, with their aliases."""
    # Parameters of the function that its schema does not list. The host has no public name for them; if this one goes
    # away, such a parameter is judged like any other.
    found = frozenset(cast('frozenset[str]', getattr(tool, '_injected_args_keys', ())))
    names, parameters = injected_fields(tool.args_schema), parameters_for(tool)
    # Attack: a model sends an injected parameter by its alias, and the value is not shown
    # (test_an_injected_parameter_cannot_be_sent_by_its_alias).
    found |= names | {str(place[0]) for name in names for place in parameters[name].places}
    return found
