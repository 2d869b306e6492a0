"""Decide whether all that a command may touch by its arguments lies in named roots."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .options import is_inert
from .program_data import GIT, NO_PATH, OPTION_SPECS, Kind, OptionSpec
from .programs import HAS_SUB_COMMANDS, guarded_name, sub_command_at, trusted_name
from .words import SimpleCommand, Word

_SQL: Final = re.compile('readfile|fsdir|zipfile|attach|load|edit|read_|_scan|copy|glob', re.IGNORECASE)
_OPENING: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(('awk', 'gawk', 'mawk'), re.compile('ARG|SYMTAB|getline')),
    'jq': re.compile('import|include|modulemeta'),
    'yq': re.compile('load'),
    **dict.fromkeys(('sqlite', 'sqlite3', 'duckdb'), _SQL),
}
"""What a script opens other files with. Attack: `awk 'BEGIN {ARGV[1] = "/etc/passwd"} 1' out/a`."""

_READERS: Final = frozenset(
    {
        'cat', 'head', 'tail', 'wc', 'sort', 'uniq', 'nl', 'tac', 'rev', 'md5sum', 'sha1sum', 'sha256sum', 'sha512sum',
        'cksum', 'grep', 'egrep', 'fgrep',
    }
)  # fmt: skip
_RECURSIVE: Final = re.compile(r'-[A-Za-z]*[rRd].*|--[rd].*', re.DOTALL)


def reads_what_it_is_fed(command: SimpleCommand) -> bool:
    """Whether a program without a path reads what the line gives it, and no directory: `cat a | head`, `wc -l < a`."""
    name = trusted_name(command.words[0].value)
    if name not in _READERS or not command.is_fed_here:
        return False
    # Attack: `echo | grep -r x` reads the working directory.
    return not name.endswith('grep') or not any(_RECURSIVE.fullmatch(word.value) for word in command.words[1:])


def takes_code(program: str) -> bool:
    """Whether an operand of a program may be code, or an address. Of what only reads and prints, all are paths."""
    return not is_inert(program) or trusted_name(program) in _OPENING


def may_open(command: SimpleCommand, *, after: int) -> bool:
    """Whether a program is given code with which it may open any file, whatever paths stand beside it."""
    opening = _OPENING.get(trusted_name(command.words[0].value) or '')
    return opening is not None and any(opening.search(word.value) for word in command.words[after:])


@dataclass(kw_only=True)
class PathArguments:
    """What is certain of a command's arguments."""

    not_paths: set[int] = field(default_factory=set[int])
    """The places of words that are no path, whatever they look like."""
    has_path: bool = False
    """Whether one is a path that the program looks into, and neither the value of an option nor a pattern."""


def arguments(words: Sequence[Word], *, after: int) -> PathArguments:
    """Go through a command's words.

    Attack: `pytest --ignore out` and `rg out` read the working directory (test_sandbox_paths.py). Each option that is
    not known may take a word: there is a path for sure where more words are left than such options and patterns.

    Args:
        words: A command with a fixed program.
        after: How many words a rule names.
    """
    name, spec, start, texts = _spec_of(words, after)
    found, patterns = PathArguments(), list[int]()
    has_sub = texts > spec.texts
    loose = unknown = 0
    before: Kind = 'operand'
    option, is_sure = '', True
    may_look = not any(re.fullmatch(spec.refused, word.value) for word in words[start:])
    for at, word in enumerate(words[start:], start=start):
        if at == after:
            loose, unknown = 0, int(before == 'unknown')
        if word.value == '--' and before not in ('takes', 'unknown'):
            loose += sum(1 for each in words[max(at + 1, after) :] if not each.value.startswith('-'))
            found.has_path = found.has_path or (may_look and loose > texts + unknown)
            break
        kind: Kind = spec.kind(word.value) if word.is_fixed else 'unknown'
        if before == 'takes':
            found.not_paths.update({at} if word.is_fixed and _is_plain(name, option, word.value) else ())
            kind = 'operand'
        elif kind == 'operand' and at < after:
            texts = max(texts - 1, 0)
        elif kind == 'operand':
            loose += 1
            patterns += [at] if loose <= texts else []
            found.has_path = found.has_path or (may_look and loose > texts + unknown)
        elif kind == 'unknown' or before == 'unknown':
            kind = 'unknown'  # Attack: `pytest --ignore -k /etc`. Behind an option, it may be its value.
            unknown += 1
        elif kind == 'flag' or _is_plain(name, *_apart(spec, word.value)):
            found.not_paths.add(at)
        elif kind == 'attached':
            is_sure = (
                False  # Attack: `grep /etc/passwd --reg=out out`, where the pattern is given by a shortened option
            )
        if kind != 'operand' and re.fullmatch(spec.instead, word.value, re.DOTALL):
            texts, patterns = 0, []
        may_look = may_look and not (spec.paths_first and kind != 'operand' and word.value not in ('-H', '-P'))
        before, option = kind, word.value
    if after != start or has_sub:
        return PathArguments(has_path=found.has_path)
    found.not_paths.update(at for at in patterns if is_sure and not unknown and words[at].is_fixed)
    return found


def _is_plain(name: str, option: str, value: str) -> bool:
    """Whether the value of an option is no path."""
    allowed = NO_PATH.get(name, {}).get(option)
    return allowed is not None and re.fullmatch(allowed, value, re.DOTALL) is not None


def _apart(spec: OptionSpec, text: str) -> tuple[str, str]:
    """An option and the value that is attached to it: `-k` and `a` of `-ka`, `--tb` and `no` of `--tb=no`."""
    found = spec.attached_value(text)
    if found is None or text.startswith('--'):
        option, _, value = text.partition('=')
        return option, value
    return f'-{text[found.end() - 2]}', text[found.end() - 1 :]


def _spec_of(words: Sequence[Word], after: int) -> tuple[str, OptionSpec, int, int]:
    """A program's name and options, where its arguments begin, and how many of the first ones are no path."""
    name = trusted_name(words[0].value) or ''
    if name in ('python', 'python3') and [word.value for word in words[1:after]] == ['-m', 'pytest']:
        return 'pytest', OPTION_SPECS['pytest'], after, 0
    if name == 'git':
        sub = sub_command_at(words[:after])
        if sub < min(after, len(words)) and (spec := GIT.get(words[sub].value)) is not None:
            return name, spec, sub + 1, spec.texts
    spec = OPTION_SPECS.get(name, OptionSpec())
    return name, spec, 1, spec.texts + (name in HAS_SUB_COMMANDS)


ShellRoot = Callable[[str], bool] | str | Path
"""A root: its absolute path, or whether an absolute path lies in it."""

_FLAGS: Final = re.compile(r'-[A-Za-z]{1,4}|--[a-z][a-z-]*')
"""Options without an attached value; what follows is looked at as a path of its own."""
_PLAIN_VALUES: Final = re.compile(r'--(?:tb|maxfail|durations|color|verbosity|timeout|numprocesses|log-level)=\w+')
"""Values that are never a path."""
_LISTS: Final = ('files-from', 'files0-from', 'from-file', 'exclude-from', 'include-from', 'pathspec-from-file',
    'arg-file',
                 'input-file', 'file-list', 'files', 'files0')  # fmt: skip
"""Options whose file names further files; each may be cut short."""
_PLAIN_NAMES: Final = frozenset({'include', 'exclude', 'f', 'i', 'e', 'in'})
"""What is an option itself."""
_LISTS_BY_PROGRAM: Final = {
    **dict.fromkeys(('md5sum', 'sha1sum', 'sha224sum', 'sha256sum', 'sha384sum', 'sha512sum', 'b2sum', 'cksum',
        'shasum'), 'c'),
    'tar': 'T', 'bsdtar': 'TI', 'file': 'f', 'xargs': 'a', 'ctags': 'L', 'dig': 'f', 'wget': 'i',
}  # fmt: skip
"""Letters that do the same. Attack: `sha256sum -c out/list`, where the list names files elsewhere."""
_READ_PATTERNS: Final = frozenset({'grep', 'egrep', 'fgrep', 'zgrep', 'rg', 'awk', 'gawk', 'mawk', 'sed'})
_ELSEWHERE: Final = ('/', '.', '~')
"""How a path begins that may lead out of a root."""
_OF_CODE: Final = re.compile(r'[\n"\'(){};|<>]')
"""What stands in code rather than in a path. Attack: `sqlite3 out/a "select 'x/../out/', ..."` ends below `out`."""
_LETTERS: Final = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'


class ShellRoots:
    """The roots by name, and where relative paths begin."""

    def __init__(self, roots: Mapping[str, ShellRoot], cwd: str) -> None:
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

    def hold(self, command: SimpleCommand, names: Iterable[str], *, after: int, is_here: bool = False) -> bool:
        """Whether every path of a command lies in a named root, and there is one, or nothing is read but a pipe.

        What may be a path counts as one: operands, what follows an option, what is attached to it.

        Args:
            command: The command.
            names: Names of roots.
            after: How many words are the rule's own.
            is_here: Whether it reads the working directory where it names no path: then this has to lie in a root, too.
        """
        name = guarded_name(command.words[0].value)
        # Attack: `git --no-pager diff`, where what stands behind two words is no path.
        after += sub_command_at(command.words) - 1 if after > 1 and name == 'git' else 0
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
