"""Whether all that a command may touch by its arguments lies in named roots."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from .path_arguments import arguments, may_open, reads_what_it_is_fed, takes_code
from .programs import GLOBAL_OPTIONS, guarded_name
from .words import Command, Word

Root = Callable[[str], bool] | str | Path
"""A root: its absolute path, or whether an absolute path lies in it."""

_FLAGS: Final = re.compile(r'-[A-Za-z]{1,4}|--[a-z][a-z-]*')
"""Options without an attached value; what follows is looked at as a path of its own."""
_PLAIN_VALUES: Final = re.compile(r'--(?:tb|maxfail|durations|color|verbosity|timeout|numprocesses|log-level)=\w+')
"""Values that are never a path."""
_LISTS: Final = ('files-from', 'files0-from', 'from-file', 'exclude-from', 'include-from', 'pathspec-from-file', 'arg-file',
                 'input-file', 'file-list', 'files', 'files0')  # fmt: skip
"""Options whose file names further files; each may be cut short."""
_PLAIN_NAMES: Final = frozenset({'include', 'exclude', 'f', 'i', 'e', 'in'})
"""What is an option itself."""
_LISTS_BY_PROGRAM: Final = {
    **dict.fromkeys(('md5sum', 'sha1sum', 'sha224sum', 'sha256sum', 'sha384sum', 'sha512sum', 'b2sum', 'cksum', 'shasum'), 'c'),
    'tar': 'T', 'bsdtar': 'TI', 'file': 'f', 'xargs': 'a', 'ctags': 'L', 'dig': 'f', 'wget': 'i',
}  # fmt: skip
"""Letters that do the same. Attack: `sha256sum -c out/list`, where the list names files elsewhere."""
_READ_PATTERNS: Final = frozenset({'grep', 'egrep', 'fgrep', 'zgrep', 'rg', 'awk', 'gawk', 'mawk', 'sed'})
_ELSEWHERE: Final = ('/', '.', '~')
"""How a path begins that may lead out of a root."""
_OF_CODE: Final = re.compile(r'[\n"\'(){};|<>]')
"""What stands in code rather than in a path. Attack: `sqlite3 out/a "select 'x/../out/', ..."` ends below `out`."""
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

    def hold(self, command: Command, names: Iterable[str], *, after: int, is_here: bool = False) -> bool:
        """Whether every path of a command lies in one of the named roots, and there is one, or nothing is read but a pipe.

        What may be a path counts as one: operands, what follows an option, what is attached to it.

        Args:
            command: The command.
            names: Roots.
            after: How many words are the rule's own.
            is_here: Whether it reads the working directory where it names no path: then this has to lie in a root, too.
        """
        name = guarded_name(command.words[0].value)
        # Attack: `git --no-pager diff`, where what stands behind two words is no path.
        harmless = GLOBAL_OPTIONS[name].harmless if after > 1 and name in GLOBAL_OPTIONS else ()
        after += sum(1 for _ in itertools.takewhile(lambda word: word.value in harmless, command.words[1:]))
        # Attack: `{ tac -s out/a; } < /etc/passwd`. What feeds it is a file that is named elsewhere.
        is_fed_elsewhere = command.is_fed and not command.is_fed_here
        options = [word.value for word in command.words[after:]]
        if (
            is_fed_elsewhere
            or may_open(command, after=after)
            or any(_names_files(name, text) or _follows_links(name, text) for text in options)
        ):
            return False
        known = arguments(command.words, after=after)
        given = [word for at, word in enumerate(command.words) if at >= after and at not in known.not_paths]
        takes = takes_code(command.words[0].value)
        paths = list(_paths(given, patterns=name in _READ_PATTERNS, takes_code=takes))
        files = [each.target for each in command.redirects if each.target.raw != '/dev/null']
        if any(path is None for path in paths) or not all(word.is_fixed for word in files):
            return False
        checks = [self._is_inside[name] for name in names if name in self._is_inside]
        wanted = [*(path for path in paths if path), *(word.value for word in files), *(['.'] if is_here else [])]
        absolute = [os.path.join(self._cwd, path) for path in wanted]
        has_source = is_here or known.has_path or reads_what_it_is_fed(command)
        return has_source and all(any(check(path) for check in checks) for path in absolute)


def _inside(root: str) -> Callable[[str], bool]:
    top = os.path.realpath(root)

    def check(path: str) -> bool:
        real = os.path.realpath(path)
        return real == top or real.startswith(top.rstrip('/') + '/')

    return check


def _following(letters: str, *long: str) -> re.Pattern[str]:
    # Long options may be abbreviated, and anything may stand before a letter: `grep -3R`.
    return re.compile('|'.join([rf'-(?!-).*[{letters}].*', '--der.*', '--fol.*', *long]), re.DOTALL)


_FOLLOWING: Final = {
    **dict.fromkeys(('grep', 'egrep', 'fgrep', 'zgrep', 'rgrep', 'ctags'), _following('R')),
    **dict.fromkeys(('rg', 'fd', 'fdfind', 'ls', 'du', 'cp', 'chmod', 'chown', 'chgrp'), _following('L')),
    'rsync': _following('Lk', '--copy-.*'),
    'find': re.compile('-L|-follow'),
    'tree': _following('l'),
    'tar': _following('h'),
    'ag': _following('f'),
    'diff': _following('r', '--rec.*'),
    **dict.fromkeys(('zip', 'scp'), _following('r', '--rec.*')),
}
"""Options with which links are followed below a directory, by program."""


def _follows_links(program: str, text: str) -> bool:
    """Whether an option leads out of a root by a link below it, such as one to a key. Attack: `rg -L x out`."""
    following = _FOLLOWING.get(program)
    return following is not None and following.fullmatch(text) is not None


def _names_files(program: str, text: str) -> bool:
    """Whether an option reads the names of files from a file, which may lie anywhere."""
    if text.startswith('--'):
        name = text[2:].partition('=')[0]
        is_check = _LISTS_BY_PROGRAM.get(program) == 'c' and 'check'.startswith(name)
        return name not in _PLAIN_NAMES and name != '' and (is_check or any(each.startswith(name) for each in _LISTS))
    letters = _LISTS_BY_PROGRAM.get(program, '')
    return text.startswith('-') and any(letter in text for letter in letters)


def _is_no_path(text: str) -> bool:
    """Whether a text is an address, or rather code than a path."""
    return '://' in text or ('/' in text and _OF_CODE.search(text) is not None)


def _paths(words: Sequence[Word], *, patterns: bool, takes_code: bool) -> Iterable[str | None]:
    """What may be a path, with `None` for what cannot be said.

    Args:
        words: Without the program.
        patterns: Whether its option `-f` reads a file of patterns or of code, whose name may be attached.
        takes_code: Whether an operand may be code.
    """
    is_over = False
    for word in words:
        text = word.value
        if is_over:
            yield text  # behind `--`, `-x` is a file
        is_over = is_over or text == '--'
        is_code = takes_code and _is_no_path(text.partition('::')[0])
        if not word.is_fixed or text.startswith(('@', '~')) or '\0' in text or is_code:
            yield None
        elif not text.startswith('-') or text == '-':
            yield text
            # A test's name behind a file's, as pytest writes it.
            yield text.partition('::')[0]
        elif _PLAIN_VALUES.fullmatch(text):
            continue
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
