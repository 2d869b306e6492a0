"""Read a call as LangChain delivers it, and decide it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, PydanticUserError

from tool_approval.core.arguments import restored
from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.gate import Call, Gate, GateResult, Refused
from tool_approval.core.request import CallFacts

from .arguments import read_arguments


@dataclass(frozen=True, kw_only=True)
class CallReader:
    """Reads one call of a tool, as often as its arguments pass through other hands."""

    tool: BaseTool
    """What would run."""
    name: str
    """The name the model calls it by."""
    call_id: str | None
    """The call's id, where it has one."""
    facts: CallFacts
    """The run, the conversation and the agent that it belongs to."""
    config: RunnableConfig
    """What the host runs with, for the tool's own checks."""
    judges_injected: bool = False
    """Whether values for parameters that the host fills in may be a model's; see `read_arguments`."""

    def read(self, given: object) -> Call:
        """The call with these arguments.

        Raises:
            ValueError: They do not fit the tool, or cannot be judged. The text names the problem.
        """
        arguments = read_arguments(self.tool, given, judges_injected=self.judges_injected)
        definition = definition_digest(self.tool)

        def reread(changed: Mapping[str, object]) -> Call:
            edited = restored(changed, arguments.values, arguments.read.bound['given'])
            set_apart = {name: value for name, value in arguments.injected.items() if name not in arguments.values}
            return self.read({**set_apart, **edited})

        facts = self.facts._replace(tool_digest=definition)
        functions = (getattr(self.tool, name, None) for name in ('func', 'coroutine'))
        return Call(
            tool_name=self.name,
            arguments=arguments.read,
            values=arguments.values,
            given={**arguments.given, **arguments.injected},
            facts=facts,
            metadata={name: value for name, value in facts.as_metadata().items() if value is not None},
            tool_call_id=self.call_id,
            checks=[self.tool, *(function for function in functions if function is not None)],
            framework_context=self.config,
            # Another tool may go by the same name later.
            bound_to={'tool_definition': definition},
            reread=reread,
        )

    def unfit(self, error: ValueError) -> Refused:
        """The refusal of a call that cannot be read; no approver is asked."""
        return Refused(reason=f'The arguments of {self.name!r} cannot be used: {error}. The call was not run.')


async def decide_alone(gate: Gate, reader: CallReader, given: object) -> GateResult:
    """Decide a call that runs as soon as it is allowed.

    Raises:
        AuditError: A refusal could not be written down. Nothing has run.
        StoreError: Remembered approvals cannot be trusted. Nothing has run.
    """
    try:
        call = reader.read(given)
    except ValueError as error:
        return reader.unfit(error)
    [settled] = await gate.decide_all([await gate.prepare(call)])
    settled = await gate.judge_changed(settled)
    if isinstance(settled, Refused) or settled.request is None:
        return settled
    # Time has passed since the question was put.
    return gate.confirm(await gate.prepare(settled.call), settled.binding)


def find_facts(config: RunnableConfig, *, caller: str | None = None, run_id: str | None = None) -> CallFacts:
    """The run, the conversation and the agent that a call belongs to, where they are known.

    Args:
        config: What the host runs with. `configurable.thread_id`, else `configurable.session_id`, is the session.
        caller: The agent's name, in place of the one in the configuration.
        run_id: The agent run's id. Without one: the configuration's, and inside of a graph that of the single step,
            so that an approval for the session ends with the call.
    """
    configurable = cast('Mapping[str, object]', config.get('configurable') or {})
    metadata = cast('Mapping[str, object]', config.get('metadata') or {})
    step = _text(metadata.get('langgraph_checkpoint_ns'))
    # Inside of another agent's tool the host hands down the outer agent's name, and an unnamed agent would use what
    # was approved for the agent above it (test_unnamed_agent_in_a_tool_shares_nothing).
    named = _text(metadata.get('lc_agent_name')) if '|' not in (step or '') else None
    return CallFacts(
        run_id=run_id or _text(config.get('run_id')) or step,
        session_id=_text(configurable.get('thread_id')) or _text(configurable.get('session_id')),
        caller=caller or named,
    )


def _text(value: object) -> str | None:
    # The host takes numbers and UUIDs for ids, too.
    return str(value) if value is not None and value != '' else None


def definition_digest(tool: BaseTool) -> str | None:
    """64 hexadecimal digits of the tool as the model sees it; `None` if its schema has no JSON form."""
    schema = tool.tool_call_schema
    try:
        # Some types have no JSON schema, for which pydantic raises errors of several kinds.
        parameters = (
            schema.model_json_schema() if isinstance(schema, type) and issubclass(schema, BaseModel) else schema
        )
        return hashlib.sha256(canonical_json([tool.name, tool.description, parameters]).encode()).hexdigest()
    except (NotCanonicalError, TypeError, ValueError, PydanticUserError):
        return None
