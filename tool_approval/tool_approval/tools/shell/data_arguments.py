"""Programs to which a word is only data, even if it is the name of a program that is blocked: `git log --grep=rm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .options import find_hit, is_inert
from .programs import GLOBAL_OPTIONS, trusted_name
from .words import Word

_TAKE_DATA: Final = frozenset(
    {
        'find', 'fd', 'fdfind', 'rg', 'sed', 'gsed', 'awk', 'gawk', 'mawk', 'nawk', 'sort', 'uniq', 'tree', 'file',
        'date', 'printf', 'test', '[', '[[', 'man', 'pytest', 'py.test', 'mypy', 'read', 'cd',
    }
)  # fmt: skip
"""What `find -exec` runs is judged as a command of its own."""
_OF_GIT: Final = frozenset(
    {
        'log', 'diff', 'show', 'status', 'blame', 'grep', 'ls-files', 'ls-tree', 'branch', 'tag', 'commit', 'add',
        'stash', 'describe', 'shortlog', 'rev-parse', 'rev-list', 'cat-file',
    }
)  # fmt: skip
"""Sub-commands of git whose arguments are names, texts and paths; git lets nobody give them another meaning."""
_MODULES: Final = frozenset({'pytest', 'mypy'})


def takes_data(words: Sequence[Word]) -> bool:
    """Whether none of the arguments is a command to the program.

    Attack: a rule approves `fd -x`, another blocks `rm`, and `fd -x rm` removes. An option that runs something
    is looked for in every word, also in those that a rule names (test_honest_commands.py).

    Args:
        words: A command with a fixed program.
    """
    if is_inert(words[0].value):
        return True
    name = trusted_name(words[0].value)
    if name == 'git':
        known = GLOBAL_OPTIONS['git'].harmless
        sub = next((word for word in words[1:] if word.value not in known), None)
        return sub is not None and sub.is_fixed and sub.value in _OF_GIT and find_hit(words) is None
    if name == 'command':
        return len(words) > 1 and words[1].value in ('-v', '-V') and find_hit(words) is None
    if name in ('python', 'python3') and len(words) > 2 and words[1].value == '-m' and words[2].value in _MODULES:
        return words[2].is_fixed and find_hit(words[2:]) is None
    return name in _TAKE_DATA and find_hit(words) is None
