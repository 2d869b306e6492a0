"""Compile the rules, check their examples, and find the deciding rule for a command.

The words of a rule that allows commands must match exactly. A rule that blocks commands or requires approval also
matches abbreviations and synonyms of its words, and ignores options between these words.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from tool_approval.core.errors import ApprovalConfigError

from .grammar import parse
from .names import (
    GLOBAL_OPTIONS,
    MANY_TARGETS,
    alternatives,
    guarded_name,
    option_names,
    sub_command_at,
    trusted_name,
)
from .paths import ShellRoot, ShellRoots
from .reading import CommandReader
from .words import SimpleCommand, Word, fixed

if TYPE_CHECKING:
    from .config import ShellConfig, ShellRule

Match = Literal['yes', 'maybe', 'no']
"""Whether a rule matches a command. `maybe` means that the value of a word is known only when the command runs."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """A rule with its position in the configuration."""

    index: int
    """Position of the rule in the configuration, counted from 0."""
    rule: ShellRule
    """The configured rule."""
    words: tuple[str, ...]
    """Words of the pattern, or of an equivalent pattern."""

    @property
    def is_guard(self) -> bool:
        """Whether the rule blocks commands or requires approval. Such a rule also matches variants of its words."""
        return not self.rule.allowed or self.rule.approval


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """Rules that match one command."""

    decided: CompiledRule | None
    """First rule that matches; `None` if no rule matches."""
    possible: CompiledRule | None
    """First guard (see `is_guard`) that comes before `decided` and matches for some values of an unknown word."""
    skipped: CompiledRule | None = None
    """First rule whose pattern matches but whose `sandbox_paths` do not match; always `None` if `decided` is a rule."""


class RuleBook:
    """Rules indexed by program, so that a search does not take longer with more rules."""

    def __init__(self, config: ShellConfig) -> None:
        """Compile the rules. `check_rules` checks their examples."""
        self.rules = tuple(CompiledRule(at, rule, rule.words) for at, rule in enumerate(config.rules))
        self._by_program: dict[str, list[CompiledRule]] = {}
        self._guards: dict[str, list[CompiledRule]] = {}
        for rule in self.rules:
            name = guarded_name(rule.words[0])
            forms = alternatives((name, *rule.words[1:])) if rule.is_guard else (rule.words,)
            for form in forms:
                spelled = CompiledRule(rule.index, rule.rule, (rule.words[0], *form[1:]))
                self._by_program.setdefault(name, []).append(spelled)
                if rule.is_guard:
                    self._guards.setdefault(name, []).append(spelled)

    def find(self, words: Sequence[Word], is_in_roots: Callable[[CompiledRule], bool]) -> RuleMatch:
        """Find the deciding rule for a command.

        Args:
            words: The command. The program name must be known.
            is_in_roots: Function that returns whether the paths of the command satisfy the rule's `sandbox_paths`.
        """
        possible = skipped = None
        views = _views(words)
        for rule in self._by_program.get(guarded_name(words[0].value), ()):
            said: Match = 'no'
            if rule.is_guard:
                said = stands_in(rule.words, words)
            elif any(_approves(rule, view) for view in views):
                said = 'yes'
            if said == 'no':
                continue
            if rule.rule.sandbox_paths and rule.rule.allowed and not is_in_roots(rule):
                skipped = skipped or rule
                continue
            if said == 'yes':
                return RuleMatch(rule, possible)
            possible = possible or rule
        return RuleMatch(None, possible, skipped)

    def guards_within(self, words: Sequence[Word]) -> Iterator[CompiledRule]:
        """Yield the rules that would block or ask about the arguments of a program if it ran them as a command."""
        for at, word in enumerate(words[1:], start=1):
            for rule in self._named_by(word):
                if stands_in(rule.words, words[at:]) != 'no':
                    yield rule
            if len(word.value) > 2:
                yield from self._guards_in_text(word.value)

    def _named_by(self, word: Word) -> Iterable[CompiledRule]:
        named = self._guards.get(guarded_name(word.value), ()) if word.value else ()
        if word.is_fixed:
            return named
        # Attack: `ln -s /bin/{r,x}m y`, `cp {/bin/rm,y}`.
        named = [
            *named,
            *(rule for part in re.split('[{},]', word.raw) for rule in self._guards.get(guarded_name(part), ())),
        ]
        *folders, last = re.sub(r'\{[^{}]*\}', '*', word.raw).split('/')
        if not any(fnmatchcase(name, each) for each in folders for name in ('bin', 'sbin')):
            return named
        # Attack: `ln -s /bin/r? y; ./y x`.
        return [*named, *(rule for name in self._guards if fnmatchcase(name, last) for rule in self._guards[name])]

    def _guards_in_text(self, text: str) -> Iterator[CompiledRule]:
        if not self._guards or not _CODE.search(text):
            return
        parts = _TOKENS.findall(text)
        for at, part in enumerate(parts):
            for rule in self._guards.get(guarded_name(part), ()):
                if stands_in(rule.words, [fixed(each) for each in parts[at:]]) != 'no':
                    yield rule


_CODE: Final = re.compile(r'[\s=!;&|(\'"`/]')
_TOKENS: Final = re.compile(r'[^\s\'"`;&|()=!<>,]+')


def _views(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Return the forms of a command for rules that allow commands: as written, and without harmless options."""
    at = sub_command_at(words) if trusted_name(words[0].value) == 'git' else 1
    return [words, *([[words[0], *words[at:]]] if at > 1 else [])]


def _approves(rule: CompiledRule, words: Sequence[Word]) -> bool:
    wanted = rule.words
    if len(words) < len(wanted) or not all(word.is_fixed for word in words[: len(wanted)]):
        return False
    first = words[0].value
    return wanted[0] in (first, trusted_name(first)) and all(
        word.value == each for word, each in zip(words[1:], wanted[1:], strict=False)
    )


def stands_in(pattern: Sequence[str], words: Sequence[Word]) -> Match:
    """Return whether a command matches a pattern, as in a rule that blocks or requires approval.

    Options of the pattern may be anywhere in the command, which may have other options between the pattern's words.
    """
    if not words[0].is_fixed:
        return 'maybe'
    named = _names_match(
        [(word, before.startswith('-')) for before, word in pairwise(pattern) if not word.startswith('-')], words
    )
    texts = [word.value for word in words[1:] if word.is_fixed]
    program = guarded_name(pattern[0])
    if named == 'no' or all(_has_option(program, word, texts) for word in pattern[1:] if word.startswith('-')):
        return named
    return 'maybe' if len(texts) < len(words) - 1 else 'no'


def _names_match(wanted: Sequence[tuple[str, bool]], words: Sequence[Word]) -> Match:
    """Return whether a command has these words, in this order, with nothing but options in between.

    Before a word that follows an option in the pattern, and so may be its value, any words may be.
    """
    name = guarded_name(words[0].value)
    known, has_targets = GLOBAL_OPTIONS.get(name), name in MANY_TARGETS
    best: Match = 'no'
    pending, seen = [(1, 0)], {(1, 0)}
    while pending:
        at, matched = pending.pop()
        if matched == len(wanted):
            return 'yes'
        if at >= len(words):
            continue
        word, (want, may_be_value) = words[at], wanted[matched]
        if not word.is_fixed:
            best = 'maybe'
            continue
        text = word.value.rpartition(':')[2] if has_targets else word.value  # Gradle runs `publish` for `:app:publish`
        steps = [(1, 1)] if text == want or _is_same_place(text, want) else []
        if text.startswith('-') and len(text) > 1:
            # After the sub-command, the same option may mean something else: `git subtree -P x push`.
            valued, flags = known if known is not None and matched == 0 else ((), ())
            steps += [(1, 0)] if text not in valued else []
            steps += [(2, 0)] if text not in flags else []
        # Attack: a rule blocks `make deploy`, and `make build deploy` deploys; or `git push --delete main`, and
        # `git push origin --delete main` deletes (test_cases.py).
        steps += [(1, 0)] if may_be_value or (has_targets and matched == 0) else []
        steps += [(1, 1)] if may_be_value and text.startswith('-') and text.partition('=')[2] == want else []
        following = {(at + step, matched + more) for step, more in steps} - seen
        seen |= following
        pending += following
    return best


def _has_option(program: str, want: str, texts: Sequence[str]) -> bool:
    """Return whether words contain an option of a pattern, such as `-rf`: as written, or each letter by any name."""
    letters = [f'-{letter}' for letter in want[1:]] if _LETTERS.fullmatch(want) else [want]
    return want in texts or all(
        any(_is_option(text, name) for text in texts for name in option_names(program, letter)) for letter in letters
    )


_LETTERS: Final = re.compile('-[A-Za-z]{1,4}')


def _is_same_place(text: str, want: str) -> bool:
    """Return whether two absolute paths are equal. A rule for `rm -rf /` also matches `rm -rf //` and `rm -rf /.`."""
    return want.startswith('/') and text.startswith('/') and _plain_path(text) == _plain_path(want)


def _plain_path(text: str) -> str:
    return posixpath.normpath(f'/{text.lstrip("/")}')


def _is_option(text: str, want: str) -> bool:
    """Return whether `text` contains the option `want`: alone, shortened, with a value, or in a group such as `-rf`."""
    if want.startswith('--'):
        name = text.partition('=')[0]
        return len(name) > 2 and want.startswith(name)
    is_letter = len(want) == 2
    return is_letter and re.fullmatch(r'-[A-Za-z0-9]+', text) is not None and want[1] in text[1:]


def check_rules(config: ShellConfig, *, cwd: str, roots: Mapping[str, ShellRoot] | None = None) -> None:
    """Check the roots and the examples of all rules.

    Args:
        config: The rules.
        cwd: Absolute path of the directory that commands run in.
        roots: Roots by name. The `sandbox_paths` of a rule contain such names.

    Raises:
        ApprovalConfigError: A root does not exist, or an example contradicts its rule. The error contains the key of
            the rule.
        MissingExtraError: A rule has examples, which need tree-sitter, but tree-sitter is not installed.
    """
    book, known = RuleBook(config), ShellRoots(roots or {}, cwd)
    for at, rule in enumerate(config.rules):
        key = f'shell.rules.{at}'
        for name in rule.sandbox_paths:
            if name not in known.names:
                raise ApprovalConfigError(f'there is no root `{name}`', key=f'{key}.sandbox_paths')
        for example in rule.match:
            if at not in _deciding(example, book, known):
                raise ApprovalConfigError(f'the rule does not apply to `{example}`', key=f'{key}.match')
        for example in rule.not_match:
            if at in _deciding(example, book, known):
                raise ApprovalConfigError(f'the rule applies to `{example}`', key=f'{key}.not_match')


def _deciding(example: str, book: RuleBook, roots: ShellRoots) -> set[int]:
    found: set[int] = set()
    for command in CommandReader(parse(example)).commands:
        if not command.words or not command.words[0].is_fixed:
            continue

        def is_in_roots(rule: CompiledRule, command: SimpleCommand = command) -> bool:
            names, after = rule.rule.sandbox_paths, len(rule.words)
            return roots.hold(command, names, after=after, approves=not rule.is_guard)

        decided = book.find(command.words, is_in_roots).decided
        if decided is not None:
            found.add(decided.index)
    return found
