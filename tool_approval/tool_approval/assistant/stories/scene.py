"""What a story is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pydantic_ai.models import Model
from pydantic_ai_deferred import Agent

from tool_approval.core.controller import ApprovalController
from tool_approval.core.protocols import Presenter

MakeController = Callable[[Mapping[str, Presenter]], ApprovalController]
"""Makes the controller that a scene's tools ask, given who makes what is shown of their calls."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A world that was set up: real processes and files, and an agent with tools for them."""

    opening: str
    """What there is, in a sentence or two."""
    prompt: str
    """What the person asks for."""
    agent: Agent[Any, str]
    """Its tools ask the controller; it has neither model nor handler."""
    controller: ApprovalController
    """Whom the tools ask."""
    script: Model
    """Plays the model's part: it goes by what the tools return, and respects a refusal."""
    facts: Callable[[], list[str]]
    """What is true of the world afterwards, looked at and not remembered."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """One story."""

    title: str
    """A line."""
    open_scene: Callable[[MakeController], AbstractContextManager[Scene]]
    """Sets the world up, and leaves nothing of it behind."""
