"""Read the arguments of a LangChain call in the form that the tool gets, and decide whether the call may run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, Tool
from pydantic import BaseModel, PydanticUserError, ValidationError

from tool_approval.core.arguments import CallArguments, as_json, materialised, restored
from tool_approval.core.arguments import read_arguments as read_json
from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.gate import Call, Gate, GateResult, Refused
from tool_approval.core.request import CallFacts


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
        definition = definition_digest(self.tool)

        def reread(changed: Mapping[str, object]) -> Call:
            edited = restored(changed, arguments.read.shown, arguments.read.bound['given'])
            set_apart = {name: value for name, value in arguments.injected.items() if name not in arguments.read.shown}
            return self.read({**set_apart, **edited})

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
            checks=[self.tool, *(function for function in functions if function is not None)],
            framework_context=self.config,
            # Another tool may have the same name later.
            bound_to={'tool_definition': definition},
            reread=reread,
        )

    def unfit(self, error: ValueError) -> Refused:
        """Return the refusal for a call whose arguments are invalid. No approver is asked."""
        return Refused(reason=f'The arguments of {self.name!r} are invalid ({error}), so the call was not run.')


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
    [settled] = await gate.decide_all([await gate.prepare(call)])
    settled = await gate.judge_changed(settled)
    if isinstance(settled, Refused) or settled.request is None:
        return settled
    # Confirm again: the facts may have changed while the approver was asked.
    return gate.confirm(await gate.prepare(settled.call), settled.binding)


def find_facts(config: RunnableConfig, *, caller: str | None = None, run_id: str | None = None) -> CallFacts:
    """Return the run, session and agent of a call as far as these are known.

    Args:
        config: The configuration, whose `configurable.thread_id` (or else `configurable.session_id`) is the session.
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
    )


def _text(value: object) -> str | None:
    # The host also accepts numbers and UUIDs as ids.
    return str(value) if value is not None and value != '' else None


def definition_digest(tool: BaseTool) -> str | None:
    """Return a hexadecimal digest of the tool as the model sees it, or `None` if its schema has no JSON form."""
    schema = tool.tool_call_schema
    try:
        # Some types have no JSON schema; pydantic raises several kinds of errors for them.
        parameters = schema.model_json_schema() if _is_model(schema) else schema
        return hashlib.sha256(canonical_json([tool.name, tool.description, parameters]).encode()).hexdigest()
    except (NotCanonicalError, TypeError, ValueError, PydanticUserError):
        return None


_VARIADIC = frozenset({'args', 'kwargs'})
"""Names of the schema fields for `*args` and `**kwargs`. A field that the call does not contain is not passed on."""


@dataclass(frozen=True, kw_only=True)
class ToolArguments:
    """Arguments of one call."""

    given: dict[str, Any]
    """A copy of the given arguments, plus defaults made by a `default_factory`. The tool is called with this copy."""
    read: CallArguments
    """Arguments that the tool's function gets: validated, with all defaults."""
    injected: dict[str, Any]
    """Parameters that the host fills in, such as the graph's state. Injected values are passed on unchanged."""


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
        given = {_first_name(tool): given}
    if not isinstance(given, Mapping):
        raise ValueError('the input is not a mapping of names to values')  # noqa: TRY004 - like all other reasons
    by_host, items = injected_names(tool), cast('Mapping[str, Any]', given).items()
    injected = {name: value for name, value in items if name in by_host}
    try:
        passed = deepcopy({name: value for name, value in items if name not in by_host})
    except Exception as error:  # noqa: BLE001 - a value of any type may refuse to be copied, in any way
        raise ValueError(f'an argument cannot be copied ({type(error).__name__})') from None
    values = _validated(tool, passed)
    given_json = as_json(passed, in_clear=True)
    # Attack: the host's own call and a model's look alike, so a model may send a value that the host should fill in.
    seen = {name: value for name, value in injected.items() if judges_injected and _is_json(value)}
    read = read_json({**materialised(values), **seen}, {**_by_parameter(tool, given_json), **seen})
    bound = {'given': given_json, 'received': read.bound.get('received', read.shown)}
    return ToolArguments(
        given=passed, read=read._replace(bound=bound, bound_text=canonical_json(bound)), injected=injected
    )


def _by_parameter(tool: BaseTool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values by parameter name, without aliases and without values that the tool ignores."""
    schema = tool.args_schema
    if not _is_model(schema):
        return dict(given)
    names = {field.alias or name: name for name, field in schema.model_fields.items()}
    is_open = schema.model_config.get('extra') == 'allow'
    named = {names.get(key, key): value for key, value in given.items()}
    return {name: value for name, value in named.items() if is_open or name in schema.model_fields}


def _is_json(value: object) -> bool:
    match value:
        case dict():
            return all(_is_json(item) for item in cast('dict[object, object]', value).values())
        case list():
            return all(_is_json(item) for item in cast('list[object]', value))
        case _:
            return value is None or type(value) in (str, int, float, bool)


def _first_name(tool: BaseTool) -> str:
    full, shown = tool.args_schema, tool.tool_call_schema
    if _is_model(full) and _is_model(shown):
        # The shown schema lacks the aliases.
        names = [full.model_fields[name].alias or name for name in shown.model_fields]
    else:
        names = list(tool.args)
    return names[0] if names else 'tool_input'


def injected_names(tool: BaseTool) -> frozenset[str]:
    """Return the parameters that the host fills in."""
    # Parameters of the function that its schema does not list. The host has no public name for them; if this one goes
    # away, such a parameter is judged like any other.
    found = frozenset(cast('frozenset[str]', getattr(tool, '_injected_args_keys', ())))
    full, shown = tool.args_schema, tool.tool_call_schema
    if _is_model(full) and _is_model(shown):
        found |= full.model_fields.keys() - shown.model_fields.keys()
    return found


def _validated(tool: BaseTool, passed: dict[str, Any]) -> Mapping[str, Any]:
    """Return the values for the function, and add the defaults made by a `default_factory` to `passed`."""
    schema, shown = tool.args_schema, tool.tool_call_schema
    if schema is None:
        _check_signature(tool, passed)
    elif isinstance(schema, dict):
        _refuse([name for name in cast('list[str]', schema.get('required', [])) if name not in passed], 'missing')
    elif _is_model(schema) and _is_model(shown):
        # The shown schema lacks injected fields and the model's own validators, which run with the tool.
        return _complete(schema if shown.model_fields.keys() == schema.model_fields.keys() else shown, passed)
    # Otherwise it is a model of pydantic 1, which validates when the tool runs.
    return passed


def _complete(schema: type[BaseModel], passed: dict[str, Any]) -> Mapping[str, Any]:
    model = _validate(schema, passed)
    values: dict[str, Any] = dict(model.model_extra or {})
    for name, field in schema.model_fields.items():
        is_given = name in model.model_fields_set
        if is_given or (not field.is_required() and name not in _VARIADIC):
            values[name] = getattr(model, name)
        if not is_given and field.default_factory is not None:
            passed[field.alias or name] = as_json({name: values[name]}, in_clear=True)[name]
    return values


def _check_signature(tool: BaseTool, passed: Mapping[str, Any]) -> None:
    """Reject arguments that do not fit the signature. Without a schema, the host does not validate arguments."""
    if isinstance(tool, Tool):
        if len(passed) != 1:
            raise ValueError(f'the tool takes one argument, not {len(passed)}')
        return
    inferred = cast('type[BaseModel]', tool.tool_call_schema)  # made from the signature
    _validate(inferred, passed)
    if 'kwargs' not in inferred.model_fields:
        _refuse([name for name in passed if name not in inferred.model_fields], 'unknown')


def _validate(schema: type[BaseModel], passed: Mapping[str, Any]) -> BaseModel:
    try:
        return schema.model_validate(passed)
    except ValidationError as error:
        problems = [f'{".".join(map(str, each["loc"]))}: {each["msg"]}' for each in error.errors()]
        raise ValueError(f'the values do not match the schema of the tool: {"; ".join(problems)}') from None
    except Exception as error:  # noqa: BLE001 - a tool's own validator may fail in any way
        raise ValueError(f'the values could not be validated ({type(error).__name__})') from None


def _refuse(names: list[str], problem: str) -> None:
    if names:
        raise ValueError(f'the values do not match the schema of the tool: {", ".join(map(str, names))} ({problem})')


def _is_model(schema: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(schema, type) and issubclass(schema, BaseModel)
