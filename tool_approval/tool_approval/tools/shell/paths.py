"""Whether all that a command may touch by its arguments lies in named roots."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from .programs import guarded_name
from .words import Command, Word

Root = Callable[[str], bool] | str | Path
"""A root: its absolute path, or whether an absolute path lies in it."""

_FLAGS: Final = re.compile(r'-[A-Za-z]{1,4}|--[a-z][a-z-]*')
"""Options without an attached value; what follows is looked at as a path of its own."""
_PLAIN_VALUES: Final = re.compile(r'--(?:tb|maxfail|durations|color|verbosity|timeout|numprocesses|log-level)=\w+')
"""Values that are never a path."""
_LISTS: Final = re.compile(r'--(?:files0?-from|from-file|exclude-from|include-from|file=|files0)|-T')
"""Options whose file names further files."""
_READ_PATTERNS: Final = frozenset({'grep', 'egrep', 'fgrep', 'zgrep', 'rg', 'awk', 'gawk', 'mawk', 'sed'})
_ELSEWHERE: Final = ('/', '.', '~')
"""How a path begins that may lead out of a root."""
_LETTERS: Final = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'


class Roots:
    """The roots by name, and where relative paths begin."""

    def __init__(self, roots: Mapping[str, Root], cwd: str) -> None:
        """Take them.

        Args:
            roots: By the names that rules give in `sandbox_paths`.
            cwd: The working directory, absolute.
        """
        self._cwd = cwd
        self._is_inside = {name: root if callable(root) else _inside(str(root)) for name, root in roots.items()}

    @property
    def names(self) -> frozenset[str]:
        """What rules may name."""
        return frozenset(self._is_inside)

    def hold(self, command: Command, names: Iterable[str], *, after: int) -> bool:
        """Whether every path of a command lies in one of the named roots, and there is one.

        What may be a path counts as one: operands, what follows an option, what is attached to it.

        Args:
            command: The command.
            names: Roots.
            after: How many words are the rule's own.
        """
        patterns = guarded_name(command.words[0].value) in _READ_PATTERNS
        paths = list(_paths(command.words[after:], patterns=patterns))
        files = [redirect.target for redirect in command.redirects]
        if any(path is None for path in paths) or not all(word.is_fixed for word in files):
            return False
        checks = [self._is_inside[name] for name in names if name in self._is_inside]
        wanted = [path for path in paths if path is not None]
        absolute = [os.path.join(self._cwd, path) for path in (*wanted, *(word.value for word in files))]
        return bool(wanted) and all(any(check(path) for check in checks) for path in absolute)


def _inside(root: str) -> Callable[[str], bool]:
    top = os.path.realpath(root)

    def check(path: str) -> bool:
        real = os.path.realpath(path)
        return real == top or real.startswith(top.rstrip('/') + '/')

    return check


def _paths(words: Sequence[Word], *, patterns: bool) -> Iterable[str | None]:
    """What may be a path, with `None` for what cannot be said.

    Args:
        words: Without the program.
        patterns: Whether its option `-f` reads a file of patterns or of code, whose name may be attached.
    """
    for word in words:
        text = word.value
        if not word.is_fixed or text.startswith(('@', '~')) or '\0' in text:
            yield None
        elif not text.startswith('-') or text == '-':
            yield text
            # A test's name behind a file's, as pytest writes it.
            yield text.partition('::')[0]
        elif _PLAIN_VALUES.fullmatch(text):
            continue
        elif _LISTS.match(text):
            yield None
        elif _FLAGS.fullmatch(text):
            if patterns and (attached := re.fullmatch(r'-[a-zA-Z]*?f(\w+)', text)):
                yield attached[1]
        elif text.startswith('--'):
            value = text.partition('=')[2]
            yield value
            yield from (part for part in re.split('[:,]', value)[1:] if part.startswith(_ELSEWHERE))
        else:
            yield text[2:].removeprefix('=')
            behind = text.lstrip('-').lstrip(_LETTERS)
            if behind.startswith(_ELSEWHERE):
                yield behind
