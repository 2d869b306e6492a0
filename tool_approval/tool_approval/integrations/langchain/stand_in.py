"""A tool that stands for another one, and how the host calls it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard, cast

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ArgsSchema, BaseTool, Tool
from langchain_core.utils.pydantic import TypeBaseModel
from pydantic import PrivateAttr

from .arguments import Arguments

ToolInput: TypeAlias = str | dict[str, Any] | ToolCall
"""What the host calls a tool with: a text, arguments by name, or a model's call, which a message answers."""


class StandIn(BaseTool):
    """Looks like another tool to the host and to the model. What is called is for subclasses to say.

    Every way to call a tool leads to `invoke` or `ainvoke`.
    """

    _inner: BaseTool = PrivateAttr()

    def __init__(self, inner: BaseTool) -> None:
        """Take over what is known of `inner`."""
        super().__init__(
            name=inner.name,
            description=inner.description,
            args_schema=_schema_of(inner),
            return_direct=inner.return_direct,
            tags=inner.tags,
            metadata=inner.metadata,
            response_format=inner.response_format,
            extras=inner.extras,
        )
        self._inner = inner

    @property
    def func(self) -> Callable[..., Any] | None:
        """The function behind the tool: the host looks at it for what to inject, our policy for its own logic."""
        return getattr(self._inner, 'func', None)

    @property
    def coroutine(self) -> Callable[..., Coroutine[Any, Any, Any]] | None:
        """The asynchronous function behind the tool."""
        return getattr(self._inner, 'coroutine', None)

    @cached_property
    def _injected_args_keys(self) -> frozenset[str]:
        # The host's, about the signature that this class does not have.
        return getattr(self._inner, '_injected_args_keys', frozenset[str]())

    @property
    def args(self) -> dict[str, Any]:
        """The JSON schema of each parameter, by name."""
        return self._inner.args

    @property
    def tool_call_schema(self) -> ArgsSchema:
        """What the model is told of the parameters."""
        return super().tool_call_schema if isinstance(self.args_schema, dict) else self._inner.tool_call_schema

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """All parameters, the injected ones too."""
        return self._inner.get_input_schema(config)

    @abstractmethod
    def invoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the tool."""

    @abstractmethod
    async def ainvoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the tool on the event loop."""

    def run(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call `invoke`; older code of the host calls tools this way."""
        return self.invoke(*_as_invoked(self.name, tool_input, kwargs))

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call `ainvoke`."""
        return await self.ainvoke(*_as_invoked(self.name, tool_input, kwargs))

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.invoke(kwargs)

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        return await self.ainvoke(kwargs)


def _schema_of(tool: BaseTool) -> ArgsSchema | None:
    if isinstance(tool, Tool) and tool.args_schema is None:
        # A tool of one text: the host tells the model of it by its class, which a stand-in is not of.
        return {'type': 'object', 'properties': tool.args, 'required': list(tool.args)}
    return tool.args_schema


def arguments_of(input: ToolInput) -> object:
    """The arguments of a model's call, or all there is."""
    return input.get('args') if _is_call(input) else input


def call_id_of(input: ToolInput) -> str | None:
    """The id of a model's call."""
    return input.get('id') if _is_call(input) else None


def with_arguments(input: ToolInput, arguments: Arguments) -> ToolInput:
    """The same call with other arguments."""
    values = {**arguments.given, **arguments.injected}
    return {**input, 'args': values} if _is_call(input) else values


def _is_call(input: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(input, dict) and cast('dict[str, Any]', input).get('type') == 'tool_call'


_CONFIG_KEYS = ('callbacks', 'tags', 'metadata', 'run_name', 'run_id')


def _as_invoked(name: str, tool_input: str | dict[str, Any], options: Mapping[str, Any]) -> tuple[Any, RunnableConfig]:
    told = {key: options[key] for key in _CONFIG_KEYS if options.get(key) is not None}
    config = cast('RunnableConfig', {**(options.get('config') or {}), **told})
    call_id = options.get('tool_call_id')
    if call_id is None:
        return tool_input, config
    return {'type': 'tool_call', 'name': name, 'args': tool_input, 'id': call_id}, config
