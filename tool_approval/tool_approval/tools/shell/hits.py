"""What is found in a command that lifts a pre-approval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """An option, or an argument, that is more than data."""

    word: str
    """As it stands in the command."""
    why: str
    """What it may do."""
