"""What ends a command, and the exit statuses that tell it."""

from __future__ import annotations

from typing import Final

FAILED: Final = 2
"""It was called wrongly, or could not be done."""
INTERRUPTED: Final = 130
"""Ctrl-C; the shell's own number for it."""
NOBODY_READS: Final = 141
"""Whoever read the output has gone, as `head` does; the shell's own number for it."""


class UsageError(Exception):
    """A command was called in a way that means nothing. Nothing has happened."""
