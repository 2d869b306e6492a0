"""Define the agent with the keyword `deferred_tool_handler`. Everything here but `from_spec` is typing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import pydantic_ai
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.output import OutputDataT, OutputSpec
from pydantic_ai.tools import AgentDepsT
from typing_extensions import Unpack

from .keyword import chatting, constructing, overriding, starting, taking_handler, with_handler

if TYPE_CHECKING:
    from pydantic_ai import AgentRunResult, ModelSettings, UsageLimits
    from pydantic_ai.agent import AgentRun, AgentRunEvents
    from pydantic_ai.messages import ModelMessage, UserContent
    from pydantic_ai.models import KnownModelName, Model
    from pydantic_ai.result import StreamedRunResult, StreamedRunResultSync
    from typing_extensions import TypeForm

    from .keywords import (
        AgentKeywords,
        AnyHandler,
        FileKeywords,
        IterKeywords,
        OverrideKeywords,
        RunKeywords,
        SpecKeywords,
        StreamSyncKeywords,
    )

DepsT = TypeVar('DepsT')
T = TypeVar('T')
Prompt: TypeAlias = 'str | Sequence[UserContent] | None'


class Agent(pydantic_ai.Agent[AgentDepsT, OutputDataT]):
    """A Pydantic AI agent that resolves deferred tool calls inside its runs.

    This subclass of `pydantic_ai.Agent` accepts `deferred_tool_handler` in its constructor and in all run methods. The
    handler is a callable that takes `(ctx, requests)`, or a capability that answers deferred calls, which is added as
    it is. A handler given to `override` precedes a run's, which precedes the constructor's. A run without any of them
    that is nested in a tool of another run uses the handler of that run.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            model: Model | KnownModelName | str | None = None,
            *,
            output_type: OutputSpec[OutputDataT] = str,
            deps_type: type[AgentDepsT] | TypeForm[AgentDepsT] = object,
            deferred_tool_handler: AnyHandler[AgentDepsT] | None = None,
            **keywords: Unpack[AgentKeywords[AgentDepsT]],
        ) -> None: ...

        @overload
        async def run(
            self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[RunKeywords[AgentDepsT]]
        ) -> AgentRunResult[OutputDataT]: ...

        @overload
        async def run(
            self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[RunKeywords[AgentDepsT]]
        ) -> AgentRunResult[T]: ...

        async def run(self, *args: Any, **keywords: Any) -> AgentRunResult[Any]: ...

        @overload
        def run_sync(
            self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[RunKeywords[AgentDepsT]]
        ) -> AgentRunResult[OutputDataT]: ...

        @overload
        def run_sync(
            self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[RunKeywords[AgentDepsT]]
        ) -> AgentRunResult[T]: ...

        def run_sync(self, *args: Any, **keywords: Any) -> AgentRunResult[Any]: ...

        @overload
        def run_stream(
            self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[RunKeywords[AgentDepsT]]
        ) -> AbstractAsyncContextManager[StreamedRunResult[AgentDepsT, OutputDataT]]: ...

        @overload
        def run_stream(
            self, user_prompt: Prompt = None, *, output_type: OutputSpec[T], **keywords: Unpack[RunKeywords[AgentDepsT]]
        ) -> AbstractAsyncContextManager[StreamedRunResult[AgentDepsT, T]]: ...

        def run_stream(self, *args: Any, **keywords: Any) -> AbstractAsyncContextManager[Any]: ...

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

        def run_stream_sync(self, *args: Any, **keywords: Any) -> StreamedRunResultSync[Any, Any]: ...

        @overload
        def run_stream_events(
            self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[IterKeywords[AgentDepsT]]
        ) -> AbstractAsyncContextManager[AgentRunEvents[OutputDataT]]: ...

        @overload
        def run_stream_events(
            self,
            user_prompt: Prompt = None,
            *,
            output_type: OutputSpec[T],
            **keywords: Unpack[IterKeywords[AgentDepsT]],
        ) -> AbstractAsyncContextManager[AgentRunEvents[T]]: ...

        def run_stream_events(self, *args: Any, **keywords: Any) -> AbstractAsyncContextManager[Any]: ...

        @overload
        def iter(
            self, user_prompt: Prompt = None, *, output_type: None = None, **keywords: Unpack[IterKeywords[AgentDepsT]]
        ) -> AbstractAsyncContextManager[AgentRun[AgentDepsT, OutputDataT]]: ...

        @overload
        def iter(
            self,
            user_prompt: Prompt = None,
            *,
            output_type: OutputSpec[T],
            **keywords: Unpack[IterKeywords[AgentDepsT]],
        ) -> AbstractAsyncContextManager[AgentRun[AgentDepsT, T]]: ...

        def iter(self, *args: Any, **keywords: Any) -> AbstractAsyncContextManager[Any]: ...

        # The host's keywords also accept its private marker for "not given"; leaving a keyword out does the same.
        def override(  # pyright: ignore[reportIncompatibleMethodOverride]
            self, **keywords: Unpack[OverrideKeywords[AgentDepsT]]
        ) -> AbstractContextManager[None]: ...

        async def to_cli(
            self,
            deps: AgentDepsT = None,
            prog_name: str = 'pydantic-ai',
            message_history: Sequence[ModelMessage] | None = None,
            model_settings: ModelSettings | None = None,
            usage_limits: UsageLimits | None = None,
            model: Model | KnownModelName | str | None = None,
            *,
            deferred_tool_handler: AnyHandler[AgentDepsT] | None = None,
        ) -> None: ...

        def to_cli_sync(
            self,
            deps: AgentDepsT = None,
            prog_name: str = 'pydantic-ai',
            message_history: Sequence[ModelMessage] | None = None,
            model_settings: ModelSettings | None = None,
            usage_limits: UsageLimits | None = None,
            model: Model | KnownModelName | str | None = None,
            *,
            deferred_tool_handler: AnyHandler[AgentDepsT] | None = None,
        ) -> None: ...

    else:
        __init__ = constructing(pydantic_ai.Agent.__init__)
        run = taking_handler(pydantic_ai.Agent.run)
        run_sync = taking_handler(pydantic_ai.Agent.run_sync)
        run_stream = taking_handler(pydantic_ai.Agent.run_stream)
        run_stream_sync = taking_handler(pydantic_ai.Agent.run_stream_sync)
        run_stream_events = taking_handler(pydantic_ai.Agent.run_stream_events)
        iter = starting(pydantic_ai.Agent.iter)
        override = overriding(pydantic_ai.Agent.override)
        to_cli = chatting(pydantic_ai.Agent.to_cli)
        to_cli_sync = chatting(pydantic_ai.Agent.to_cli_sync)

    @overload
    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        output_type: OutputSpec[T] = str,
        **keywords: Unpack[SpecKeywords[object]],
    ) -> Agent[object, T]: ...

    @overload
    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        deps_type: type[DepsT],
        output_type: OutputSpec[T] = str,
        **keywords: Unpack[SpecKeywords[DepsT]],
    ) -> Agent[DepsT, T]: ...

    @classmethod
    def from_spec(
        cls, spec: dict[str, Any] | AgentSpec, *, deferred_tool_handler: Any = None, **keywords: Any
    ) -> Agent[Any, Any]:
        """Construct an agent of this class from a spec. See `pydantic_ai.Agent.from_spec`.

        Raises:
            UserError: The handler cannot be called.
        """
        agent: Any = super().from_spec(spec, **with_handler(keywords, deferred_tool_handler))
        # The host's class method always builds a `pydantic_ai.Agent`, which lacks only the methods of this class.
        agent.__class__ = cls
        return agent

    @overload
    @classmethod
    def from_file(
        cls, path: Path | str, *, output_type: OutputSpec[T] = str, **keywords: Unpack[FileKeywords[object]]
    ) -> Agent[object, T]: ...

    @overload
    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        deps_type: type[DepsT],
        output_type: OutputSpec[T] = str,
        **keywords: Unpack[FileKeywords[DepsT]],
    ) -> Agent[DepsT, T]: ...

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
