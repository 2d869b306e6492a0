"""Which arguments of everyday programs are certainly no path: a pattern, a number, a test's name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

from .programs import trusted_name
from .words import Command, Word

_ANY: Final = r'[^-@].*'
"""Attack: `pytest -k @file` reads options from the file, also where it is a value."""
_PYTEST: Final = {
    **dict.fromkeys(('-k', '-m'), _ANY),
    '-n': r'\d+|auto|logical',
    '--tb': 'auto|long|short|line|native|no',
    '--maxfail': r'\d+',
    '--durations': r'\d+',
}
_COUNT: Final = r'[+-]?\d+[kKMG]?'
_COUNTED: Final = {'-n': _COUNT, '-c': _COUNT, '--lines': _COUNT, '--bytes': _COUNT}
_VALUES: Final = {
    'pytest': _PYTEST,
    'py.test': _PYTEST,
    'head': _COUNTED,
    'tail': _COUNTED,
}
"""By program: options that take the next word, and what it may be.

What `pytest -n` is given has to be a number: without the plugin it would be a path.
"""
_GREPS: Final = frozenset({'grep', 'egrep', 'fgrep'})
_GREP_FLAGS: Final = re.compile(
    r'-[EFGPbchHiIlLnoqrRsvwxyzZaT]+|--colou?r=\w+|--(?:color|line-number|ignore-case|count'
    r'|recursive|word-regexp|only-matching|files-with-matches|invert-match|no-filename|extended-regexp|fixed-strings)'
)
_GREP_NUMBERS: Final = frozenset({'-A', '-B', '-C', '-m'})
_GLOB: Final = re.compile(r'--(?:in|ex)clude(?:-dir)?=.*', re.DOTALL)
_NUMBER: Final = re.compile(r'-[ABCmnc]?\d+')
_NUMBERED: Final = frozenset({'head', 'tail', *_GREPS})
"""Programs to which `-20`, `-n20` and `-A20` are numbers."""

_READERS: Final = frozenset(
    {
        'cat', 'head', 'tail', 'wc', 'sort', 'uniq', 'nl', 'tac', 'rev', 'md5sum', 'sha1sum', 'sha256sum', 'sha512sum',
        'cksum', *_GREPS,
    }
)  # fmt: skip
_RECURSIVE: Final = re.compile(r'-[A-Za-z]*[rRd].*|--[rd].*', re.DOTALL)


def reads_what_it_is_fed(command: Command) -> bool:
    """Whether a program without a path reads what the line gives it, and no directory: `cat a | head`, `wc -l < a`."""
    name = trusted_name(command.words[0].value)
    if name not in _READERS or not command.is_fed_here:
        return False
    # Attack: `echo | grep -r x` reads the working directory.
    return name not in _GREPS or not any(_RECURSIVE.fullmatch(word.value) for word in command.words[1:])


def not_paths(words: Sequence[Word], *, after: int) -> set[int]:
    """The places of words that are no path, whatever they look like.

    Args:
        words: A command with a fixed program.
        after: How many words a rule names; behind an option that it names, nothing is certain.
    """
    name = trusted_name(words[0].value) or ''
    if name in ('python', 'python3') and [word.value for word in words[1:after]] == ['-m', 'pytest']:
        name = 'pytest'
    elif after > 1:
        return set()
    # Behind `--`, everything is an operand.
    words = words[: next((at for at, word in enumerate(words) if word.value == '--'), len(words))]
    found = {at for at in range(after, len(words)) if name in _NUMBERED and _NUMBER.fullmatch(words[at].value)}
    if name in _GREPS:
        return found | _of_grep(words)
    options = _VALUES.get(name, {})
    for at, (option, value) in enumerate(itertools.pairwise(words[after:]), start=after + 1):
        allowed = options.get(option.value)
        if allowed is not None and value.is_fixed and re.fullmatch(allowed, value.value, re.DOTALL):
            found.add(at)
    return found


def _of_grep(words: Sequence[Word]) -> set[int]:
    """The patterns and the numbers; nothing, where an option is not known and may take the next word."""
    found: set[int] = set()
    at, has_pattern, has_operand = 1, False, False
    while at < len(words):
        text = words[at].value
        following = words[at + 1].value if at + 1 < len(words) else ''
        if not words[at].is_fixed:
            return set()
        if text in _GREP_NUMBERS and re.fullmatch(r'\d+', following):
            found.add(at + 1)
            at += 1
        elif text == '-e' and not has_operand and at + 1 < len(words):
            found.add(at + 1)
            has_pattern = True
            at += 1
        elif not text.startswith('-') or text == '-':
            if not has_pattern:
                found.add(at)
            has_pattern = has_operand = True
        elif _GLOB.fullmatch(text):
            found.add(at)
        elif not _GREP_FLAGS.fullmatch(text) and not _NUMBER.fullmatch(text):
            return set()
        at += 1
    return found
