"""Finds what may have logic of its own around a tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pydantic_ai.toolsets import AbstractToolset, ToolsetTool


def logic_of(toolset: AbstractToolset[Any] | None, tool: ToolsetTool[Any]) -> Iterator[object]:
    """The toolsets from `toolset` inwards, then the function.

    Args:
        toolset: The outermost toolset to ask; `None` leaves the toolsets out.
        tool: The tool, as that toolset offers it.
    """
    current: object = toolset
    while isinstance(current, AbstractToolset):
        yield current
        # A combined toolset says with the tool which of its parts the tool is of.
        inside: object = getattr(cast(object, current), 'wrapped', None)
        if inside is None:
            inside = getattr(tool, 'source_toolset', None)
            tool = getattr(tool, 'source_tool', tool)
        current = inside
    while hasattr(tool, 'source_tool'):
        tool = cast(Any, tool).source_tool
    function = getattr(getattr(getattr(tool, 'call_func', None), '__self__', None), 'function', None)
    if function is not None:
        yield function
