"""Commands that read the working directory, or nothing but their input, where they name no path: `ls` is `ls .`."""

from __future__ import annotations

import os
from typing import Final

from .programs import GLOBAL_OPTIONS, trusted_name
from .words import Command

_READ_HERE: Final = frozenset({'ls', 'tree', 'find', 'rg', 'pwd'})
"""What looks at the working directory."""
_READ_INPUT: Final = frozenset({'cat', 'head', 'tail', 'wc', 'sort', 'uniq', 'cut', 'grep'})
"""What reads standard input: the output of another command, which is judged by itself, or nothing."""
_GIT: Final = frozenset({'status', 'log', 'diff', 'show', 'branch'})
"""Sub-commands of git that look at the repository."""


def reads_here(command: Command, cwd: str) -> bool:
    """Whether a command reads nothing outside of the working directory, apart from the paths that it names.

    Of git, only where the repository begins in the working directory: elsewhere it shows what lies above, too.

    Args:
        command: The command, with a program.
        cwd: The working directory, absolute.
    """
    name = trusted_name(command.words[0].value)
    if name != 'git':
        return name in _READ_HERE or name in _READ_INPUT
    rest = [word.value for word in command.words[1:] if word.value not in GLOBAL_OPTIONS['git'].harmless]
    # For help, git runs the reader or the browser that its configuration names.
    if not rest or rest[0] not in _GIT or '--help' in rest:
        return False
    git = os.path.join(cwd, '.git')
    # A file of that name, or a link, leads to a repository elsewhere.
    return os.path.isdir(git) and not os.path.islink(git)
