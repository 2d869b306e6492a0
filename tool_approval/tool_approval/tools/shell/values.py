"""Words that are not known before they run, and yet certainly no options: `git commit -m "$x"`, `git log -- "$f"`.

A list of options is known for each program here, and its words are gone through from the first one. Behind an option
that is not on the list nothing is certain, since it may take the next word. Attack: `find . -newer -name "$x"`, where
`-name` is a file (test_honest_commands.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from .programs import GLOBAL_OPTIONS, trusted_name
from .usage import GIT, USAGES, Usage
from .words import Word


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
        elif known.kind(text) == 'takes':
            at += 1
            if at < len(words) and words[at].growth != 'none':
                break
            found.add(at)
        elif known.kind(text) == 'unknown':
            break
        at += 1
    return found


def _options_of(words: Sequence[Word]) -> tuple[Usage | None, int]:
    """What is known of the program, or of its sub-command, and where its arguments begin."""
    name = trusted_name(words[0].value) or ''
    at = 1
    while name == 'git' and at < len(words) and words[at].is_fixed:
        if words[at].value not in GLOBAL_OPTIONS['git'].harmless:
            sub = words[at].value
            # Without a sub-command of its own, `git stash` finds out by the first word what is meant.
            if sub == 'stash' and [word.value for word in words[at + 1 : at + 2]] != ['push']:
                return None, at
            return GIT.get(sub), at + 1
        at += 1
    return USAGES.get(name), at
