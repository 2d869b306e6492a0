"""Add the keyword `deferred_tool_handler` to every run variant, and to any agent that `HandlerAgent` wraps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, overload

from pydantic_ai.agent import AbstractAgent, AgentRun, AgentRunResult, WrapperAgent
from pydantic_ai.output import OutputDataT, OutputSpec
from pydantic_ai.result import StreamedRunResult, StreamedRunResultSync
from pydantic_ai.tools import AgentDepsT
from typing_extensions import Unpack

from .capability import AgentHandler
from .handler import AnyHandler, DeferredToolHandler, check_handler
from .keywords import IterKeywords, OverrideKeywords, RunKeywords, StreamSyncKeywords
from .plan import RunPlan, overriding
from .starting import open_run, with_handler
from .terminal import chatting, leaving_nothing

if TYPE_CHECKING:
    from pydantic_ai import ModelSettings, UsageLimits
    from pydantic_ai.agent import AgentRunEvents
    from pydantic_ai.messages import ModelMessage, UserContent
    from pydantic_ai.models import KnownModelName, Model

T = TypeVar('T')
Prompt: TypeAlias = 'str | Sequence[UserContent] | None'


class RunVariants(AbstractAgent[AgentDepsT, OutputDataT]):
    """Every way to run an agent, each with the keyword `deferred_tool_handler`.

    Every variant eventually calls `iter`, and passes its handler as a capability of the run. `iter` uses the
    capabilities and the agent's settings to determine which handler is asked.
    """

    _plan: RunPlan
    """Plan that the constructor determined."""
    _asking: AgentHandler | None = None
    """Capability that asks the handler, or `None` if the constructor added no such capability to the agent."""

    @overload
    async def run(
        self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[RunKeywords[AgentDepsT]]
    ) -> AgentRunResult[OutputDataT]: ...

    @overload
    async def run(
        self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[RunKeywords[AgentDepsT]]
    ) -> AgentRunResult[T]: ...

    async def run(
        self, *args: Any, deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None, **keywords: Any
    ) -> AgentRunResult[Any]:
        """Run the agent. The handler resolves deferred tool calls, and the same run continues.

        Args:
            args: The user's prompt, as in the host's `run`.
            deferred_tool_handler: Handler that is asked in this run; `None` uses the agent's own handler.
            keywords: All other keywords of the host's `run`. The `output_type` needs `DeferredToolRequests` only if
                the run can end with deferred calls.

        Raises:
            UserError: The handler cannot be called. Nothing has run.
            UserError: An answer is missing or of the wrong kind. No deferred call of the response has executed.
            UserError: The handler was inherited from an ended run.
        """
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        return await super().run(*args, **keywords)

    @overload
    def run_sync(
        self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[RunKeywords[AgentDepsT]]
    ) -> AgentRunResult[OutputDataT]: ...

    @overload
    def run_sync(
        self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[RunKeywords[AgentDepsT]]
    ) -> AgentRunResult[T]: ...

    def run_sync(
        self, *args: Any, deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None, **keywords: Any
    ) -> AgentRunResult[Any]:
        """Run the agent from synchronous code. Sync and async handlers both work. See `run`."""
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        with leaving_nothing():
            return super().run_sync(*args, **keywords)

    @overload
    def run_stream(
        self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[RunKeywords[AgentDepsT]]
    ) -> AbstractAsyncContextManager[StreamedRunResult[AgentDepsT, OutputDataT]]: ...

    @overload
    def run_stream(
        self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[RunKeywords[AgentDepsT]]
    ) -> AbstractAsyncContextManager[StreamedRunResult[AgentDepsT, T]]: ...

    def run_stream(
        self, *args: Any, deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None, **keywords: Any
    ) -> AbstractAsyncContextManager[StreamedRunResult[AgentDepsT, Any]]:
        """Stream the final output. The handler resolves the deferred calls that come before this output. See `run`.

        The run ends at the first response part that can be an output. The response's later deferred calls are skipped.
        """
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        return super().run_stream(*args, **keywords)

    @overload
    def run_stream_sync(
        self,
        user_prompt: Prompt = None,
        *,
        output_type: None = None,
        **keywords: Unpack[StreamSyncKeywords[AgentDepsT]],
    ) -> StreamedRunResultSync[AgentDepsT, OutputDataT]: ...

    @overload
    def run_stream_sync(
        self,
        user_prompt: Prompt = None,
        *,
        output_type: OutputSpec[T],
        **keywords: Unpack[StreamSyncKeywords[AgentDepsT]],
    ) -> StreamedRunResultSync[AgentDepsT, T]: ...

    def run_stream_sync(
        self, *args: Any, deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None, **keywords: Any
    ) -> StreamedRunResultSync[AgentDepsT, Any]:
        """Stream from synchronous code. See `run_stream`."""
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        return super().run_stream_sync(*args, **keywords)

    @overload
    def run_stream_events(
        self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[IterKeywords[AgentDepsT]]
    ) -> AbstractAsyncContextManager[AgentRunEvents[OutputDataT]]: ...

    @overload
    def run_stream_events(
        self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[IterKeywords[AgentDepsT]]
    ) -> AbstractAsyncContextManager[AgentRunEvents[T]]: ...

    def run_stream_events(
        self, *args: Any, deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None, **keywords: Any
    ) -> AbstractAsyncContextManager[AgentRunEvents[Any]]:
        """Stream the events of a run, including the questions to the handler and the handler's answers. See `run`."""
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        return super().run_stream_events(*args, **keywords)

    @overload
    def iter(
        self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[IterKeywords[AgentDepsT]]
    ) -> AbstractAsyncContextManager[AgentRun[AgentDepsT, OutputDataT]]: ...

    @overload
    def iter(
        self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[IterKeywords[AgentDepsT]]
    ) -> AbstractAsyncContextManager[AgentRun[AgentDepsT, T]]: ...

    def iter(
        self, *args: Any, deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None, **keywords: Any
    ) -> AbstractAsyncContextManager[AgentRun[AgentDepsT, Any]]:
        """Step through the run node by node. The handler is asked inside the call-tools node. See `run`."""
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        return open_run(self, functools.partial(super().iter, *args), keywords, self._plan, self._asking)

    # The host's keywords also accept its private marker for "not given"; leaving a keyword out does the same.
    @contextmanager
    def override(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None,
        **keywords: Unpack[OverrideKeywords[AgentDepsT]],
    ) -> Generator[None]:
        """Override the agent's settings, including its handler, for runs started inside the context.

        Args:
            deferred_tool_handler: Handler that is asked even if a run has another handler. `None` overrides nothing.
            keywords: All other keywords of the host's `override`.

        Raises:
            UserError: The handler cannot be called.
        """
        check_handler(deferred_tool_handler)
        drops_capability = keywords.get('spec') is not None
        with (
            super().override(**cast('dict[str, Any]', keywords)),
            overriding(self, deferred_tool_handler, drops_capability=drops_capability),
        ):
            yield

    async def to_cli(
        self,
        deps: AgentDepsT = None,
        prog_name: str = 'pydantic-ai',
        message_history: Sequence[ModelMessage] | None = None,
        model_settings: ModelSettings | None = None,
        usage_limits: UsageLimits | None = None,
        model: Model | KnownModelName | str | None = None,
        *,
        deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None,
    ) -> None:
        """Chat with the agent in the terminal. The handler is asked during a turn of the chat.

        Args:
            deps: See the host's `to_cli`, which explains all arguments except `deferred_tool_handler`.
            prog_name: The name in the prompt.
            message_history: The conversation so far.
            model_settings: Settings for every request.
            usage_limits: Limits for each turn.
            model: The model. Before 2.x, the host accepts no model here and uses the agent's model.
            deferred_tool_handler: Handler that is asked in this chat; `None` uses the agent's own handler.
        """
        chat = _cli_keywords(deps, prog_name, message_history, model_settings, usage_limits, model)
        with chatting():
            await AbstractAgent.to_cli(given_handler(self, deferred_tool_handler), **chat)

    def to_cli_sync(
        self,
        deps: AgentDepsT = None,
        prog_name: str = 'pydantic-ai',
        message_history: Sequence[ModelMessage] | None = None,
        model_settings: ModelSettings | None = None,
        usage_limits: UsageLimits | None = None,
        model: Model | KnownModelName | str | None = None,
        *,
        deferred_tool_handler: DeferredToolHandler[AgentDepsT] | None = None,
    ) -> None:
        """Chat with the agent in the terminal, from synchronous code. See `to_cli`."""
        chat = _cli_keywords(deps, prog_name, message_history, model_settings, usage_limits, model)
        with chatting():
            AbstractAgent.to_cli_sync(given_handler(self, deferred_tool_handler), **chat)


# `override` lacks only the host's private marker for "not given"; see `RunVariants.override`.
class HandlerAgent(  # pyright: ignore[reportIncompatibleMethodOverride]
    RunVariants[AgentDepsT, OutputDataT], WrapperAgent[AgentDepsT, OutputDataT]
):
    """Adds a handler for deferred tool calls to any agent.

    This handler has precedence over the wrapped agent's own handler, but not over a handler given to an override or a
    run. Inside its workflow, a durable agent accepts only the capabilities it was built with. Wrap a durable agent only
    if it is our `Agent`. The constructor of our `Agent` also takes the handler, without a wrapper.
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
            deferred_tool_handler: Resolves the deferred calls of every run that is given no other handler.
            inherit_handler: Whether this agent may use the handler of the outer run. This matters if the agent runs
                inside another agent's tool and has no handler of its own.

        Raises:
            UserError: The handler cannot be called.
        """
        check_handler(deferred_tool_handler)
        super().__init__(wrapped)
        self._plan = RunPlan(handler=deferred_tool_handler, inherits=inherit_handler)


def given_handler(agent: AbstractAgent[Any, Any], handler: AnyHandler | None) -> AbstractAgent[Any, Any]:
    """Return an agent that gives `handler` to every run, because the host's chat accepts no handler.

    Raises:
        UserError: The handler cannot be called.
    """
    check_handler(handler)
    return agent if handler is None else HandlerAgent(agent, deferred_tool_handler=handler)


def carry(agent: Any, handler: Any, keywords: dict[str, Any], frame: FrameType | None) -> dict[str, Any]:
    """Return the keyword arguments for the host's method that runs the agent, with `handler` added to the capabilities.

    The host infers an agent's name from the variables in the frame that calls the host. That frame belongs to our
    method, where the variable for the agent is `self`. This function therefore uses the frame that called our method.

    Raises:
        UserError: The handler cannot be called.
    """
    if keywords.get('infer_name', True) and agent.name is None and frame is not None and frame.f_back is not None:
        _infer_name(agent, frame.f_back)
    return with_handler({**keywords, 'infer_name': False}, handler)


def _cli_keywords(*values: object) -> dict[str, Any]:
    names = ('deps', 'prog_name', 'message_history', 'model_settings', 'usage_limits', 'model')
    chat: dict[str, Any] = dict(zip(names, values, strict=True))
    if chat['model'] is None:  # hosts before 2.x do not know it
        del chat['model']
    return chat


def _infer_name(agent: Any, frame: FrameType) -> None:
    if str(frame.f_globals.get('__name__')).startswith('pydantic_ai.'):
        return  # the host's chat calls every agent `agent`
    for variables in (frame.f_locals, frame.f_globals):
        for name, value in variables.items():
            # `self` belongs to another method of the agent: the host's `run` calls `iter`.
            if value is agent and name != 'self':
                agent.name = name
                return
