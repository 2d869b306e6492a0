"""Decide whether all that a command may touch by its arguments lies in named roots."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from .labels import Label, LabelledCommand, label
from .names import guarded_name, sub_command_at, trusted_name
from .words import SimpleCommand, Word

_SQL: Final = re.compile('readfile|fsdir|zipfile|attach|load|edit|read_|_scan|copy|glob', re.IGNORECASE)
_OPENING: Final[Mapping[str, re.Pattern[str]]] = {
    'awk': re.compile('ARG|SYMTAB|getline'),
    'jq': re.compile('import|include|modulemeta'),
    'yq': re.compile('load'),
    **dict.fromkeys(('sqlite3', 'duckdb'), _SQL),
}
"""What a script opens other files with. Attack: `awk 'BEGIN {ARGV[1] = "/etc/passwd"} 1' out/a`."""
_PATHS: Final = frozenset({'read', 'write', 'target'})
_NO_PATHS: Final = frozenset({'program', 'sub_command', 'flag', 'end', 'assignment', 'command'})
_ELSEWHERE: Final = ('/', '.', '~')
"""How a path begins that may lead out of a root."""


ShellRoot = Callable[[str], bool] | str | Path
"""A root: its absolute path, or whether an absolute path lies in it."""


class ShellRoots:
    """The roots by name, and where relative paths begin."""

    def __init__(self, roots: Mapping[str, ShellRoot], cwd: str) -> None:
        """Take them.

        Args:
            roots: By the names that rules give in `sandbox_paths`.
            cwd: The working directory, absolute.
        """
        self._cwd = cwd
        self._is_inside = {
            name: root if callable(root) else partial(is_inside, str(root)) for name, root in roots.items()
        }

    @property
    def names(self) -> frozenset[str]:
        """What rules may name."""
        return frozenset(self._is_inside)

    def hold(self, command: SimpleCommand, names: Iterable[str], *, after: int, is_here: bool = False) -> bool:
        """Whether every path of a command lies in a named root, and there is one, or nothing is read but a pipe.

        Args:
            command: The command.
            names: Names of roots.
            after: How many words are the rule's own.
            is_here: Whether it reads the working directory where it names no path: then this has to lie in a root, too.
        """
        words = command.words
        # Attack: `git --no-pager diff`, where what stands behind two words is no path.
        after += sub_command_at(words) - 1 if after > 1 and guarded_name(words[0].value) == 'git' else 0
        found = label(words)
        if (inner := found.command_at) is not None and after > inner:
            return self.hold(command.of(words[inner:]), names, after=after - inner, is_here=is_here)
        # Attack: `{ tac -s out/a; } < /etc/passwd`. What feeds it is a file that is named elsewhere.
        is_fed_elsewhere = command.is_fed and not command.is_fed_here
        if is_fed_elsewhere or _reads_more(found, words, after):
            return False
        files = [each.target for each in command.redirects if each.target.raw != '/dev/null']
        paths = [
            path for word, each in list(zip(words, found.labels, strict=True))[after:] for path in _paths(word, each)
        ]
        if any(path is None for path in paths) or not all(word.is_fixed for word in files):
            return False
        checks = [self._is_inside[name] for name in names if name in self._is_inside]
        wanted = [*(path for path in paths if path), *(word.value for word in files), *(['.'] if is_here else [])]
        absolute = [os.path.join(self._cwd, path) for path in wanted]
        has_path = any(each.kind == 'operand' and each.holds in _PATHS for each in found.labels[after:])
        has_source = is_here or has_path or (command.is_fed_here and reads_input(found, words))
        return has_source and all(any(check(path) for check in checks) for path in absolute)


def reads_input(found: LabelledCommand, words: Sequence[Word]) -> bool:
    """Whether a program without a path reads what it is fed, and no directory: `cat a | head`."""
    entry = found.entry
    if entry is None or trusted_name(words[0].value) is None or entry.flags & {'runs_files', 'writes', 'reads_cwd'}:
        return False
    # Attack: `echo | grep -r x` reads the working directory.
    given = {option for each in found.labels for option in each.options}
    return 'read' in (entry.operands or ()) and given.isdisjoint(entry.reads_cwd_with)


def _reads_more(found: LabelledCommand, words: Sequence[Word], after: int) -> bool:
    """Whether a command may read more than the paths that it names: by a list of files, a link, or code."""
    entry = found.entry
    if entry is None:
        return False
    opening = _OPENING.get(entry.name)
    if opening is not None and any(opening.search(word.value) for word in words[after:]):
        return True
    return '*' in entry.beyond or any(not entry.beyond.isdisjoint(each.options) for each in found.labels)


def _paths(word: Word, each: Label) -> Iterator[str | None]:
    """What a word names as paths, with `None` for what cannot be said."""
    value = each.value if each.value is not None else word.value
    if each.kind in _NO_PATHS or (each.kind == 'option' and each.value is None):
        return
    if each.kind == 'unknown_program' and not value.startswith('-'):
        pass  # what is not known of an argument may be a path
    elif each.kind not in ('option', 'value', 'operand') or each.holds not in ('text', 'code', *_PATHS):
        yield None
        return
    elif each.holds not in _PATHS and (word.is_fixed or each.kind != 'operand'):
        return
    if not word.is_fixed or value.startswith(('@', '~')) or '\0' in value or '://' in value:
        yield None
        return
    yield value
    # To many programs, `-f=/x` is `-f /x`.
    yield value.removeprefix('=')
    # A test's name behind a file's, as pytest writes it.
    yield value.partition('::')[0]
    if each.kind != 'operand':
        yield from (part for part in re.split('[:,]', value)[1:] if part.startswith(_ELSEWHERE))


def is_inside(root: str, path: str) -> bool:
    """Whether a path is a folder, or in it, wherever links lead."""
    top, real = os.path.realpath(root), os.path.realpath(path)
    return real == top or real.startswith(top.rstrip('/') + '/')
