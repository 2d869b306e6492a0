"""Words that are not known before they run, and yet certainly no options: `git commit -m "$x"`, `git log -- "$f"`.

A list of options is known for each program here, and its words are gone through from the first one. Behind an option
that is not on the list nothing is certain, since it may take the next word. Attack: `find . -newer -name "$x"`, where
`-name` is a file (test_honest_commands.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .programs import GLOBAL_OPTIONS, trusted_name
from .words import Word


@dataclass(frozen=True, slots=True)
class _Known:
    """Options that are known well enough to step over."""

    flags: re.Pattern[str]
    """Those that take no other word."""
    valued: frozenset[str]
    """Those that take the next word, whatever it looks like."""
    attached: re.Pattern[str]
    """How a word begins whose rest is a value."""
    has_end: bool
    """Whether `--` ends the options."""


def _known(flags: str, valued: str = '', attached: str = '(?!)', *, has_end: bool = True) -> _Known:
    return _Known(re.compile(flags), frozenset(valued.split()), re.compile(attached), has_end)


_FIND: Final = _known(
    r'-(?:a|o|not|and|or|print0?|prune|depth|daystart|xdev|mount|quit|empty|true|false|readable|writable|executable|ls|[HLP])|!',
    '-name -iname -path -ipath -wholename -iwholename -regex -iregex -newer -type -maxdepth -mindepth -mtime -mmin '
    '-atime -amin -ctime -cmin -size -user -group -perm -samefile -lname -ilname',
    has_end=False,
)
_DATE: Final = _known(
    r'-[uR]|-I[a-z]*|--(?:utc|universal)|--iso-8601(?:=[a-z]+)?', '-d --date -r', '--date=', has_end=False
)
_FLAGS: Final = (
    r'-[puwqvaiz]|-\d+|-U\d+|--(?:oneline|stat|numstat|shortstat|summary|cached|staged|name-only|name-status|follow|all|patch|raw'
    r'|no-color|graph|reverse|merges|no-merges|first-parent|quiet|exit-code|check|short|no-patch|no-ext-diff|no-textconv'
    r'|full-history|ignore-case|line-number|word-diff|ignore-all-space|include-untracked|keep-index|amend|no-edit|allow-empty'
    r'|no-verify|signoff|branch|porcelain|ignored|date=[a-z]+|unified=\d+|diff-filter=[A-Za-z]+)'
)
_AUTHOR: Final = '--(?:author|committer|grep|since|until|after|before|max-count|skip|date)='
_LOG: Final = _known(
    _FLAGS, '-n -S -G --author --committer --grep --since --until --after --before --max-count --skip', _AUTHOR
)
_COMMIT: Final = _known(_FLAGS + '|-s', '-m -am --message --author --date', '--(?:message|author|date)=')
_PLAIN: Final = _known(_FLAGS)
_GIT: Final = {
    'log': _LOG,
    'commit': _COMMIT,
    'stash': _known(_FLAGS, '-m --message', '--message='),
    **dict.fromkeys(('diff', 'show', 'status', 'branch', 'tag', 'add'), _PLAIN),
    'grep': _known(r'-[aEFGHhilLnovwz]+|--(?:cached|untracked|count|line-number|ignore-case|word-regexp)', '-e -A -B -C'),
}  # fmt: skip


def certain_values(words: Sequence[Word]) -> set[int]:
    """The places of words that are certainly values, or stand behind an `--` that certainly ends the options.

    Only a word that stays one word is a value. A template, as of `--format`, is none: it may name what git runs.

    Args:
        words: A command with a fixed program.
    """
    known, at = _options_of(words)
    found: set[int] = set()
    while known is not None and at < len(words):
        word, text = words[at], words[at].value
        is_attached = known.attached.match(text) is not None
        if not word.is_fixed:
            if not is_attached or word.growth != 'none':
                break
            found.add(at)
        elif text == '--' and known.has_end:
            return found | set(range(at + 1, len(words)))
        elif text in known.valued:
            at += 1
            if at < len(words) and words[at].growth != 'none':
                break
            found.add(at)
        elif text.startswith('-') and not is_attached and not known.flags.fullmatch(text):
            break
        at += 1
    return found


def _options_of(words: Sequence[Word]) -> tuple[_Known | None, int]:
    """What is known of the program, or of its sub-command, and where its arguments begin."""
    name = trusted_name(words[0].value)
    if name == 'find':
        return _FIND, 1
    if name == 'date':
        return _DATE, 1
    at = 1
    while name == 'git' and at < len(words) and words[at].is_fixed:
        if words[at].value not in GLOBAL_OPTIONS['git'].harmless:
            sub = words[at].value
            # Without a sub-command of its own, `git stash` finds out by the first word what is meant.
            if sub == 'stash' and [word.value for word in words[at + 1 : at + 2]] != ['push']:
                return None, at
            return _GIT.get(sub), at + 1
        at += 1
    return None, at
