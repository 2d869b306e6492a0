"""Changes of the working directory, and which programs they matter to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .options import is_inert
from .programs import program_name, trusted_name
from .words import Word
from .wrappers import unwrap

_MOVES: Final = frozenset({'cd', 'pushd', 'popd'})
_MOVING: Final = re.compile(r'\b(?:cd|pushd|popd)\b')
_DEEPEST: Final = 8
"""Chosen: how many wrappers in one another are looked into."""
_UNCONFIGURED: Final = frozenset(
    {'find', 'fd', 'fdfind', 'rg', 'sed', 'awk', 'gawk', 'mawk', 'sort', 'uniq', 'tree', 'date', 'printf', 'test', '[', '[[', 'read'}
)  # fmt: skip
"""Programs that look for no code and no settings, beside lists of names to leave out, in the directory they run in."""


def runs_anywhere(program: str) -> bool:
    """Whether a program, by its name and not by a path, does the same in every directory."""
    return is_inert(program) or trusted_name(program) in _UNCONFIGURED | _MOVES


def moves(words: Sequence[Word], cwd: str, depth: int = 0) -> bool:
    """Whether a command changes the directory: `cd x`, `command cd x`, `eval 'cd x'`.

    Args:
        words: A command.
        cwd: The working directory, absolute: to go there is to stay.
        depth: How many wrappers it stands in.
    """
    if not words or not words[0].is_fixed or not words[0].value or depth > _DEEPEST:
        return False
    if program_name(words[0].value) in _MOVES:
        return not _stays(words, cwd)
    inside = unwrap(words)
    if inside is None:
        return False
    scripts = inside.scripts if program_name(words[0].value) == 'eval' else ()
    return any(moves(inner, cwd, depth + 1) for inner in inside.words) or any(map(_MOVING.search, scripts))


def _stays(words: Sequence[Word], cwd: str) -> bool:
    if len(words) != 2 or words[0].value != 'cd' or not words[1].is_fixed:
        return False
    path = words[1].value
    return path in ('.', './') or (path.startswith('/') and path.rstrip('/') == cwd.rstrip('/'))
