"""Tell which commands read the working directory, and which change it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from .options import is_inert
from .programs import program_name, sub_command_at, trusted_name
from .words import SimpleCommand, Word
from .wrappers import unwrap

_READ_HERE: Final = frozenset({'ls', 'tree', 'find', 'rg', 'pwd'})
"""What looks at the working directory."""
_READ_INPUT: Final = frozenset({'cat', 'head', 'tail', 'wc', 'sort', 'uniq', 'cut', 'grep'})
"""What reads standard input: the output of another command, which is judged by itself, or nothing."""
_GIT: Final = frozenset({'status', 'log', 'diff', 'show', 'branch'})
"""Sub-commands of git that look at the repository."""


def reads_implicit_cwd(command: SimpleCommand, cwd: str) -> bool:
    """Whether a command reads nothing outside of the working directory, apart from the paths that it names.

    Of git, only where the repository begins in the working directory: elsewhere it shows what lies above, too.

    Args:
        command: The command, with a program.
        cwd: The working directory, absolute.
    """
    name = trusted_name(command.words[0].value)
    if name != 'git':
        return name in _READ_HERE or name in _READ_INPUT
    rest = [word.value for word in command.words[sub_command_at(command.words) :]]
    # For help, git runs the reader or the browser that its configuration names.
    if not rest or rest[0] not in _GIT or '--help' in rest:
        return False
    git = os.path.join(cwd, '.git')
    # A file of that name, or a link, leads to a repository elsewhere.
    return os.path.isdir(git) and not os.path.islink(git)


_CWD_CHANGES: Final = frozenset({'cd', 'pushd', 'popd'})
_CWD_CHANGE_IN_CODE: Final = re.compile(r'\b(?:cd|pushd|popd)\b')
_DEEPEST: Final = 8
"""Chosen: how many wrappers in one another are looked into."""
_UNCONFIGURED: Final = frozenset(
    {'find', 'fd', 'fdfind', 'rg', 'sed', 'awk', 'gawk', 'mawk', 'sort', 'uniq', 'tree', 'date', 'printf', 'test', '[',
        '[[', 'read'}
)  # fmt: skip
"""Programs that look for no code and no settings, beside lists of names to leave out, in the directory they run in."""


def runs_anywhere(program: str) -> bool:
    """Whether a program, by its name and not by a path, does the same in every directory."""
    return is_inert(program) or trusted_name(program) in _UNCONFIGURED | _CWD_CHANGES


def changes_cwd(words: Sequence[Word], cwd: str, depth: int = 0) -> bool:
    """Whether a command changes the directory: `cd x`, `command cd x`, `eval 'cd x'`.

    Args:
        words: A command.
        cwd: The working directory, absolute: to go there is to stay.
        depth: How many wrappers it stands in.
    """
    if not words or not words[0].is_fixed or not words[0].value or depth > _DEEPEST:
        return False
    if program_name(words[0].value) in _CWD_CHANGES:
        return not _stays(words, cwd)
    inside = unwrap(words)
    if inside is None:
        return False
    scripts = inside.scripts if program_name(words[0].value) == 'eval' else ()
    return any(changes_cwd(inner, cwd, depth + 1) for inner in inside.words) or any(
        map(_CWD_CHANGE_IN_CODE.search, scripts)
    )


def _stays(words: Sequence[Word], cwd: str) -> bool:
    if len(words) != 2 or words[0].value != 'cd' or not words[1].is_fixed:
        return False
    path = words[1].value
    return path in ('.', './') or (path.startswith('/') and path.rstrip('/') == cwd.rstrip('/'))
