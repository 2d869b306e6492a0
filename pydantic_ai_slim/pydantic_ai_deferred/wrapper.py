"""`HandlerAgent`: a deferred tool handler around an agent that was built elsewhere."""

from __future__ import annotations

from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.output import OutputDataT
from pydantic_ai.tools import AgentDepsT

from .capability import DeferredHandlerCapability
from .handler import DeferredToolHandler, check_handler
from .variants import RunVariants


# `override` differs from the host's in its private marker for "not given" alone; see `RunVariants.override`.
class HandlerAgent(  # pyright: ignore[reportIncompatibleMethodOverride]
    RunVariants[AgentDepsT, OutputDataT], WrapperAgent[AgentDepsT, OutputDataT]
):
    """Any agent, with a handler for its deferred tool calls.

    The handler takes the place of a constructor's: it goes before the one the wrapped agent was built with, and
    behind an override or the keyword of a run. A durable agent accepts no capability inside its workflow that it was
    not built with, so wrap it only if it is our `Agent`, or give the handler to its constructor.
    """

    def __init__(
        self,
        wrapped: AbstractAgent[AgentDepsT, OutputDataT],
        *,
        deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None,
        inherit_handler: bool = True,
    ) -> None:
        """Wrap an agent.

        Args:
            wrapped: The agent.
            deferred_tool_handler: Resolves the deferred calls of every run that is given no other.
            inherit_handler: Whether a run of this agent inside a tool of another one may ask that run's handler
                where it has none of its own.

        Raises:
            UserError: The handler cannot be called.
        """
        check_handler(deferred_tool_handler)
        super().__init__(wrapped)
        self._slot = DeferredHandlerCapability(handler=deferred_tool_handler, inherits=inherit_handler)
        self._is_bound = False
