"""Give a durable agent to another as a tool. Each call is a run of its own, for whose end the calling run waits."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai import DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturn, UserPromptPart
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset
from pydantic_ai_deferred import Agent, LineageLevel, lineage

from tool_approval.core.request import LineageEntry
from tool_approval.durable import RunRow
from tool_approval.durable.store import derived_id

from .state import RunState, StoredCall, now, write_state

if TYPE_CHECKING:
    from .agent import DurableAgent

PROMPT: Mapping[str, Any] = {
    'type': 'object',
    'properties': {'prompt': {'type': 'string', 'description': 'The task, with all that the agent needs to know.'}},
    'required': ['prompt'],
    'additionalProperties': False,
}
"""JSON schema of the arguments of a tool that runs an agent."""


class DurableAgentToolset(ExternalToolset[Any]):
    """A toolset with one external tool, which runs a durable agent. `DurableAgent.as_tool` creates this object."""

    def __init__(self, durable: DurableAgent[Any, Any], name: str, description: str | None) -> None:
        super().__init__([ToolDefinition(name=name, description=description, parameters_json_schema=dict(PROMPT))])
        self.name = name
        self.durable = durable


def nested_agents(agent: Agent[Any, Any], place: str, external: Container[str]) -> dict[str, DurableAgent[Any, Any]]:
    """Return the durable agents among the tools of an agent, by tool name.

    Raises:
        UserError: One of them has another store than the agent, whose place is `place`, or two have one name, or one
            has a tool name that `external` contains.
    """
    found: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(found.append)
    nested = {each.name: each.durable for each in found if isinstance(each, DurableAgentToolset)}
    for name, durable in nested.items():
        if durable.store.place != place:
            raise UserError(
                f'The durable agent of the tool {name!r} must have the `store` of the agent that calls the tool.'
            )
        if name in external:
            raise UserError(f'The tool {name!r} runs a durable agent, so `external` must not contain it.')
    if len({each.name for each in nested.values()}) != len(set(nested.values())):
        raise UserError('Two durable agents among the tools have the same name. Give each its own: `Agent(name=...)`.')
    return nested


def level_of(agent_name: str, run_id: str, call: StoredCall) -> LineageEntry:
    """Return the level of the lineage at which a call starts a nested run."""
    return LineageEntry(
        agent_name=agent_name, run_id=run_id, tool_name=call.request.tool_name, tool_call_id=str(call.id)
    )


def levels_of(entries: Sequence[LineageEntry]) -> list[LineageLevel]:
    """Return a stored lineage in the form of the loop layer."""
    return [LineageLevel(**each.model_dump()) for each in entries]


def first_row(
    durable: DurableAgent[Any, Any],
    above: RunRow,
    state: RunState,
    call: StoredCall,
    *,
    prompt: str,
    session: str | None,
    agent_name: str,
) -> RunRow:
    """Return the row that starts a nested run. The same call of the same run always gets the same id.

    Args:
        durable: The nested agent.
        above: The run that makes the call.
        state: State of that run.
        call: The call.
        prompt: The prompt of the nested run.
        session: The conversation for which approvals are remembered.
        agent_name: Name of the agent that makes the call.
    """
    nested = RunState(
        history=[ModelRequest(parts=[UserPromptPart(content=prompt)])],
        session=session,
        # Factories have names, and the nested agent has its own.
        deps=state.deps if state.deps is not None and durable.makes(state.deps[0]) else None,
        lineage=[*state.lineage, level_of(agent_name, above.id, call)],
    )
    at = now()
    # The number of agent runs so far distinguishes calls for which a provider has made up the same id.
    run_id = derived_id(durable.key, above.id, ['run', state.rounds, call.id])
    return RunRow(
        id=run_id,
        agent=f'{above.agent}/{durable.name}',
        state=write_state(nested, 'prompt'),
        created_at=at,
        changed_at=at,
        parent=above.id,
    )


def result_of(tool_name: str, row: RunRow | None) -> ToolReturn[Any] | ToolFailed:
    """Return what the model is given for a call whose nested run has ended, or is gone from the store."""
    if row is None:
        return ToolFailed(f'The run of {tool_name!r} is no longer in the store. Its calls may have had effects.')
    if row.status == 'done':
        return ToolReturn(json.loads(row.outcome or 'null'))
    problem = 'was cancelled'
    if row.status == 'failed':
        # Not the error's message, which may quote arguments.
        problem = f'failed ({json.loads(row.outcome or "{}").get("error")})'
    return ToolFailed(f'The run of {tool_name!r} {problem}. Calls that it made before may have had effects.')


def cannot_wait(ctx: RunContext[Any], requests: DeferredToolRequests) -> UserError:
    """Return the error for an agent that a tool simply runs, and whose calls have to wait.

    Args:
        ctx: Context of the run that made the calls, inside a tool of a durable run.
        requests: The calls, none of which has run.
    """
    deferred = [*requests.approvals, *requests.calls]
    ids = {each.tool_call_id for each in deferred}
    made = [
        f'{call.tool_name!r} ({call.tool_call_id})'
        for message in ctx.messages
        if isinstance(message, ModelResponse) and message.run_id in (None, ctx.run_id)
        for call in message.tool_calls
        if call.tool_call_id not in ids
    ]
    agent = ctx.agent.name if ctx.agent is not None else None
    tool = lineage()[-1].tool_name
    names = ', '.join(repr(each.tool_name) for each in deferred)
    effects = f'calls that may have had effects: {", ".join(made)}' if made else 'no other calls'
    return UserError(
        f'The agent {agent!r} runs inside the tool {tool!r} of a durable run, which cannot wait there for an approver. '
        f'{names} needs approval or a result from elsewhere, and did not run. '
        f'Before, the agent had made {effects}. To let it ask, make it a run of its own: replace the tool {tool!r} by '
        f'`toolsets=[DurableAgent({agent}, store=...).as_tool({tool!r})]`.'
    )
