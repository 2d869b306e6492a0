"""Add the keyword to Pydantic AI's own classes, for agents that other code builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent, WrapperAgent

from .keyword import chatting, constructing, overriding, starting, taking_handler


class Installation:
    """The result of `install`: a context manager that calls `uninstall` on exit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        uninstall()


def install() -> Installation:
    """Add `deferred_tool_handler` to `pydantic_ai.Agent` and `WrapperAgent` themselves, and let them inherit handlers.

    Importing this package does not call `install`. Calling it twice does nothing more. The keyword also works for
    agents that were built before `install` was called.

    Returns:
        A context manager that undoes `install` on exit.
    """
    if not _originals:
        for name in ('__init__', 'from_spec', 'from_file'):
            _patch(Agent, name, constructing)
        for name in ('run', 'run_sync', 'run_stream', 'run_stream_sync', 'run_stream_events'):
            _patch(AbstractAgent, name, taking_handler)
        for name in ('to_cli', 'to_cli_sync'):
            _patch(AbstractAgent, name, chatting)
        _patch(WrapperAgent, 'iter', taking_handler)
        _patch(Agent, 'iter', starting)
        for owner in (Agent, WrapperAgent):
            _patch(owner, 'override', overriding)
    return Installation()


def uninstall() -> None:
    """Undo `install`. Agents keep the handler they were built with."""
    while _originals:
        owner, name, original = _originals.pop()
        setattr(owner, name, original)


# State of the process, like the patched classes themselves.
_originals: list[tuple[type, str, Any]] = []


def _patch(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    original = owner.__dict__[name]
    _originals.append((owner, name, original))
    is_classmethod = isinstance(original, classmethod)
    made = make(cast('Any', original).__func__ if is_classmethod else original)
    setattr(owner, name, cast('Any', classmethod)(made) if is_classmethod else made)
