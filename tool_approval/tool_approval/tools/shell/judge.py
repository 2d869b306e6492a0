"""The spine: what is decided of a command, from the text to its strictest part.

`_line` reads a text, `_command` judges one simple command of it, and whatever a command runs comes back to one of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .checks import operands
from .cwd import changes_cwd, reads_implicit_cwd, runs_anywhere
from .environment import is_harmless
from .explanation import Explanation, Outcome, Part, PartKind, remembered_words
from .grammar import parse
from .options import find_unsafe, takes_data
from .other_names import code_within, find_unsafe_within, other_names, runner_words, runs_what_it_is_fed
from .paths import ShellRoot, ShellRoots
from .programs import guarded_name, program_name, trusted_name
from .reading import CommandReader
from .rules import CompiledRule, Found, RuleBook
from .scripts import SHELLS, WrappedCommand
from .words import SimpleCommand, Word, fixed
from .wrappers import unwrap

if TYPE_CHECKING:
    from .config import ShellConfig

_MAX_SCRIPTS: Final = 8
"""Chosen: how deep `sh -c 'sh -c ...'` is followed."""
_LOOKED_AT: Final = 1_000
"""Chosen: so many characters of what is not parsed are looked at for a blocked program."""
_SINKS: Final = frozenset({'/dev/null', '/dev/stdout', '/dev/stderr', '/dev/tty'})
_NEUTRAL: Final = frozenset(
    {
        ':', 'true', 'false', 'test', '[', '[[', 'cd', 'set', 'exit', 'return', 'break', 'continue', 'type', 'command',
        'read',
    }
)  # fmt: skip
"""What only answers, or moves the shell itself; behind a `cd`, all but readers are asked about anyway."""


_ELSEWHERE: Final = 'it runs in another directory, whose files may change what it does'


@dataclass
class _LineState:
    """What is gathered about one line."""

    parts: list[Part]
    cwd_changed: bool = False
    depth: int = 0
    description: str | None = None


class ShellJudge:
    """Decides commands by the rules. It holds nothing about a command, and is safe to share between threads."""

    def __init__(
        self,
        config: ShellConfig,
        *,
        cwd: str,
        roots: Mapping[str, ShellRoot] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """Compile the rules.

        Args:
            config: The rules.
            cwd: Where commands run, absolute.
            roots: What `sandbox_paths` may name.
            is_writable: Whether a redirection may write to an absolute path unasked.
            clock: For the limit on parsing.
        """
        self._config = config
        self._book = RuleBook(config)
        self._roots = ShellRoots(roots or {}, cwd)
        self._is_writable = is_writable
        self._cwd = cwd
        self._clock = clock

    def explain(self, command: str) -> Explanation:
        """Judge a command, part by part."""
        state = _LineState(parts=[])
        commands = self._line(command, state)
        if not state.parts:
            state.parts.append(_asks(command, 'syntax', 'there is nothing to run, so no rule is about it'))
        return Explanation(
            command=command,
            parts=tuple(state.parts),
            description=state.description,
            remember=remembered_words(commands, state.parts),
        )

    def _line(self, text: str, state: _LineState, runner: SimpleCommand | None = None) -> list[SimpleCommand]:
        parsed = parse(text, clock=self._clock)
        reader = CommandReader(parsed, runner)
        if parsed.root is None:
            self._look_for_blocked(text, state)
        for problem in reader.problems:
            state.parts.append(_asks(text, 'syntax', f'not understood: {problem}'))
        changes = [changes_cwd(command.words, self._cwd) for command in reader.commands]
        # What stands before a `cd` runs before it, unless a loop comes back to it.
        state.cwd_changed = state.cwd_changed or (reader.has_loop and any(changes))
        for command, changes_on in zip(reader.commands, changes, strict=True):
            self._command(command, state)
            state.cwd_changed = state.cwd_changed or (changes_on and len(reader.commands) > 1)
        return reader.commands

    def _look_for_blocked(self, text: str, state: _LineState) -> None:
        """A text that is not parsed is asked about, unless it begins with what is blocked."""
        words = [fixed(word) for word in re.findall(r'[^\s;&|()<>]+', text[:_LOOKED_AT])]
        if words and (rule := self._book.find(words, lambda rule: True).decided) and not rule.rule.allowed:
            state.parts.append(_by_rule(text, rule))

    def _command(self, command: SimpleCommand, state: _LineState) -> None:
        for redirect in command.redirects:
            self._redirect(redirect.target, is_write=redirect.is_write, state=state)
        words = command.words
        for name in command.assignments:
            # `IFS=` in front of `read` is for this builtin alone, which runs nothing.
            if name != 'IFS' or not words or not words[0].is_fixed or words[0].value != 'read':
                self._assignment(name, is_exported=bool(words), state=state)
        if not words:
            return
        first = words[0].value
        if not words[0].is_fixed or not first or first.startswith('-') or not first.isascii():
            state.parts.append(_asks(command.raw, 'command', 'which program it runs is not known before it runs'))
            self._guard_within(command, state)
            return
        inside = unwrap(words)
        if inside is None or inside.is_program:
            self._program(command, state)
            if inside is not None and inside.problem is not None:
                state.parts.append(_asks(command.raw, 'command', inside.problem))
        else:
            self._wrapper(command, inside, state)
        if inside is not None:
            self._inside(command, inside, state)

    def _redirect(self, target: Word, *, is_write: bool, state: _LineState) -> None:
        text = target.raw
        if target.value.startswith(('/dev/tcp', '/dev/udp')) or not target.is_fixed:
            state.parts.append(_asks(text, 'redirection', 'where it leads is not known, or is another machine'))
        elif is_write and target.value not in _SINKS:
            if self._may_write(target, state):
                state.parts.append(_allows(text, 'redirection', None, 'the file sandbox lets it be written unasked'))
            else:
                state.parts.append(_asks(text, 'redirection', 'the file is written'))

    def _may_write(self, target: Word, state: _LineState) -> bool:
        if target.value in _SINKS and target.is_fixed:
            return True
        path = target.value if target.value.startswith('/') else f'{self._cwd}/{target.value}'
        return target.is_fixed and not state.cwd_changed and self._is_writable(path)

    def _assignment(self, name: str, *, is_exported: bool, state: _LineState) -> None:
        if is_harmless(name, is_exported=is_exported):
            state.parts.append(_allows(name, 'assignment', None, 'the variable changes nothing that runs'))
        else:
            state.parts.append(_asks(name, 'assignment', 'the variable may change what runs'))

    def _wrapper(self, command: SimpleCommand, inside: WrappedCommand, state: _LineState) -> None:
        decided = self._by_rules(command, state).decided
        if inside.problem is not None and not self._names_file(command, decided):
            state.parts.append(_asks(command.raw, 'command', inside.problem))
            self._guard_within(command, state)
        elif decided is not None:
            part = _by_rule(command.raw, decided)
            own = command.words[: inside.own]
            # Attack: `strace -o ~/.bashrc ls` (test_wrappers.py).
            hit = find_unsafe(own, named=min(len(decided.words), len(own)))
            # Attack: `cd evil && bash scripts/test.sh`.
            is_elsewhere = state.cwd_changed and not runs_anywhere(own[0].value)
            lifted = _ELSEWHERE if is_elsewhere else f'{hit.why} (`{hit.word}`)' if hit is not None else None
            is_lifted = part.decision == 'allow' and lifted is not None
            state.parts.append(_asks(command.raw, 'command', lifted or '') if is_lifted else part)
        elif inside.is_transparent and trusted_name(command.words[0].value) is not None:
            state.parts.append(_allows(command.raw, 'command', None, 'what it runs is judged by itself'))
        else:
            reason = 'it runs another program in its own way, and no rule is about that'
            state.parts.append(_asks(command.raw, 'command', reason))
            self._guard_within(command, state)

    def _names_file(self, command: SimpleCommand, decided: CompiledRule | None) -> bool:
        """Whether a rule lets a shell run just this file: `bash scripts/test.sh`."""
        if decided is None or decided.is_guard or guarded_name(command.words[0].value) not in SHELLS:
            return False
        return (
            len(decided.words) > 1
            and not decided.words[1].startswith('-')
            and all(word.is_fixed for word in command.words)
        )

    def _inside(self, command: SimpleCommand, inside: WrappedCommand, state: _LineState) -> None:
        for name in inside.assignments:
            self._assignment(name, is_exported=True, state=state)
        state.cwd_changed = state.cwd_changed or inside.changes_cwd
        for words in inside.words:
            if words:
                self._command(command.of(words), state)
        for script in inside.scripts:
            if state.depth >= _MAX_SCRIPTS:
                state.parts.append(_asks(script, 'syntax', 'not understood: scripts within scripts'))
                continue
            state.depth += 1
            self._line(script, state, command)
            state.depth -= 1

    def _by_rules(self, command: SimpleCommand, state: _LineState) -> Found:
        """The rule that decides, after what might be meant was written down."""
        cwd_changed = state.cwd_changed
        # Attack: with the directory in the place of all paths, `ls /etc` would be free (test_sandbox_paths.py).
        here = (False, True) if reads_implicit_cwd(command, self._cwd) else (False,)

        def is_in_roots(rule: CompiledRule) -> bool:
            names, after = rule.rule.sandbox_paths, len(rule.words)
            return not cwd_changed and any(self._roots.hold(command, names, after=after, is_here=each) for each in here)

        found = self._book.find(command.words, is_in_roots)
        if found.possible is not None:
            pattern = found.possible.rule.pattern
            reason = f'a word is not known before it runs, and it may be `{pattern}`'
            state.parts.append(Part(text=command.raw, kind='command', decision='ask', rule=pattern, reason=reason))
        if found.decided is not None and found.decided.is_guard and state.description is None:
            state.description = found.decided.rule.description
        return found

    def _program(self, command: SimpleCommand, state: _LineState) -> None:
        found = self._by_rules(command, state)
        decided = found.decided
        for inner in other_names(command.words):
            other = self._book.find(inner, lambda rule: True).decided
            if other is not None and other.is_guard:
                state.parts.append(_by_rule(command.raw, other))
        part = _by_rule(command.raw, decided) if decided is not None else self._default(command, found.skipped)
        if part.decision == 'allow':
            lifted = self._lifted(command, decided, state)
            part = _asks(command.raw, 'command', lifted) if lifted is not None else part
        state.parts.append(part)
        if part.decision != 'block':
            self._guard_within(command, state, is_known=True)

    def _default(self, command: SimpleCommand, skipped: CompiledRule | None) -> Part:
        default = self._config.default
        if command.words[0].value in _NEUTRAL and default.allowed:
            return _allows(command.raw, 'command', None, 'it changes nothing outside of the shell')
        if not default.allowed:
            outcome: Outcome = 'block'
            reason = 'no rule is about it, and by default nothing may run'
        elif default.approval and skipped is not None:
            outcome, reason = 'ask', _skipping(skipped)
        elif default.approval:
            outcome, reason = 'ask', 'no rule is about it, and by default somebody is asked'
        else:
            outcome, reason = 'allow', 'no rule is about it, and by default nobody is asked'
        return Part(text=command.raw, kind='command', decision=outcome, rule='default', reason=reason)

    def _lifted(self, command: SimpleCommand, decided: CompiledRule | None, state: _LineState) -> str | None:
        """Why somebody is asked although a rule, or the default, would not."""
        words = command.words
        named = len(decided.words) if decided is not None else 1
        hit = find_unsafe_within(words, named=named) or (None if takes_data(words) else code_within(words, named=named))
        if hit is not None:
            return f'{hit.why} (`{hit.word}`)' if hit.word else f'{hit.why} (what `xargs` or the like adds)'
        runner = runner_words(words)
        if command.is_fed and any(map(runs_what_it_is_fed, [words[0], *(words[runner:] if runner > 0 else ())])):
            return 'it runs what it is fed'
        if _program(command) == 'tee' and not (decided is not None and decided.rule.sandbox_paths):
            for word in operands([words[0], *words[named:]]):
                if not self._may_write(word, state):
                    return f'the file is written (`{word.raw}`)'
        if state.cwd_changed and not runs_anywhere(words[0].value):
            return _ELSEWHERE
        if decided is not None and runner > 0 and not any(not each.startswith('-') for each in decided.words[runner:]):
            return 'it runs what it is given, and the rule names only the one that runs it'
        return None

    def _guard_within(self, command: SimpleCommand, state: _LineState, *, is_known: bool = False) -> None:
        """Ask where a blocked program is named, unless a program that is known takes it for data."""
        rule = self._book.blocked_within(command.words)
        if rule is not None and not (is_known and takes_data(command.words)):
            reason = f'`{rule.rule.pattern}` is blocked, and may be what this runs'
            part = Part(text=command.raw, kind='command', decision='ask', rule=rule.rule.pattern, reason=reason)
            state.parts.append(part)


def _program(command: SimpleCommand) -> str:
    return program_name(command.words[0].value) if command.words else ''


def _asks(text: str, kind: PartKind, reason: str) -> Part:
    return Part(text=text, kind=kind, decision='ask', rule=None, reason=reason)


def _allows(text: str, kind: PartKind, rule: str | None, reason: str) -> Part:
    return Part(text=text, kind=kind, decision='allow', rule=rule, reason=reason)


def _skipping(rule: CompiledRule) -> str:
    names = ', '.join(f'`{name}`' for name in rule.rule.sandbox_paths)
    return f'the rule `{rule.rule.pattern}` holds only below {names}, and it is not certain that it reads nothing else'


def _by_rule(text: str, rule: CompiledRule) -> Part:
    pattern = rule.rule.pattern
    if not rule.rule.allowed:
        return Part(text=text, kind='command', decision='block', rule=pattern, reason=f'the rule `{pattern}` blocks it')
    if rule.rule.approval:
        return Part(text=text, kind='command', decision='ask', rule=pattern, reason=f'the rule `{pattern}` asks')
    return Part(text=text, kind='command', decision='allow', rule=pattern, reason=f'the rule `{pattern}` allows it')
