"""What is found in a command that runs others."""

from __future__ import annotations

from dataclasses import dataclass

from .words import Word


@dataclass(frozen=True, kw_only=True)
class Inside:
    """What a wrapper runs."""

    words: tuple[tuple[Word, ...], ...] = ()
    """Commands, word by word."""
    scripts: tuple[str, ...] = ()
    """Commands as text for a shell."""
    is_transparent: bool = False
    """Whether what is inside decides alone: the wrapper adds nothing to it."""
    moves: bool = False
    """Whether it runs in other directories."""
    is_program: bool = False
    """Whether the wrapper does more than run others, and is judged as any program is."""
    assignments: tuple[str, ...] = ()
    """Variables that are set for it."""
    own: int = 1
    """How many words are the wrapper's: its name, its options and their values."""
    problem: str | None = None
    """Why what is inside is not fully known."""
