"""Options that make an innocent program run others, or write files: they lift a pre-approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .checks import CHECKS, INTERPRETERS, Hit, unseen_code
from .option_table import INERT, TABLE, Entry
from .programs import GLOBAL_OPTIONS, guarded_name, program_name, trusted_name
from .words import Word


def is_inert(program: str) -> bool:
    """Whether the program reads and prints, whatever its arguments are."""
    return trusted_name(program) in INERT


def find_hit(words: Sequence[Word], *, named: int = 1) -> Hit | None:
    """The first argument that makes the program run or write something, or that is not known and may.

    Args:
        words: A command with a fixed program.
        named: How many words the rule that approves it names: somebody wrote these down.
    """
    if is_inert(words[0].value):
        return None
    name = _known_name(words[0].value)
    check = CHECKS.get(name)
    own = _without_named(name, words, named)
    hit = check(words) if check is not None else None
    if check is not None and hit is not None and hit.word in [word.raw for word in words[1:named]]:
        hit = check(own)  # the rule names the first one, and nothing behind it
    hit = hit or _taken_back(words, named)
    if hit is not None:
        return hit
    if name in ('printf', 'test', '[', '[['):
        return None  # what else stands there is no option
    if name in INTERPRETERS and (hit := unseen_code(words)) is not None:
        return hit
    for at, word in enumerate(words[1:], start=1):
        if at < named:
            continue
        if not word.is_fixed and word.can_be_option:
            return Hit(word.raw, 'it is not known before it runs, and may be an option')
        # Behind an option, `--` may be its value: `sort --random-source -- -o x` writes `x` (test_options.py).
        if word.value == '--' and name not in _NO_END and not words[at - 1].value.startswith('-'):
            break
        if word.value.startswith(('-', '+')) and (why := _why(name, words, at, own)) is not None:
            return Hit(word.raw, why)
    return None


def _without_named(name: str, words: Sequence[Word], named: int) -> Sequence[Word]:
    """The command without the options in front of its sub-command that the rule names, and with nothing else it names
    where the program has no sub-commands.
    """
    known = GLOBAL_OPTIONS.get(name)
    if known is None:
        return [words[0], *words[named:]]
    at = 1
    while at < named and words[at].value.startswith('-'):
        at += 2 if words[at].value in known.valued else 1
    return [words[0], *words[at:]]


def _taken_back(words: Sequence[Word], named: int) -> Hit | None:
    """Attack: `git clean -n --no-dry-run -f`, where a rule approves `git clean -n`."""
    options = [word.value for word in words[1:named] if word.value.startswith('-')]
    for word in words[named:] if options else ():
        text = word.value
        for option in options:
            name = option.lstrip('-') if option.startswith('--') else ''
            if text == f'{option}=false' or (text.startswith('--no-') and name.startswith(text[5:] if name else '')):
                return Hit(word.raw, 'it may take back what the rule names')
    return None


def _known_name(program: str) -> str:
    """The name that the table has: `python` for `python3.11`, but `diff3` for `diff3`."""
    name = program_name(program).casefold()
    return name if name in TABLE or name in CHECKS else guarded_name(program)


_NO_END: Final = frozenset({'find', 'git', 'npm', 'npx', 'vim', 'vi', 'nvim', 'ex', 'view', 'less', 'tar'})
"""Programs in which `--` does not end what may run something, or not for sure."""


def _why(name: str, words: Sequence[Word], at: int, own: Sequence[Word]) -> str | None:
    text = words[at].value
    entry = TABLE.get(name)
    if entry is None or _is_harmless(entry, words, at):
        return None
    sub = next((word.value for word in own[1:] if not word.value.startswith('-')), '')
    # Some take their long options with one dash or two.
    one_dash = f'-{text.lstrip("-").partition("=")[0]}'
    if text.startswith('--') and len(one_dash) > 1 and one_dash in entry.words:
        return f'`{text.partition("=")[0]}` may run or write something'
    if text.startswith('--') and len(text) > 2:
        given = text[2:].partition('=')[0]
        if given in entry.safe:
            return None
        found = next((each for each in entry.long if each.startswith(given)), None)
        return f'`--{found}` may run or write something' if found is not None else None
    if text in entry.words or text.partition('=')[0] in entry.words:
        return f'`{text.partition("=")[0]}` may run or write something'
    if text.startswith('+'):
        return '`+` begins a command' if '+' in entry.words else None
    letters = entry.short + entry.by_sub.get(sub, '')
    for letter in text[1:]:
        if letter in letters:
            return f'`-{letter}` may run or write something'
        if letter in entry.valued:
            return None
    return None


def _is_harmless(entry: Entry, words: Sequence[Word], at: int) -> bool:
    """Whether the option is one of those, with their values, that do no harm although their names are in the table."""
    if entry.harmless is None:
        return False
    given = [word.value for word in words[at : at + 2] if word.is_fixed]
    return any(entry.harmless.fullmatch(' '.join(given[:count])) for count in (1, 2))
