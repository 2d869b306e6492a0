"""Decide whether all paths that a command may access are in the roots of a rule."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from .labels import Label, LabelledCommand, label
from .names import guarded_name, sub_command_at, trusted_name
from .unlisted import is_powerful
from .words import SimpleCommand, Word

_PATHS: Final = frozenset({'read', 'write', 'target'})
_NO_PATHS: Final = frozenset({'program', 'sub_command', 'flag', 'end', 'assignment', 'command'})
_ELSEWHERE: Final = ('/', '.', '~')
"""Prefixes of paths that may be outside of a root."""


ShellRoot = Callable[[str], bool] | str | Path
"""A root, given by its absolute path or by a function that returns whether an absolute path is in the root. An
`OuterRoot` is also such a function."""


@runtime_checkable
class OuterRoot(Protocol):
    """A root that may contain nested roots with different rules."""

    @property
    def is_confined(self) -> bool:
        """Whether an OS sandbox confines commands to what they may read and write."""
        ...

    def __call__(self, path: str) -> bool:
        """Return whether an absolute path is in this root or in a nested root."""
        ...

    def asks(self, path: str, *, is_written: bool) -> bool:
        """Return whether a nested root refuses a path or requires approval for it."""
        ...


class ShellRoots:
    """Roots by name, and the directory against which relative paths are resolved."""

    def __init__(self, roots: Mapping[str, ShellRoot], cwd: str, *, is_confined: bool = True) -> None:
        """Take the roots.

        Args:
            roots: Roots by name. The `sandbox_paths` of rules contain these names.
            cwd: Absolute path of the working directory.
            is_confined: Whether an OS sandbox confines commands. If not, a rule that allows commands does not apply to
                those whose words cannot show every path: commands that write, and folders with links that lead out.
        """
        self._cwd = cwd
        self._outer = {name: root for name, root in roots.items() if isinstance(root, OuterRoot)}
        self._is_confined = is_confined or any(root.is_confined for root in self._outer.values())
        self._is_inside = {
            name: root if callable(root) else partial(is_inside, str(root)) for name, root in roots.items()
        }

    @property
    def names(self) -> frozenset[str]:
        """Names by which rules can refer to the roots."""
        return frozenset(self._is_inside)

    def hold(
        self,
        command: SimpleCommand,
        names: Sequence[str],
        *,
        after: int,
        approves: bool = True,
    ) -> bool:
        """Return whether a command accesses only paths in the named roots.

        Args:
            command: The command.
            names: Names of the roots.
            after: Number of words in the rule's pattern.
            approves: Whether the rule allows the command. If so, nested roots must not refuse a path or ask about it.
        """
        touched = self._touched(command, after, approves=approves)
        is_unshown = approves and not self._is_confined and _composes_paths(command.words)
        # Attack: `diff d1 x`, where `d1/x` is a link, and `pytest d1`, which follows it.
        follows = approves and not self._is_confined and _may_follow_links(command.words)
        return (touched is not None and not is_unshown) and all(
            any(
                self._is_inside[name](path)
                and not (approves and name in self._outer and self._outer[name].asks(path, is_written=is_written))
                and not (follows and _leads_out(path, self._is_inside[name]))
                for name in names
                if name in self._is_inside
            )
            for path, is_written in touched
        )

    def _touched(self, command: SimpleCommand, after: int, *, approves: bool) -> list[tuple[str, bool]] | None:
        """Return the absolute paths that a command accesses, and whether the command may write to each path.

        Return `None` if the paths cannot be determined. A command that names no path reads the working directory.
        """
        words = command.words
        # Attack: `git --no-pager diff`, where a flag moves the rule's words further back.
        after += sub_command_at(words) - 1 if after > 1 and guarded_name(words[0].value) == 'git' else 0
        found = label(words)
        if (inner := found.command_at) is not None and after > inner:
            return self._touched(command.of(words[inner:]), after - inner, approves=approves)
        if _reads_more(found, words, after):
            return None
        labels = found.labels
        # A rule may name an unlisted option: `sed -i` writes the file that `sed` reads.
        is_unknown = any(each.kind == 'unknown_option' for each in labels)
        writes = is_unknown or found.entry is None or 'writes' in found.entry.flags
        touched: list[tuple[str, bool]] = []
        for each in labels[after:]:
            paths = _paths(each)
            if paths is None:
                return None
            touched += [(path, writes or each.holds != 'read') for path in paths if path]
        for redirect in command.redirects:
            if redirect.target.raw != '/dev/null':
                if not redirect.target.is_fixed:
                    return None
                touched.append((redirect.target.value, redirect.is_write))
        has_path = any(each.kind == 'operand' and each.holds in _PATHS for each in labels[after:])
        if not has_path:
            if approves and not _reads_here(found, self._cwd):
                return None
            touched.append(('.', False))
        return [(os.path.join(self._cwd, path), is_written) for path, is_written in touched]


_GIT: Final = frozenset({'git status', 'git log', 'git diff', 'git show', 'git branch'})
"""Git sub-commands that read the repository."""


def _reads_here(found: LabelledCommand, cwd: str) -> bool:
    """Return whether a command that names no path reads only the working directory or its input."""
    entry, words = found.entry, found.words
    if entry is None or trusted_name(words[0].value) is None:
        return False
    if entry.name in _GIT:
        # A `.git` that is a file or link refers to a repository elsewhere. Help opens in a pager that settings name.
        git = os.path.join(cwd, '.git')
        is_help = any(word.value == '--help' for word in words)
        return os.path.isdir(git) and not os.path.islink(git) and not is_help
    looks = entry.name == 'pwd' or (entry.operands or ())[:1] == ('read',)
    return looks and entry.flags.isdisjoint({'runs_files', 'writes'})


def _composes_paths(words: Sequence[Word]) -> bool:
    """Return whether a command may write to paths that it makes from its words, or that other files name.

    Attack: `cp x d1`, where `d1/x` is a link that leads out of the root; `unzip`, `split` and `gcc` are like it.
    """
    return is_powerful(words) or 'writes' in label(words).flags


def _may_follow_links(words: Sequence[Word]) -> bool:
    entry = label(words).entry
    if entry is None:
        return False
    program = entry.name.split()[0]
    return program in _FOLLOWS_LINKS or (program != 'git' and 'runs_files' in entry.flags)


_FOLLOWS_LINKS: Final = frozenset({'diff', 'ruff', 'sdiff'})
"""Programs that follow links below a folder that they are given. So do those that run files of the folder. The others
follow none, unless they get an option that their entry lists as `beyond`."""
_MOST_LOOKED_AT: Final = 20_000
"""Maximum number of files of a folder that are looked at. A folder with more counts as one with a link."""


def _leads_out(folder: str, is_inside: Callable[[str], bool]) -> bool:
    """Return whether something below a folder is a link to a path outside of a root."""
    seen = 0
    for place, folders, files in os.walk(folder):
        seen += len(folders) + len(files)
        paths = (os.path.join(place, name) for name in (*folders, *files))
        if seen > _MOST_LOOKED_AT or not all(is_inside(path) for path in paths if os.path.islink(path)):
            return True
    return False


def _reads_more(found: LabelledCommand, words: Sequence[Word], after: int) -> bool:
    """Return whether a command may read paths other than its arguments, through a file list, a link or code."""
    entry = found.entry
    if entry is None:
        return False
    # Attack: `awk 'BEGIN {ARGV[1] = "/etc/passwd"} 1' out/a`.
    if entry.opens is not None and any(entry.opens.search(word.value) for word in words[after:]):
        return True
    beyond = entry.listed['beyond']
    return '*' in beyond or any(not beyond.isdisjoint(each.options) for each in found.labels)


def _paths(each: Label) -> list[str] | None:
    """Return the paths in a word; `None` if they cannot be determined."""
    word, value = each.word, each.word.value if each.value is None else each.value
    if each.kind in _NO_PATHS or (each.kind == 'option' and each.value is None):
        return []
    # An unknown argument may be a path.
    if each.kind != 'unknown_program' or value.startswith('-'):
        if each.kind not in ('option', 'value', 'operand') or each.holds not in ('text', 'code', *_PATHS):
            return None
        if each.holds not in _PATHS and (word.is_fixed or each.kind != 'operand'):
            return []
    if not word.is_fixed or value.startswith(('@', '~')) or '\0' in value or '://' in value:
        return None
    # One value may contain several paths.
    parts = [] if each.kind == 'operand' else re.split('[:,]', value)[1:]
    # Many programs read `-f=/x` as `-f /x`. pytest writes a test's name after a file's.
    return [value, value.removeprefix('='), value.partition('::')[0], *(p for p in parts if p.startswith(_ELSEWHERE))]


def is_inside(root: str, path: str) -> bool:
    """Return whether a path is equal to a folder or in the folder, after resolving links."""
    top, real = os.path.realpath(root), os.path.realpath(path)
    return real == top or real.startswith(top.rstrip('/') + '/')
