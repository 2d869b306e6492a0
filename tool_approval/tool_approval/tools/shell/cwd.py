"""Determine which commands read the working directory, and which commands change it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from .labels import label
from .names import program_name, trusted_name
from .paths import reads_input
from .words import SimpleCommand, Word
from .wrappers import unwrap

_GIT: Final = frozenset({'git status', 'git log', 'git diff', 'git show', 'git branch'})
"""Git sub-commands that read the repository."""
_CWD_CHANGES: Final = frozenset({'cd', 'pushd', 'popd'})
_CWD_CHANGE_IN_CODE: Final = re.compile(r'\b(?:cd|pushd|popd)\b')
_DEEPEST: Final = 8
"""Maximum depth of nested wrappers to search."""


def reads_implicit_cwd(command: SimpleCommand, cwd: str) -> bool:
    """Return whether a command reads only the working directory, its standard input and the paths in its arguments.

    For git, `.git` must be in the working directory, because git could otherwise read a repository in a parent folder.

    Args:
        command: The command. The program name must be known.
        cwd: Absolute path of the working directory.
    """
    found = label(command.words)
    entry = found.entry
    if entry is None or trusted_name(command.words[0].value) is None:
        return False
    if not entry.name.startswith('git'):
        is_looking = 'reads_cwd' in entry.flags and not entry.flags & {'runs_files', 'writes'}
        return is_looking or reads_input(found, command.words)
    if entry.name not in _GIT or any(word.value == '--help' for word in command.words):
        return False  # git opens help in the pager or browser that its configuration names
    git = os.path.join(cwd, '.git')
    # A `.git` that is a file or link refers to a repository in another folder.
    return os.path.isdir(git) and not os.path.islink(git)


def runs_anywhere(words: Sequence[Word]) -> bool:
    """Return whether a program behaves the same in every working directory."""
    entry = label(words).entry
    if entry is None or trusted_name(words[0].value) is None or 'runs_files' in entry.flags:
        return False
    return 'harmless' in entry.flags or 'anywhere' in entry.flags or entry.takes_any_option


def changes_cwd(words: Sequence[Word], cwd: str, depth: int = 0) -> bool:
    """Return whether a command changes the working directory. Examples: `cd x`, `command cd x` and `eval 'cd x'`.

    Args:
        words: The command.
        cwd: Absolute path of the working directory. A `cd` to this directory changes nothing.
        depth: Number of wrappers around the command.
    """
    if not words or not words[0].is_fixed or not words[0].value or depth > _DEEPEST:
        return False
    if program_name(words[0].value) in _CWD_CHANGES:
        return not _stays(words, cwd)
    inside = unwrap(words)
    if inside is None:
        return False
    scripts = inside.scripts if program_name(words[0].value) == 'eval' else ()
    is_in_code = any(map(_CWD_CHANGE_IN_CODE.search, scripts))
    return is_in_code or any(changes_cwd(inner, cwd, depth + 1) for inner in inside.words)


def _stays(words: Sequence[Word], cwd: str) -> bool:
    if len(words) != 2 or words[0].value != 'cd' or not words[1].is_fixed:
        return False
    path = words[1].value
    return path in ('.', './') or (path.startswith('/') and path.rstrip('/') == cwd.rstrip('/'))
