"""Find which words of a command require approval, and which arguments are only data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .checks import CHECKS, CODE, UNKNOWN_OPTION, is_device
from .entries import Kind, entries, plain_program
from .labels import Label, LabelKind, LabelledCommand, label
from .names import POWERFUL, program_name, trusted_name
from .words import UnsafeArgument, Word, fixed

_ASKS: Final[dict[LabelKind, str]] = {
    'unknown_program': 'must be named by a rule, because the program is not listed',
    'unknown_sub_command': 'is not a listed sub-command, so a rule must name all words of the command',
    'unknown_option': 'is not listed as a safe option',
    'unlisted_operand': 'is not listed as a safe argument',
    'refused_value': 'is not listed as a safe value',
    'unknown_word': UNKNOWN_OPTION,
    'response_file': 'may read options or values from a file',
    'missing_operand': 'runs code from its standard input, or starts a shell',
}
"""Reasons to require approval, by the label of a word. In a message, the reason comes after the word."""
_WHOLE: Final = frozenset({'unknown_program', 'unknown_sub_command'})
_UNLISTED: Final = _WHOLE | {'unknown_option', 'unlisted_operand'}
_UNSAFE_KINDS: Final[dict[Kind, str]] = {
    'write': 'names a file that would be written',
    'code': 'contains code that the program would run',
    'context': 'changes the directory, user, rights or settings with which the program runs',
    'command': 'contains a command that the program would run',
    'script': 'contains a command that the program would run',
    'rest': 'contains a command that the program would run',
}
_NO: Final = frozenset({'false', 'f', '0', 'no', 'n', 'off', 'null', 'undefined'})
SINKS: Final = frozenset({'/dev/null', '/dev/stdout', '/dev/stderr', '/dev/tty'})
"""Files that discard or display all data that is written to them."""


def find_unlisted(
    words: Sequence[Word],
    *,
    named: int | None,
    any_arguments: bool = False,
) -> UnsafeArgument | None:
    """Return the first word that requires approval although a rule allows the program. The result includes the reason.

    Args:
        words: The words of a command whose program name is known.
        named: Number of the command's words that match the deciding rule. These words need no approval. `None` if no
            rule decides and the default allows commands.
        any_arguments: Whether the rule allows all arguments of a program or sub-command that is not listed.
    """
    found = label(words)
    if (hit := _check(found, named)) is not None:
        return hit
    covered: frozenset[str] = frozenset()
    is_open = named is None
    if is_open and is_powerful(words):
        return UnsafeArgument(words[0].raw, 'may write, run code or reach other machines, so a rule has to name it')
    # Attack: `git t`, where the configuration defines `alias.t = !touch x`.
    if any_arguments:
        covered |= _WHOLE
    named = named or 1
    if any_arguments or len(words) == named:
        covered |= _UNLISTED
    if any(each.kind == 'unknown_option' for each in found.labels[:named]):
        covered |= {'unlisted_operand'}  # a rule for `git branch -D` covers the branches it deletes
    owner = 0
    for at, each in enumerate(found.labels):
        word, owner = each.word, owner if each.follows else at
        # A rule covers an unlisted sub-command, but none of its arguments.
        is_named = owner < named and each.kind not in ('unknown_sub_command', 'missing_operand')
        # Attack: `x='C touch y'; ln -s /usr/bin/env cat; ./cat -- $x`, where `./cat` is a link to `env`.
        is_unknown = each.kind in covered or not entries().is_listed(words[0].value)
        if is_open and is_unknown and not word.is_fixed and (word.can_be_option or '/' not in word.value):
            return UnsafeArgument(word.raw, _ASKS['unknown_word'])
        if each.kind in covered or is_named:
            continue
        if each.kind in _ASKS:
            return UnsafeArgument(word.raw, _ASKS[each.kind])
        if each.holds in _UNSAFE_KINDS and not _may(found, each):
            return UnsafeArgument(word.raw, _UNSAFE_KINDS[each.holds])
    return None


def is_known(words: Sequence[Word]) -> bool:
    """Return whether the program and its sub-command are listed."""
    return all(each.kind not in ('unknown_program', 'unknown_sub_command') for each in label(words).labels)


def is_powerful(words: Sequence[Word]) -> bool:
    """Return whether a program has no entry because it writes, runs code, changes the system or reaches others."""
    name = program_name(words[0].value).casefold()
    return entries().program(name) is None and not POWERFUL.isdisjoint({name, plain_program(name)})


def takes_data(words: Sequence[Word]) -> bool:
    """Return whether the program treats its arguments only as data, even if an argument names a blocked program.

    An example is `git log --grep=rm`. Attack: `ln -s /bin/rm y`, which gives a program another name.
    """
    found = label(words)
    entry = found.entry
    if entry is None or not entries().is_listed(words[0].value) or find_unlisted(words, named=found.sub_at) is not None:
        return False
    holds = {each.holds for each in found.labels if each.kind != 'command'}
    if found.sub_at > 1 or ('runs_files' in entry.flags and holds != {None}):
        return 'takes_data' in entry.flags
    return 'writes' not in entry.flags or holds <= {None, 'text'}


def runs_anywhere(words: Sequence[Word]) -> bool:
    """Return whether a program behaves the same in every working directory."""
    entry = label(words).entry
    if entry is None or trusted_name(words[0].value) is None or 'runs_files' in entry.flags:
        return False
    return not entry.flags.isdisjoint({'harmless', 'anywhere', 'any_option'})


def _check(found: LabelledCommand, named: int | None) -> UnsafeArgument | None:
    """Return the first word that makes the whole command require approval, and the reason."""
    entry, words = found.entry, found.words
    if entry is None:
        return None
    if 'never' in entry.flags:
        return UnsafeArgument(words[0].raw, 'runs or changes something, whatever its arguments are')
    if 'needs_operand' in entry.flags:
        fed = (each.word for each in found.labels if each.kind == 'operand')
        if (device := next(filter(is_device, fed), None)) is not None:
            return UnsafeArgument(device.raw, 'makes the program run code from its standard input')
    if entry.checker == 'awk':
        files = (each.word for each in found.labels if each.kind == 'operand' and each.holds == 'read')
        if (connection := next(filter(_may_connect, files), None)) is not None:
            return UnsafeArgument(connection.raw, 'may be a network connection, which gawk opens like a file')
    # Attack: a rule allows `make test`, and `make test deploy` deploys.
    more = found.labels[named:] if entry.name == 'make' and named is not None and named > 1 else ()
    if (target := next((each for each in more if each.kind == 'operand'), None)) is not None:
        return UnsafeArgument(target.word.raw, 'may be a target that the rule does not name')
    # Attack: `kubectl delete --dry-run=client x --dry-run=none`, or `--dry=none`, because names can be shortened.
    options = [stem(word) for word in words[1 : named or 1] if len(stem(word)) > 1]
    for word in words[named or 1 :] if options else ():
        if may_cancel(word, options):
            return UnsafeArgument(word.raw, 'may cancel an option that the rule names')
    check = CHECKS.get(entry.checker or '')
    hit = check(words) if check is not None else None
    if check is not None and hit is not None and hit.word in [word.raw for word in words[1 : named or 1]]:
        # The rule covers the words it names, so check the others. Only tar's first word may be letters without a dash.
        return check([words[0], *([fixed('-')] if entry.checker == 'tar' else []), *words[named or 1 :]])
    return hit


def _may_connect(word: Word) -> bool:
    """Return whether a word may be a path like `/inet/tcp/0/host/80`. No file has it, so no glob matches it."""
    if word.is_fixed:
        return word.value.startswith('/inet')
    # `xargs` adds a word without a text.
    return '/inet'.startswith(word.value[:5]) and re.search('[{$`]|^$', word.raw) is not None


def may_cancel(word: Word, options: Sequence[str]) -> bool:
    """Return whether a word may cancel an earlier option, of which `stem` has returned the name."""
    name = stem(word)
    return word.value.casefold() in _NO or (len(name) > 1 and any(option.startswith(name) for option in options))


def stem(word: Word) -> str:
    """Return the name of an option without dashes, value, case and negation; otherwise an empty text."""
    name = word.value.partition('=')[0].casefold()
    return name.lstrip('-').removeprefix('no').removeprefix('-') if name.startswith('-') else ''


def _may(found: LabelledCommand, each: Label) -> bool:
    """Return whether a word is safe: a file to write that the rule covers, harmless code, or a command judged apart."""
    entry, word = found.entry, each.word
    if entry is None or each.holds in ('command', 'script', 'rest'):
        return each.kind == 'operand' and each.holds == 'script'
    if each.holds == 'code':
        is_plain = CODE.get(entry.checker or '')
        return word.is_fixed and is_plain is not None and is_plain(each.value or '')
    if 'writes' in entry.flags and (each.kind == 'operand' or each.holds == 'target'):
        return True
    return word.is_fixed and each.value in SINKS
