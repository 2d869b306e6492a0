"""Which arguments of everyday programs are certainly no path, and whether there is certainly one that is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .options import is_inert
from .programs import GLOBAL_OPTIONS, HAS_SUB_COMMANDS, trusted_name
from .usage import GIT, USAGES, Kind, Usage
from .words import Command, Word

_ANY: Final = r'.*'
_NO_OPTION: Final = r'[^-@].*'
"""Attack: `pytest -k @file` reads options from the file, also where it is a value."""
_NUMBER: Final = r'\d+'
_LEVEL: Final = r'[A-Za-z]+|\d+'
_PYTEST: Final = {
    **dict.fromkeys(('-k', '-m'), _NO_OPTION),
    '-n': r'\d+|auto|logical',
    '-p': r'no:\w+',
    '-r': '[A-Za-z]+',
    '-W': 'error|ignore|default|always|once|module',
    '--tb': 'auto|long|short|line|native|no',
    '--capture': 'no|sys|fd|tee-sys',
    '--show-capture': 'no|stdout|stderr|log|all',
    '--import-mode': 'prepend|append|importlib',
    '--color': 'yes|no|auto',
    **dict.fromkeys(('--log-level', '--log-cli-level'), _LEVEL),
    **dict.fromkeys(('--maxfail', '--durations', '--verbosity', '--cov-fail-under', '--timeout'), _NUMBER),
}
_COUNT: Final = r'[+-]?\d+[kKMG]?'
_CONTEXT: Final = dict.fromkeys(
    ('-A', '-B', '-C', '-m', '--after-context', '--before-context', '--context', '--max-count'), _NUMBER
)
_GREP: Final = {
    **_CONTEXT,
    **dict.fromkeys(('-e', '--regexp', '--include', '--exclude', '--exclude-dir', '--color'), _ANY),
}
_COUNTED: Final[dict[str, str]] = dict.fromkeys(('-n', '-c', '--lines', '--bytes'), _COUNT)
_FD: Final = {'-d': _NUMBER, **dict.fromkeys(('-e', '-E', '-t'), _ANY)}
_AWK: Final[dict[str, str]] = dict.fromkeys(('-F', '-v'), _ANY)
_VALUES: Final[dict[str, dict[str, str]]] = {
    **dict.fromkeys(('pytest', 'py.test'), _PYTEST),
    **dict.fromkeys(('head', 'tail'), _COUNTED),
    **dict.fromkeys(('grep', 'egrep', 'fgrep'), _GREP),
    **dict.fromkeys(('awk', 'gawk', 'mawk'), _AWK),
    'rg': {
        **_CONTEXT,
        **dict.fromkeys(('-e', '-g', '-t', '-T', '--regexp', '--glob', '--iglob', '--type', '--type-not', '--color'), _ANY),
        **dict.fromkeys(('-d', '-j', '-M', '--max-depth', '--max-columns', '--threads'), _NUMBER),
    },
    'sed': dict.fromkeys(('-e', '--expression'), _ANY),
    'sort': dict.fromkeys(('-k', '-t', '--key', '--field-separator'), _ANY),
    'cut': dict.fromkeys(('-d', '-f', '-c', '-b', '--delimiter', '--fields', '--characters', '--bytes', '--output-delimiter'), _ANY),
    **dict.fromkeys(('fd', 'fdfind'), _FD),
    'uniq': dict.fromkeys(('-f', '-s', '-w'), _NUMBER),
    'tree': {'-L': _NUMBER, '-P': _ANY, '-I': _ANY},
    'du': {'-d': _NUMBER, '--max-depth': _NUMBER},
    'stat': dict.fromkeys(('-c', '--format', '--printf'), _ANY),
    'xxd': dict.fromkeys(('-l', '-s', '-c', '-g'), r'[+-]?\w+'),
    'nl': dict.fromkeys(('-b', '-w', '-s'), _ANY),
    'find': dict.fromkeys(
        ('-name', '-iname', '-path', '-ipath', '-wholename', '-iwholename', '-regex', '-iregex', '-type', '-maxdepth', '-mindepth',
         '-newermt', '-newerat', '-newerct', '-printf', '-mtime', '-mmin', '-atime', '-amin', '-ctime', '-cmin', '-size', '-user', '-group', '-perm'), _ANY,
    ),
}  # fmt: skip
"""By program: options whose value is no path, and what it may be.

What `pytest -n` is given has to be a number: without the plugin it would be a path.
"""
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


def reads_what_it_is_fed(command: Command) -> bool:
    """Whether a program without a path reads what the line gives it, and no directory: `cat a | head`, `wc -l < a`."""
    name = trusted_name(command.words[0].value)
    if name not in _READERS or not command.is_fed_here:
        return False
    # Attack: `echo | grep -r x` reads the working directory.
    return not name.endswith('grep') or not any(_RECURSIVE.fullmatch(word.value) for word in command.words[1:])


def takes_code(program: str) -> bool:
    """Whether an operand of a program may be code, or an address. Of what only reads and prints, all are paths."""
    return not is_inert(program) or trusted_name(program) in _OPENING


def may_open(command: Command, *, after: int) -> bool:
    """Whether a program is given code with which it may open any file, whatever paths stand beside it."""
    opening = _OPENING.get(trusted_name(command.words[0].value) or '')
    return opening is not None and any(opening.search(word.value) for word in command.words[after:])


@dataclass(kw_only=True)
class Arguments:
    """What is certain of a command's arguments."""

    not_paths: set[int] = field(default_factory=set[int])
    """The places of words that are no path, whatever they look like."""
    has_path: bool = False
    """Whether one is a path that the program looks into, and neither the value of an option nor a pattern."""


def arguments(words: Sequence[Word], *, after: int) -> Arguments:
    """Go through a command's words.

    Attack: `pytest --ignore out` and `rg out` read the working directory (test_sandbox_paths.py). Each option that is
    not known may take a word: there is a path for sure where more words are left than such options and patterns.

    Args:
        words: A command with a fixed program.
        after: How many words a rule names.
    """
    name, usage, start, texts = _usage_of(words, after)
    found, patterns = Arguments(), list[int]()
    has_sub = texts > usage.texts
    loose = unknown = 0
    before: Kind = 'operand'
    option, is_sure = '', True
    may_look = not any(usage.refused.fullmatch(word.value) for word in words[start:])
    for at, word in enumerate(words[start:], start=start):
        if at == after:
            loose, unknown = 0, int(before == 'unknown')
        if word.value == '--' and before not in ('takes', 'unknown'):
            loose += sum(1 for each in words[max(at + 1, after) :] if not each.value.startswith('-'))
            found.has_path = found.has_path or (may_look and loose > texts + unknown)
            break
        kind: Kind = usage.kind(word.value) if word.is_fixed else 'unknown'
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
        elif kind == 'flag' or _is_plain(name, *_apart(usage, word.value)):
            found.not_paths.add(at)
        elif kind == 'attached':
            is_sure = (
                False  # Attack: `grep /etc/passwd --reg=out out`, where the pattern is given by a shortened option
            )
        if kind != 'operand' and usage.instead.fullmatch(word.value):
            texts, patterns = 0, []
        may_look = may_look and not (usage.paths_first and kind != 'operand' and word.value not in ('-H', '-P'))
        before, option = kind, word.value
    if after != start or has_sub:
        return Arguments(has_path=found.has_path)
    found.not_paths.update(at for at in patterns if is_sure and not unknown and words[at].is_fixed)
    return found


def _is_plain(name: str, option: str, value: str) -> bool:
    """Whether the value of an option is no path."""
    allowed = _VALUES.get(name, {}).get(option)
    return allowed is not None and re.fullmatch(allowed, value, re.DOTALL) is not None


def _apart(usage: Usage, text: str) -> tuple[str, str]:
    """An option and the value that is attached to it: `-k` and `a` of `-ka`, `--tb` and `no` of `--tb=no`."""
    found = usage.attached.match(text)
    if found is None or text.startswith('--'):
        option, _, value = text.partition('=')
        return option, value
    return f'-{text[found.end() - 2]}', text[found.end() - 1 :]


def _usage_of(words: Sequence[Word], after: int) -> tuple[str, Usage, int, int]:
    """A program's name and usage, where its arguments begin, and how many of the first ones are no path."""
    name = trusted_name(words[0].value) or ''
    if name in ('python', 'python3') and [word.value for word in words[1:after]] == ['-m', 'pytest']:
        return 'pytest', USAGES['pytest'], after, 0
    if name == 'git':
        known = GLOBAL_OPTIONS['git'].harmless
        sub = next((at for at, word in enumerate(words[1:after], start=1) if word.value not in known), None)
        if sub is not None and (usage := GIT.get(words[sub].value)) is not None:
            return name, usage, sub + 1, usage.texts
    usage = USAGES.get(name, Usage())
    return name, usage, 1, usage.texts + (name in HAS_SUB_COMMANDS)
