"""Define the types of an agent's keyword arguments: `deferred_tool_handler` and the keyword arguments of the host.

At runtime every keyword is passed on to the host, so a new keyword of the host works at once. Type checkers know only
the keywords listed here. `test_typed_keywords.py` compares these lists with the newest host, and reports differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from pydantic_ai.capabilities import AbstractCapability
from typing_extensions import TypedDict, TypeVar

from .handler import HandlerFunc

if TYPE_CHECKING:
    from pydantic_ai import (
        AgentRetries,
        CancellationToken,
        DeferredToolResults,
        ModelSettings,
        RunUsage,
        UsageLimits,
    )
    from pydantic_ai.agent import AgentModelSettings, EndStrategy, EventStreamHandler
    from pydantic_ai.agent.abstract import AgentInstructions, AgentMetadata
    from pydantic_ai.agent.spec import AgentSpec
    from pydantic_ai.capabilities import AgentCapability
    from pydantic_ai.concurrency import AnyConcurrencyLimit
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import KnownModelName, Model
    from pydantic_ai.template import TemplateStr
    from pydantic_ai.tools import AgentNativeTool, Tool, ToolFuncEither
    from pydantic_ai.toolsets import AbstractToolset, AgentToolset
    from pydantic_ai.workspaces import Workspace, WorkspaceBackend, WorkspaceRef

DepsT = TypeVar('DepsT', default=object)

AnyHandler: TypeAlias = HandlerFunc[DepsT] | AbstractCapability[DepsT]
"""A callable, or a capability that answers deferred calls."""


class _AnyRunKeywords(TypedDict, Generic[DepsT], total=False):
    deferred_tool_handler: AnyHandler[DepsT] | None
    conversation: Conversation | None
    message_history: Sequence[ModelMessage] | None
    deferred_tool_results: DeferredToolResults | None
    conversation_id: str | None
    run_id: str | None
    model: Model | KnownModelName | str | None
    deps: DepsT
    model_settings: AgentModelSettings[DepsT] | None
    usage_limits: UsageLimits | None
    cancellation_token: CancellationToken | None
    timeout: float | None
    usage: RunUsage | None
    metadata: AgentMetadata[DepsT] | None
    retries: int | AgentRetries | None
    infer_name: bool
    toolsets: Sequence[AbstractToolset[DepsT]] | None
    capabilities: Sequence[AgentCapability[DepsT]] | None
    workspace: WorkspaceBackend | WorkspaceRef | Literal['new'] | None
    spec: dict[str, Any] | AgentSpec | None


class IterKeywords(_AnyRunKeywords[DepsT], total=False):
    """Keywords of `iter` and `run_stream_events`."""

    instructions: AgentInstructions[DepsT]


class RunKeywords(IterKeywords[DepsT], total=False):
    """Keywords of `run`, `run_sync` and `run_stream`."""

    event_stream_handler: EventStreamHandler[DepsT] | None


class StreamSyncKeywords(_AnyRunKeywords[DepsT], total=False):
    """Keywords of `run_stream_sync`, which takes no instructions."""

    event_stream_handler: EventStreamHandler[DepsT] | None


class OverrideKeywords(TypedDict, Generic[DepsT], total=False):
    """Keywords of `override`."""

    deferred_tool_handler: AnyHandler[DepsT] | None
    name: str
    deps: DepsT
    model: Model | KnownModelName | str
    toolsets: Sequence[AbstractToolset[DepsT]]
    tools: Sequence[Tool[DepsT] | ToolFuncEither[DepsT, ...]]
    native_tools: Sequence[AgentNativeTool[DepsT]]
    instructions: AgentInstructions[DepsT]
    metadata: AgentMetadata[DepsT]
    model_settings: AgentModelSettings[DepsT]
    retries: int | AgentRetries
    spec: dict[str, Any] | AgentSpec | None
    workspace: WorkspaceBackend | Workspace | WorkspaceRef | Literal['new']


class _AnyAgentKeywords(TypedDict, Generic[DepsT], total=False):
    instructions: AgentInstructions[DepsT]
    system_prompt: str | Sequence[str]
    name: str | None
    description: TemplateStr[DepsT] | str | None
    retries: int | AgentRetries | None
    validation_context: Any
    tools: Sequence[Tool[DepsT] | ToolFuncEither[DepsT, ...]]
    toolsets: Sequence[AgentToolset[DepsT]] | None
    defer_model_check: bool
    metadata: AgentMetadata[DepsT] | None
    tool_timeout: float | None
    max_concurrency: AnyConcurrencyLimit


class AgentKeywords(_AnyAgentKeywords[DepsT], total=False):
    """Keywords of the constructor."""

    capabilities: Sequence[AgentCapability[DepsT]] | None
    model_settings: AgentModelSettings[DepsT] | None
    end_strategy: EndStrategy


class SpecKeywords(_AnyAgentKeywords[Any], Generic[DepsT], total=False):
    """Keywords of `from_spec`. `from_file` takes the same keywords, and also `fmt`."""

    deferred_tool_handler: AnyHandler[DepsT] | None
    capabilities: Sequence[AgentCapability[Any]] | None
    custom_capability_types: Sequence[type[AbstractCapability[Any]]]
    model: Model | KnownModelName | str | None
    model_settings: ModelSettings | None
    end_strategy: EndStrategy | None


class FileKeywords(SpecKeywords[DepsT], total=False):
    """Keywords of `from_file`."""

    fmt: Literal['yaml', 'json'] | None
