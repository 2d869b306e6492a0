"""Label every word of a command. The labels are based on the entry that describes the program of the command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from .entries import Entry, Kind, OptionRole, entries
from .words import Word

LabelKind = Literal[
    'program', 'sub_command', 'flag', 'option', 'value', 'operand', 'assignment', 'end', 'command', 'unknown_program',
    'unknown_sub_command', 'unknown_option', 'unlisted_operand', 'missing_operand', 'refused_value', 'unknown_word',
    'response_file',
]  # fmt: skip
"""Kind of a word. An `option` has a value, in the same word or the next. A `command` word is part of a second command
that the program runs. The value of an `unknown_word` is known only when the command runs, and may be an option."""


class Label(NamedTuple):
    """Label of one word of a command."""

    word: Word
    """The word."""
    kind: LabelKind
    """Kind of the word."""
    holds: Kind | None = None
    """Kind of the operand or option value that the word contains."""
    options: tuple[str, ...] = ()
    """Options in the word, or the option that has the word as its value."""
    value: str | None = None
    """The operand or option value that the word contains."""
    follows: bool = False
    """Whether the word is the value of an option that an earlier word contains."""

    def __str__(self) -> str:
        """Return the kind of the word and the kind of its value, such as `option(read)`."""
        return self.kind if self.holds is None else f'{self.kind}({self.holds})'


@dataclass(frozen=True, slots=True)
class LabelledCommand:
    """A command with a label for each word."""

    entry: Entry | None
    """Entry of the sub-command, or of the program if there is no sub-command; `None` if the program is not listed."""
    labels: tuple[Label, ...]
    """One label for each word."""
    sub_at: int
    """Number of words up to and including the sub-command."""

    @property
    def words(self) -> tuple[Word, ...]:
        """Words of the command."""
        return tuple(each.word for each in self.labels)

    @property
    def flags(self) -> frozenset[str]:
        """Names of the entry's boolean fields that are true."""
        return self.entry.flags if self.entry is not None else frozenset()

    @property
    def options(self) -> frozenset[str]:
        """Options of the command."""
        return frozenset(option for each in self.labels for option in each.options)

    @property
    def command_at(self) -> int | None:
        """Index of the first word of the command that the program runs; `None` if the program runs no command."""
        return next((at for at, label in enumerate(self.labels) if label.kind == 'command'), None)


_ANY: Final = re.compile('.*')
_NUMBER: Final = re.compile(r'-(?:\d\w*)?')
"""Words that begin with a dash but are not options: `-` and numbers such as `-7`."""
_ASSIGNING: Final = frozenset({'env', 'sudo', 'time'})
"""Checkers of programs that accept variable assignments before a command."""

_Found = tuple[tuple[str, ...], OptionRole, str | None]
"""Options in a word, the `OptionRole` of the last option, and the value attached to the last option."""


def label(words: Sequence[Word]) -> LabelledCommand:
    """Label the words of a command. Here and in all other functions, the name of the program has to be known."""
    return _label(tuple(words))


# chosen: the commands of a line, which several rules look at one after the other.
@lru_cache(maxsize=32)
def _label(words: tuple[Word, ...]) -> LabelledCommand:
    entry = entries().program(words[0].value)
    if entry is None:
        labels = (Label(each, 'unknown_program' if at else 'program') for at, each in enumerate(words))
        return LabelledCommand(None, tuple(labels), 1)
    return _Labeller(words, entry).run()


def command_end(words: Sequence[Word], at: int) -> int:
    """Return the index of the `;` or `+` that ends the command after `find -exec`."""
    while at < len(words) and words[at].value != ';' and (words[at].value, words[at - 1].value) != ('+', '{}'):
        at += 1
    return at


class _Labeller:
    """Labels the words of one command from left to right."""

    def __init__(self, words: Sequence[Word], entry: Entry) -> None:
        self._words = words
        self._entry = entry
        self._labels: list[Label] = []
        self._operands: list[int] = []
        self._sub_at = 1
        self._is_over = False

    def run(self) -> LabelledCommand:
        self._add('program')
        while len(self._labels) < len(self._words):
            self._word(self._words[len(self._labels)])
        if 'sub_commands' in self._entry.flags and self._entry.operands is None:
            # `yarn` alone installs packages; other programs too do something without a sub-command.
            self._labels[-1] = Label(self._words[-1], 'unknown_sub_command')
        self._name_operands()
        return LabelledCommand(self._entry, tuple(self._labels), self._sub_at)

    def _add(self, kind: LabelKind, holds: Kind | None = None, options: tuple[str, ...] = ()) -> None:
        """Label the next word."""
        self._labels.append(Label(self._words[len(self._labels)], kind, holds, options))

    def _add_all(self, kind: LabelKind) -> None:
        """Label all remaining words."""
        while len(self._labels) < len(self._words):
            self._add(kind)

    @property
    def _is_harmless(self) -> bool:
        is_audited = not self._entry.flags.isdisjoint({'any_option', 'harmless'})
        return is_audited and entries().is_listed(self._words[0].value)

    def _word(self, word: Word) -> None:
        entry = self._entry
        kinds = entry.operands or ()
        if kinds[-1:] == ('command',) and len(self._operands) >= len(kinds):
            self._add('command')
        elif entry.checker == 'find' and word.value in ('-exec', '-execdir'):
            self._add('flag', options=(word.value,))
            end = min(command_end(self._words, len(self._labels)) + 1, len(self._words))
            for each in self._words[len(self._labels) : end]:
                # Attack: `x=' ; -exec touch y ;'; find . -exec cat f$x {} ;`
                self._add('unknown_word' if not each.is_fixed and each.can_be_option else 'command')
        elif entry.checker in _ASSIGNING and not self._operands and re.match('(?!-)[^=]*=', word.value):
            # Attack: `x='C touch y'; env TZ=$x ls`
            self._add('assignment' if word.growth == 'none' else 'unknown_word')
            # Attack: `env TZ=C -0`, where the program is `-0`. Only sudo accepts options after a variable.
            self._is_over = self._is_over or entry.checker != 'sudo'
        elif entry.checker == 'env' and word.value == '-' and word.is_fixed and not self._is_over:
            self._add('flag', options=('-',))
        elif self._is_over:
            self._operand(word)
        elif word.is_fixed and word.value == '--':
            self._is_over = 'end' in entry.flags
            self._add('end')
        elif self._is_option(word):
            self._option(word)
        elif word.can_be_option and not word.is_fixed:
            self._unknown_word(word)
        else:
            self._operand(word)

    def _is_option(self, word: Word) -> bool:
        text = word.value
        if text.startswith('-'):
            return text != '-'
        is_plus = text.startswith('+') and 'plus' in self._entry.flags
        return is_plus or (word.is_fixed and self._role(text) is not None)

    def _role(self, option: str) -> OptionRole | None:
        return self._entry.options.get(option)

    def _unknown_word(self, word: Word) -> None:
        """Label a word such as `$x` as an unknown word, or as an operand if it cannot be a harmful option."""
        # After the program text, awk takes only files and variables.
        is_file = self._entry.checker == 'awk' and self._operands and not word.value.startswith('-')
        if 'sub_commands' in self._entry.flags or not (is_file or self._is_harmless):
            self._add('unknown_word')
        else:
            self._operand(word)

    def _operand(self, word: Word) -> None:
        entry = self._entry
        if 'sub_commands' in entry.flags and not self._operands and not self._is_over:
            found = entries().find(f'{entry.name} {word.value}') if word.is_fixed else None
            if found is not None:
                self._add('sub_command')
                self._entry, self._sub_at = found, len(self._labels)
                return
            if not entry.operands:
                self._add_all('unknown_sub_command')
                return
        if 'response_files' in entry.flags and word.value.startswith('@'):
            self._add('response_file')
            return
        self._operands.append(len(self._labels))
        kinds = entry.operands or ()
        is_command = len(self._operands) == len(kinds) and kinds[-1:] == ('command',)
        self._add('command' if is_command else 'operand')
        # Attack: `ssh host -t rm x` and `flock f -c 'rm x'`: these accept options after the first operand.
        takes_more = entry.name in ('flock', 'ssh')
        self._is_over = (
            self._is_over or is_command or 'options_first' in entry.flags or ('command' in kinds and not takes_more)
        )

    def _option(self, word: Word) -> None:
        """Label the next word, which contains one or more options, and the following words that hold their values."""
        found = self._whole(word.value) if word.is_fixed else None
        found = found or self._with_value(word.value) or self._cluster(word.value)
        if not word.is_fixed and (found is None or found[2] is None):
            # Attack: `x=; sort -k"$x" -o f`. If the value is empty, the next word becomes the value.
            self._unknown_word(word)
            return
        if found is None:
            if 'any_option' in self._entry.flags:
                self._add('operand', 'text')
            else:
                self._add('unknown_option', options=(word.value,))
            return
        options, role, value = found
        following = self._words[len(self._labels) + 1 :]
        is_flag = role.place == 'attached' or (role.place == 'either' and (not following or following[0].can_be_option))
        if value is not None and role.kind is not None:
            self._valued('option', role, options, value)
        elif role.kind is None or is_flag:
            self._add('flag', options=options)
        elif role.kind == 'rest':
            self._add('option', options=options)
            self._add_all('command')
        else:
            # If the value is missing, the option itself requires approval.
            self._add('option', None if following else role.kind, options)
            for each in following[:1]:
                self._valued('value', role, options[-1:], each.value)

    def _valued(self, kind: LabelKind, role: OptionRole, options: tuple[str, ...], value: str) -> None:
        """Label the next word, which contains the value of an option."""
        word, follows, holds, allowed = self._words[len(self._labels)], kind == 'value', role.kind, role.allowed
        if word.growth != 'none' and not self._is_harmless:
            kind = 'unknown_word'
        elif 'response_files' in self._entry.flags and value.startswith('@'):
            kind = 'response_file'
        elif follows and self._looks_like_option(value, allowed):
            # Attack: `pytest -k -p evil`, `git log --format --output=x`, where the value may be read as an option.
            kind = 'refused_value'
        elif allowed is not None:
            if allowed.pattern == '.*' or (word.is_fixed and allowed.fullmatch(value)):
                holds = 'text' if holds not in ('read', 'text') else holds
            else:
                kind = 'refused_value'
        self._labels.append(Label(word, kind, holds, options, value, follows))

    def _looks_like_option(self, value: str, allowed: re.Pattern[str] | None) -> bool:
        """Return whether a value looks like an option. Return false if `allowed` is `.*` or matches no option."""
        is_meant = allowed is not None and (allowed.pattern == '.*' or not allowed.fullmatch('--output=x'))
        return value.startswith('-') and not _NUMBER.fullmatch(value) and not (self._is_harmless or is_meant)

    def _whole(self, text: str) -> _Found | None:
        role = self._role(text)
        if role is None and re.fullmatch(r'-\d+', text):
            text = '-#'
            role = self._role(text)
        return None if role is None else ((text,), role, None)

    def _with_value(self, text: str) -> _Found | None:
        name, has_value, value = text.partition('=')
        # Most programs read `-m=5` as `-m` with the value `=5`.
        is_letter = len(name) == 2 and 'one_dash' not in self._entry.flags
        role = self._role(name) if has_value and not is_letter else None
        return ((name,), role, value) if role is not None and role.kind is not None else None

    def _cluster(self, text: str) -> _Found | None:
        """Find one-letter options in a word such as `-rn`. The last option may have a value, as in `-xf a`."""
        if 'one_dash' in self._entry.flags or not re.match(r'-[^-]', text):
            return None
        options: list[str] = []
        for at, letter in enumerate(text[1:], start=1):
            name = '-#' if letter.isdigit() and self._role(f'-{letter}') is None else f'-{letter}'
            role = self._role(name)
            if role is None:
                return None
            options.append(name)
            if role.kind is not None:
                return tuple(options), role, text[at + 1 :] or None
        return tuple(options), OptionRole(None), None

    def _name_operands(self) -> None:
        """Set the kind of each operand, after labelling the options, because some options change the operands."""
        entry, kinds = self._entry, list(self._entry.operands or ())
        given = {option for each in self._labels if each.kind in ('flag', 'option') for option in each.options}
        only_with = entry.listed['operands_only_with']
        is_replaced = not given.isdisjoint(entry.listed['operands_without_first'])
        if is_replaced and kinds and (len(kinds) > 1 or not entry.has_more):
            del kinds[0]
        for place, at in enumerate(self._operands):
            if self._labels[at].kind == 'operand':
                is_listed = place < len(kinds) or (entry.has_more and bool(kinds))
                is_listed = is_listed and (not only_with or not given.isdisjoint(only_with))
                kind = kinds[min(place, len(kinds) - 1)] if is_listed else None
                self._labels[at] = self._named_operand(at, place, kind, may_be_several=place >= len(kinds) - 1)
        has_command = any(each.kind == 'command' for each in self._labels)
        is_wrapper = kinds[-1:] == ['command'] and not entry.has_more and 'transparent' not in entry.flags
        is_needed = is_wrapper or ('needs_operand' in entry.flags and not self._operands)
        if is_needed and not has_command and not is_replaced:
            self._labels[0] = Label(self._words[0], 'missing_operand')

    def _named_operand(self, at: int, place: int, kind: Kind | None, *, may_be_several: bool) -> Label:
        word, values = self._words[at], self._entry.operand_values
        if kind is None:
            return Label(word, 'unlisted_operand')
        if word.growth != 'none' and not (may_be_several and self._entry.has_more) and not self._is_harmless:
            return Label(word, 'unknown_word', kind)
        allowed = values[min(place, len(values) - 1)] if values else _ANY
        if allowed.pattern != '.*' and not (word.is_fixed and allowed.fullmatch(word.value)):
            return Label(word, 'refused_value', kind)
        return Label(word, 'operand', kind, value=word.value)
