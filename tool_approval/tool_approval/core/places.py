"""Places in a document, and how errors name them."""

from __future__ import annotations

Path = tuple[str | int, ...]
"""The keys from the top of a document down to one of its values."""

LONGEST_SHOWN = 60
"""Chosen: an error quotes so many characters of a key or value, which may be as long as the file."""


def dotted(path: Path) -> str | None:
    """A path as a person reads it, such as `tools.rm.approval`; `None` for the top."""
    return '.'.join(printable(str(part)) for part in path) or None


def printable(text: str, max_chars: int = LONGEST_SHOWN) -> str:
    """What an error quotes of a configuration: shortened, and safe to print on a terminal."""
    shown = text if len(text) <= max_chars else f'{text[: max_chars - 3]}...'
    return shown if shown.isprintable() else repr(shown)[1:-1]
