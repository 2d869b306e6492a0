"""Finds what may have logic of its own around a tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

_MAX_DEPTH = 100
"""How many toolsets may wrap each other. Chosen: far more than anyone nests, and reached at once by a cycle."""


def logic_of(toolset: AbstractToolset[Any] | None, tool: ToolsetTool[Any]) -> Iterator[object]:
    """The toolsets from `toolset` inwards, then the function.

    Args:
        toolset: The outermost toolset to ask; `None` leaves the toolsets out.
        tool: The tool, as that toolset offers it.

    Raises:
        UserError: The toolsets wrap each other without end.
    """
    current: object = toolset
    for _ in range(_MAX_DEPTH):
        inside: object = None
        if isinstance(current, AbstractToolset):
            yield current
            inside = getattr(cast(object, current), 'wrapped', None)
            # A combined toolset records with the tool which of its parts the tool comes from.
            current = getattr(tool, 'source_toolset', None) if inside is None else inside
        if inside is None:
            source: object = getattr(tool, 'source_tool', None)
            # A test double has every attribute: only the host's own type is followed.
            if not isinstance(source, ToolsetTool):
                break
            tool = cast('ToolsetTool[Any]', source)
    else:
        raise UserError(f'The toolsets around a tool wrap each other without end: {type(toolset).__name__}.')
    function = getattr(getattr(getattr(tool, 'call_func', None), '__self__', None), 'function', None)
    if function is not None:
        yield function
