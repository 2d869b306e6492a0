"""Plugin for pytest: Pydantic AI's own tests with this project's agent. See README.md in this folder.

`DEFERRED_AGENT` says which: `host` changes nothing, `agent` exchanges the class, `declining` also gives each agent a
handler that answers nothing, `handler` also exchanges `HandleDeferredToolCalls`, and `installed` calls `install()`.
"""

from __future__ import annotations

import os
from typing import Any

import pydantic_ai
from pydantic_ai import DeferredToolRequests, RunContext, capabilities
from pydantic_ai.output import OutputDataT
from pydantic_ai.tools import AgentDepsT
from pydantic_ai_deferred import Agent, DeferredToolHandler, install


class Declining(DeferredToolHandler[Any]):
    """Takes part in every run, and leaves every call to the host."""

    async def handle_deferred_tool_calls(self, ctx: RunContext[Any], *, requests: DeferredToolRequests) -> None:
        """Answer nothing."""


def unused(ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
    """Fail: nothing may call this."""
    raise AssertionError


class DecliningAgent(Agent[AgentDepsT, OutputDataT]):
    """Has a handler that answers nothing, unless a test gives another one."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        """Construct the agent."""
        super().__init__(*args, **{'deferred_tool_handler': Declining(unused, inherit=False), **keywords})


def exchange(agent: str) -> None:
    """Exchange what a test imports.

    Raises:
        ValueError: There is no such kind of agent.
    """
    if agent == 'installed':
        install()
    elif agent in {'agent', 'declining', 'handler'}:
        made: Any = DecliningAgent if agent == 'declining' else Agent
        DecliningAgent.__name__ = DecliningAgent.__qualname__ = 'Agent'
        pydantic_ai.Agent = pydantic_ai.agent.Agent = made
        if agent == 'handler':
            host: Any = capabilities
            host.HandleDeferredToolCalls = DeferredToolHandler
    elif agent != 'host':
        raise ValueError(f'DEFERRED_AGENT is {agent!r}, which is none of host, agent, declining, handler and installed')


exchange(os.environ.get('DEFERRED_AGENT', 'host'))
