"""Add the keyword `deferred_tool_handler` to Pydantic AI's agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import pydantic_ai
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.output import OutputDataT, OutputSpec
from pydantic_ai.tools import AgentDepsT
from typing_extensions import Unpack

from .capability import AgentHandler, DeferredHandlerCapability
from .handler import DeferredToolHandler, check_handler
from .keywords import AgentKeywords, FileKeywords, SpecKeywords
from .plan import RunPlan
from .starting import engines_among, may_rewrite
from .variants import RunVariants

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AgentCapability
    from pydantic_ai.models import KnownModelName, Model
    from typing_extensions import TypeForm

DepsT = TypeVar('DepsT')
RunOutputDataT = TypeVar('RunOutputDataT')


# `override` lacks only the host's private marker for "not given"; see `RunVariants.override`.
class Agent(  # pyright: ignore[reportIncompatibleMethodOverride]
    RunVariants[AgentDepsT, OutputDataT], pydantic_ai.Agent[AgentDepsT, OutputDataT]
):
    """A Pydantic AI agent that resolves deferred tool calls inside its runs.

    This subclass of `pydantic_ai.Agent` accepts `deferred_tool_handler` in its constructor and in all run methods.
    """

    def __init__(
        self,
        model: Model | KnownModelName | str | None = None,
        *,
        output_type: OutputSpec[OutputDataT] = str,
        deps_type: type[AgentDepsT] | TypeForm[AgentDepsT] = object,
        deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None,
        inherit_handler: bool = True,
        capabilities: Sequence[AgentCapability[AgentDepsT]] | None = None,
        **keywords: Unpack[AgentKeywords[AgentDepsT]],
    ) -> None:
        """Create an agent.

        Args:
            model: As in `pydantic_ai.Agent`.
            output_type: As in `pydantic_ai.Agent`.
            deps_type: As in `pydantic_ai.Agent`.
            deferred_tool_handler: Resolves the deferred calls of every run that is not given another handler.
            inherit_handler: Whether this agent may use the handler of the outer run. This matters if the agent runs
                inside another agent's tool and has no handler of its own.
            capabilities: As in `pydantic_ai.Agent`. Capabilities that handle deferred calls themselves are asked first;
                the handler gets the remaining calls.
            keywords: All other keywords of `pydantic_ai.Agent`.

        Raises:
            UserError: The handler cannot be called.
        """
        check_handler(deferred_tool_handler)
        self._plan = RunPlan(handler=deferred_tool_handler, inherits=inherit_handler)
        own = capabilities or ()
        if engines_among(own):
            capabilities = [*own, DeferredHandlerCapability(self._plan)]
        elif deferred_tool_handler is not None and not any(map(may_rewrite, own)):
            self._asking = AgentHandler()
            capabilities = [*own, self._asking]
        super().__init__(model, output_type=output_type, deps_type=deps_type, capabilities=capabilities, **keywords)

    @overload
    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        output_type: OutputSpec[RunOutputDataT] = str,
        **keywords: Unpack[SpecKeywords[object]],
    ) -> Agent[object, RunOutputDataT]: ...

    @overload
    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        deps_type: type[DepsT],
        output_type: OutputSpec[RunOutputDataT] = str,
        **keywords: Unpack[SpecKeywords[DepsT]],
    ) -> Agent[DepsT, RunOutputDataT]: ...

    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        deferred_tool_handler: DeferredToolHandler[Any] | None = None,
        inherit_handler: bool = True,
        capabilities: Sequence[AgentCapability[Any]] | None = None,
        **keywords: Any,
    ) -> Agent[Any, Any]:
        """Construct an agent of this class from a spec. See `pydantic_ai.Agent.from_spec`.

        Raises:
            UserError: The handler cannot be called.
        """
        check_handler(deferred_tool_handler)
        plan = RunPlan(handler=deferred_tool_handler, inherits=inherit_handler)
        bound = [*(capabilities or ()), DeferredHandlerCapability(plan)]
        agent: Any = super().from_spec(spec, capabilities=bound, **keywords)
        # The host's class methods always build a `pydantic_ai.Agent`, and no constructor takes their result. The agent
        # already has the capability and lacks only the class.
        agent.__class__ = cls
        agent._plan = plan
        return agent

    @overload
    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        output_type: OutputSpec[RunOutputDataT] = str,
        **keywords: Unpack[FileKeywords[object]],
    ) -> Agent[object, RunOutputDataT]: ...

    @overload
    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        deps_type: type[DepsT],
        output_type: OutputSpec[RunOutputDataT] = str,
        **keywords: Unpack[FileKeywords[DepsT]],
    ) -> Agent[DepsT, RunOutputDataT]: ...

    @classmethod
    def from_file(
        cls, path: Path | str, *, fmt: Literal['yaml', 'json'] | None = None, **keywords: Any
    ) -> Agent[Any, Any]:
        """Construct an agent of this class from a YAML or JSON file. See `pydantic_ai.Agent.from_file`.

        Args:
            path: The file.
            fmt: Format of the file, if its extension does not show the format.
            keywords: Same keywords as in `from_spec`.

        Raises:
            UserError: The handler cannot be called.
        """
        return cls.from_spec(AgentSpec.from_file(path, fmt=fmt), **keywords)
