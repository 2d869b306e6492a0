"""List all changes of the patch, by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from . import asking, keyword
from .places import Edit, PlaceChanged
from .shared import new_files

CHANGES: Mapping[str, Sequence[Edit]] = {
    '__init__.py': keyword.PACKAGE,
    '_agent_graph.py': asking.GRAPH,
    '_cli/__init__.py': keyword.CHAT,
    '_tool_execution.py': asking.TOOL_EXECUTION,
    'agent/__init__.py': keyword.AGENT,
    'agent/abstract.py': keyword.ABSTRACT,
    'agent/wrapper.py': keyword.WRAPPER,
    'durable_exec/dbos/_agent.py': keyword.DBOS,
    'durable_exec/prefect/_agent.py': keyword.PREFECT,
    'durable_exec/temporal/_agent.py': keyword.TEMPORAL,
    'models/__init__.py': asking.MODELS,
    'result.py': asking.RESULT,
    'tool_manager.py': asking.TOOL_MANAGER,
    'tools.py': keyword.TOOLS,
}
"""Edits of each file of the release, by its path below `pydantic_ai/`, in order."""


def changed(file: str, text: str) -> str:
    """Return a file of the release with its edits.

    Raises:
        PlaceChanged: A place in it is not as expected.
    """
    try:
        module = cst.parse_module(text)
        for edit in CHANGES[file]:
            module = edit(module)
    except cst.ParserSyntaxError as error:
        raise PlaceChanged('the whole file', f'it cannot be parsed: {error}', file=f'pydantic_ai/{file}') from error
    except PlaceChanged as error:
        raise PlaceChanged(error.place, error.problem, file=f'pydantic_ai/{file}') from None
    return module.code


__all__ = ('CHANGES', 'changed', 'new_files')
