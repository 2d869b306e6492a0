"""Check that an agent and its dependencies can be used for durable runs. Each error says what to change."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.integrations.pydantic_ai.approvals import Approvals, capabilities_of


def checked_name(agent: Agent[Any, Any]) -> str:
    """Return the name of an agent.

    Raises:
        UserError: The agent cannot be used for durable runs.
    """
    from pydantic_ai.durable_exec.dbos import DBOSDurability

    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f'A durable agent needs a `pydantic_ai_deferred.Agent`, not {type(agent).__name__}.')
    if not agent.name:
        raise UserError("A durable agent needs a name that stays the same: `Agent(..., name='bot')`.")
    if '/' in agent.name:
        # Attack: the runs of such an agent would look like runs that are nested in those of another
        # (test_nested.py: test_an_agent_that_cannot_be_nested_is_refused).
        raise UserError('The name of a durable agent has no `/`, which separates the names of nested agents.')
    if not any(isinstance(each, DBOSDurability) for each in capabilities_of(agent)):
        raise UserError('A durable agent must record model requests: `Agent(..., capabilities=[DBOSDurability()])`.')
    return agent.name


def checked_approvals(agent: Agent[Any, Any]) -> Approvals:
    """Return the `Approvals` of an agent.

    Raises:
        UserError: The agent has none, or they cannot be used for durable runs.
    """
    found = [each for each in capabilities_of(agent) if isinstance(each, Approvals)]
    if not found:
        raise UserError('A durable agent needs approvals: `Agent(..., capabilities=[DBOSDurability(), Approvals()])`.')
    if found[0].id is None:
        raise UserError('The `Approvals` of a durable agent need an `id`: each run replaces them by its own.')
    if found[0].ledger is not None:
        raise UserError('The `Approvals` of a durable agent have no `ledger`: durable runs have their own.')
    return found[0]


def checked_deps(
    factories: Container[str], deps: tuple[str, Mapping[str, Any]] | None
) -> tuple[str, dict[str, Any]] | None:
    """Return the name of a factory of dependencies, and its arguments in the form to store.

    Raises:
        UserError: There is no such factory, or an argument cannot be stored.
    """
    if deps is None:
        return None
    name, arguments = deps
    if name not in factories:
        raise UserError(f'No factory of dependencies is named {name!r}: add one to `DurableAgent(deps=...)`.')
    for field, value in arguments.items():
        try:
            canonical_json(value)
        except NotCanonicalError:
            raise UserError(
                f'The dependencies {name!r} cannot be stored: {field!r} is of type {type(value).__name__}, which '
                'has no JSON form. Pass a key from which the factory can get the value.'
            ) from None
    return name, dict(arguments)
