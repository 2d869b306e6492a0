"""Finds the user's own agent: `--agent module:name`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, cast

from pydantic_ai.agent import AbstractAgent

from .errors import AssistantError


def load_agent(place: str, *, directory: Path) -> AbstractAgent[Any, Any]:
    """Import a module as `python -m` would, from `directory` first, and take the agent out of it.

    Args:
        place: `module:name`, such as `assistants.mail:agent`.
        directory: Where modules are looked for before the installed ones.

    Raises:
        AssistantError: There is no such module or name, its import fails, or it is no agent.
    """
    module_name, _, name = place.partition(':')
    if not name.isidentifier() or not all(part.isidentifier() for part in module_name.split('.')):
        raise AssistantError(f'{place!r} names no agent; write it as `module:name`')
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{module_name}.'.startswith(f'{error.name}.'):
            raise AssistantError(f'importing {module_name!r} failed: there is no module {error.name!r}') from error
        raise AssistantError(f'there is no module {module_name!r}, looked for in {str(directory)!r} first') from None
    except Exception as error:  # the user's own code may raise anything
        raise AssistantError(f'importing {module_name!r} failed with {type(error).__name__}: {error}') from error
    found: object = getattr(module, name, None)
    if not isinstance(found, AbstractAgent):
        kind = 'nothing' if found is None else f'a {type(found).__name__}'
        raise AssistantError(f'{place!r} is {kind}, not an agent')
    return cast('AbstractAgent[Any, Any]', found)
