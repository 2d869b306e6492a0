"""Split a command into parts, and judge each part by the rules. The strictest decision applies.

`_line` judges a command line, and `_command` judges one simple command. Commands inside a command are checked as well.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tool_approval.os_sandbox.access import AccessName

from .entries import entries
from .environment import is_harmless
from .explanation import Explanation, Outcome, Part, PartKind, remembered_words
from .grammar import parse
from .labels import label
from .names import commands_behind, named_words, other_names, trusted_name
from .needs import is_local, needed_access, only_reads, written_paths
from .paths import ShellRoot, ShellRoots, is_inside
from .reading import CommandReader
from .rules import CompiledRule, RuleBook, RuleMatch
from .scripts import WrappedCommand, code_within, is_shell
from .unlisted import SINKS, find_unlisted, is_known, is_powerful, runs_anywhere, takes_data
from .words import SimpleCommand, Word, fixed
from .wrappers import changes_cwd, unwrap

if TYPE_CHECKING:
    from .config import ShellConfig

_MAX_DEPTH: Final = 8
"""Maximum depth of nested commands, as in `sh -c 'sh -c ...'` and `env env ...`."""
_MOST_GUESSES: Final = 2
"""Maximum number of programs without an entry in each other, as in `uv run npx rm`, behind which a block applies."""
_LOOKED_AT: Final = 1_000
"""If a command cannot be parsed, only this many of its first characters are searched for a blocked program."""
BY_DEFAULT: Final = 'no rule matches, and the default is to ask'
"""The most frequent reason why a command needs approval."""
_NEUTRAL: Final = frozenset({
    ':', 'true', 'false', 'test', '[', '[[', 'cd', 'set', 'exit', 'return', 'break', 'continue', 'type', 'command',
    'read',
})  # fmt: skip
"""Programs that only return a status or change the shell itself. Allowing `cd` is safe, because most programs that run
after a `cd` need approval."""
_MADE: Final = re.compile(r'\b(\w+)="?(?:\$\(|`)mktemp\b')
_VARIABLE: Final = re.compile(r'"?\$\{?(\w+)')
_UPWARDS: Final = re.compile(r'(?:^|[/{,])\.[.*?\[{},]|\.\.|[\\\'"$]')
"""Parts of a glob that may lead to a parent directory."""

_Verdict = tuple[Outcome, str, str | None]
"""Decision, reason, and pattern of the deciding rule."""


@dataclass
class _LineState:
    """The decisions so far on parts of a command line, and the extra access that these parts need."""

    parts: list[Part] = field(default_factory=list[Part])
    cwd_changed: bool = False
    depth: int = 0
    guesses: int = 0
    is_in_program: bool = False
    description: str | None = None
    needs: set[AccessName] = field(default_factory=set[AccessName])
    is_local: bool = True
    here: str | None = None
    only_reads: bool = True
    has_input: bool = False
    made: set[str] = field(default_factory=set[str])
    """Variables whose value is a path that `mktemp` has made, by default in `/tmp`."""

    def known(self, word: Word) -> Word:
        """Return a word with the beginning of its value, if the word begins with such a variable."""
        found = _VARIABLE.match(word.raw) if not word.value else None
        return Word(word.raw, '/tmp/', is_fixed=False) if found is not None and found[1] in self.made else word

    def add(self, text: str, decision: Outcome, why: str, rule: str | None = None, kind: PartKind = 'command') -> None:
        """Add a part to the explanation."""
        self.parts.append(Part(text=text, kind=kind, decision=decision, rule=rule, reason=why))


class ShellJudge:
    """Judges commands by the rules. The object keeps no state between commands, and is thread-safe."""

    def __init__(
        self,
        config: ShellConfig,
        *,
        cwd: str,
        roots: Mapping[str, ShellRoot] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
        needs_write: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """Compile the rules.

        Args:
            config: The rules.
            cwd: Absolute path of the directory that commands run in.
            roots: Roots by name. The `sandbox_paths` of rules contain these names.
            is_writable: Function that returns whether a redirection may write to an absolute path without approval.
            needs_write: If an OS sandbox confines commands, a function that returns whether a command can write to an
                absolute path only with the extra access `write`; otherwise `None`.
            clock: Function that returns the time in seconds, for the limit on parsing.
        """
        self._config = config
        self._needs_write = needs_write
        default = config.default
        self._is_held = needs_write is not None and default.allowed and not default.approval
        """Whether the OS sandbox, and not the judge, holds what no rule names."""
        self._is_read_whole = not self._is_held or any(rule.approval or not rule.allowed for rule in config.rules)
        """Whether a line asks if its programs cannot all be read: a rule that asks or blocks might apply."""
        self._book = RuleBook(config)
        self._roots = ShellRoots(roots or {}, cwd, is_confined=needs_write is not None)
        self._is_writable = is_writable
        self._cwd = cwd
        self._clock = clock

    def explain(self, command: str) -> Explanation:
        """Return the decision on a command and on each of its parts."""
        state = _LineState()
        commands = self._line(command, state)
        if not state.parts:
            self._unread(command, 'there is no command to run', state, kind='syntax')
        return Explanation(
            command=command,
            parts=tuple(state.parts),
            description=state.description,
            remember=remembered_words(commands, state.parts, self._is_here),
            needs=frozenset(state.needs),
            is_local=state.is_local,
            only_reads=state.only_reads,
        )

    def _unread(self, text: str, why: str, state: _LineState, kind: PartKind = 'command') -> None:
        """Add a part whose programs cannot be read. It asks, unless the OS sandbox holds it and no rule could apply."""
        state.only_reads = False
        state.add(text, 'ask' if self._is_read_whole else 'allow', why, kind=kind)

    def _line(self, text: str, state: _LineState, runner: SimpleCommand | None = None) -> list[SimpleCommand]:
        # Attack: `bash -c $'{ head; } \\x3c /etc/passwd'`, where only the script contains the `<`.
        state.has_input = state.has_input or '<' in text
        state.made.update(_MADE.findall(text))
        parsed = parse(text, clock=self._clock)
        reader = CommandReader(parsed, runner)
        if parsed.root is None:
            # If the text cannot be parsed, only its first words are compared with the rules that block.
            words = [fixed(word) for word in re.findall(r'[^\s;&|()<>]+', text[:_LOOKED_AT])]
            if words and (guard := self._guard(words)) is not None and not guard.rule.allowed:
                state.add(text, *_by_rule(guard))
        for problem in reader.problems:
            self._unread(text, f'not understood: {problem}', state, kind='syntax')
        changes = [changes_cwd(command, self._cwd) for command in reader.commands]
        # Commands before a `cd` run in the old directory, unless a loop repeats them.
        state.cwd_changed = state.cwd_changed or (reader.has_loop and any(changes))
        for command, changes_on in zip(reader.commands, changes, strict=True):
            self._command(command, state)
            state.cwd_changed = state.cwd_changed or (changes_on and len(reader.commands) > 1)
            if changes_on and len(command.words) == 2 and (place := state.known(command.words[1])).value:
                state.here = os.path.join(state.here or self._cwd, place.value)
        return reader.commands

    def _guard(self, words: Sequence[Word]) -> CompiledRule | None:
        """Return the rule that blocks a command or requires approval for it, regardless of the paths in the command."""
        rule = self._book.find(words, lambda rule: True).decided
        return rule if rule is not None and rule.is_guard else None

    def _command(self, command: SimpleCommand, state: _LineState, granted: CompiledRule | None = None) -> None:
        """Judge one command.

        Args:
            command: The command.
            state: Object that collects the parts of the line.
            granted: Part of the wrapper's rule that allows this command, like `pytest` in a rule for `uv run pytest`.
        """
        for redirect in command.redirects:
            self._redirect(redirect.target, is_write=redirect.is_write, state=state)
        words = command.words
        for name in command.assignments:
            # `IFS=` in front of `read` affects only this builtin, which runs nothing.
            if name != 'IFS' or not words or not words[0].is_fixed or words[0].value != 'read':
                self._assignment(name, is_exported=bool(words), state=state)
        if not words:
            return
        first = words[0].value
        if not words[0].is_fixed or not first or first.startswith('-') or not first.isascii():
            self._unread(command.raw, 'the program is unknown until the command runs', state)
            self._guard_within(command, state)
            return
        inside = unwrap(words)
        decided = self._program(command, inside, state, granted)
        if inside is not None:
            self._inside(command, inside, decided, state)
        elif entries().program(first) is None:
            self._block_behind(command, state)

    def _block_behind(self, command: SimpleCommand, state: _LineState) -> None:
        """Block a program without an entry that may run what a rule blocks: `uv run twine upload`.

        Words that only may be a command can block it, but neither allow it nor ask (see `_guard_within`).
        """
        if state.guesses == _MOST_GUESSES:
            return
        for words in commands_behind(command.words):
            inner = _LineState(depth=state.depth, guesses=state.guesses + 1)
            self._command(command.of(words), inner)
            state.parts += [part for part in inner.parts if part.decision == 'block' and part.rule != 'default']

    def _redirect(self, target: Word, *, is_write: bool, state: _LineState) -> None:
        path = target.value
        verdict: _Verdict = 'ask', 'the redirection would write to this file', None
        if is_write and path not in SINKS:
            self._writes(target, state)
        if path.startswith(('/dev/tcp', '/dev/udp')):
            state.needs.add('network')
            state.is_local = False
        if self._is_held:
            verdict = 'allow', 'the OS sandbox confines the redirection', None
        elif path.startswith(('/dev/tcp', '/dev/udp')) or not target.is_fixed:
            verdict = 'ask', 'the target of the redirection is unknown, or on another machine', None
        elif not is_write or path in SINKS:
            return
        elif self._may_write(target, state):
            verdict = 'allow', 'the file sandbox allows writing to this file', None
        state.add(target.raw, *verdict, kind='redirection')

    def _writes(self, target: Word, state: _LineState) -> None:
        """Note that a command writes to a path. Of an unknown path, only the beginning is known."""
        state.only_reads = False
        path = os.path.normpath(os.path.join(state.here or self._cwd, state.known(target).value))
        if self._needs_write is not None and self._needs_write(path):
            state.needs.add('write')

    def _may_write(self, target: Word, state: _LineState) -> bool:
        path = target.value if target.value.startswith('/') else f'{self._cwd}/{target.value}'
        return target.is_fixed and not state.cwd_changed and self._is_writable(path)

    def _is_here(self, path: Word) -> bool:
        """Return whether a path, or every path that a glob matches, is in the working directory."""
        is_plain = path.is_fixed or (path.growth == 'alike' and path.value != '' and not _UPWARDS.search(path.raw))
        return is_plain and is_inside(self._cwd, os.path.join(self._cwd, path.value))

    def _assignment(self, name: str, *, is_exported: bool, state: _LineState) -> None:
        verdict: _Verdict = 'ask', 'setting this variable may change what runs', None
        if is_harmless(name, is_exported=is_exported):
            verdict = 'allow', 'setting this variable cannot change what runs', None
        elif not self._is_read_whole:
            verdict = 'allow', 'the OS sandbox confines what runs', None
        state.add(name, *verdict, kind='assignment')

    def _inside(
        self, command: SimpleCommand, inside: WrappedCommand, decided: CompiledRule | None, state: _LineState
    ) -> None:
        """Judge the commands that a command runs."""
        for name in inside.assignments:
            self._assignment(name, is_exported=True, state=state)
        state.cwd_changed = state.cwd_changed or inside.changes_cwd
        if state.depth >= _MAX_DEPTH:
            self._unread(command.raw, 'not understood: scripts are nested too deeply', state, kind='syntax')
            return
        state.depth += 1
        rest = _rest(decided, command.words, inside.own)
        outer, state.is_in_program = state.is_in_program, state.is_in_program or not inside.is_transparent
        for words in filter(None, inside.words):
            # Attack: a rule for `find rm` must not allow `find rm -exec rm x`.
            is_named = rest is not None and [word.value for word in words[: len(rest.words)]] == list(rest.words)
            self._command(command.of(words), state, rest if is_named else None)
        for script in inside.scripts:
            self._line(script, state, command)
        state.is_in_program = outer
        state.depth -= 1

    def _by_rules(self, command: SimpleCommand, state: _LineState) -> RuleMatch:
        """Find the deciding rule for a command. If an earlier rule may match, require approval."""
        cwd_changed, is_fed = state.cwd_changed, command.is_fed and state.has_input

        def is_in_roots(rule: CompiledRule) -> bool:
            names, after = rule.rule.sandbox_paths, len(rule.words)
            # Attack: `{ head; } < /etc/passwd`, where another command names the input file.
            is_unknown = cwd_changed or (is_fed and not rule.is_guard)
            return not is_unknown and self._roots.hold(command, names, after=after, approves=not rule.is_guard)

        found = self._book.find(command.words, is_in_roots)
        if found.possible is not None:
            pattern = found.possible.rule.pattern
            why = f'a part is unknown until the command runs, so the rule `{pattern}` may match'
            state.add(command.raw, 'ask', why, pattern)
        if found.decided is not None and found.decided.is_guard and state.description is None:
            state.description = found.decided.rule.description
        return found

    def _program(
        self, command: SimpleCommand, inside: WrappedCommand | None, state: _LineState, granted: CompiledRule | None
    ) -> CompiledRule | None:
        """Judge a command, but not the commands that it runs, and return the rule that decided."""
        words = command.words
        needs = needed_access(words)
        state.needs.update(needs)
        state.is_local = state.is_local and ('network' not in needs or is_local(words))
        for path in written_paths([*map(state.known, words)]) or ():
            self._writes(path, state)
        state.only_reads = state.only_reads and only_reads(words)
        found = self._by_rules(command, state)
        decided = found.decided if granted is None or (found.decided and found.decided.is_guard) else granted
        for guard in filter(None, map(self._guard, other_names(words))):
            state.add(command.raw, *_by_rule(guard))
        verdict = _by_rule(decided) if decided else self._default(command.words[0].value, inside, found.skipped, state)
        problem = inside.problem if inside is not None and not _names_file(words, decided) else None
        if self._is_held:
            is_fed_script = command.is_fed and is_shell(words[0].value) and not (inside and inside.is_transparent)
            problem = problem or ('the program runs code from its standard input' if is_fed_script else None)
            if label(words).entry is entries().find('source'):
                # Attack: `alias ls=rm; ls x`, `. <(echo rm x)`, where a rule blocks `rm`.
                problem = 'the command may change what the shell runs'
            problem = problem if self._is_read_whole else None
        elif verdict[0] == 'allow':
            problem = problem or self._lifted(command, inside, decided, state)
        if problem and (verdict[0] == 'allow' or (verdict[0] == 'ask' and decided is None)):
            verdict = 'ask', problem, None
        state.add(command.raw, *verdict)
        if verdict[0] != 'block':
            self._guard_within(command, state)
        return decided

    def _default(
        self, name: str, inside: WrappedCommand | None, skipped: CompiledRule | None, state: _LineState
    ) -> _Verdict:
        """Return the decision on a command that no rule matches."""
        default = self._config.default
        if inside is not None and not inside.is_program and skipped is None:
            is_itself = entries().is_listed(name) or (is_shell(name) and trusted_name(name) is not None)
            if inside.is_transparent and is_itself:
                return 'allow', 'the wrapped command is judged separately', None
            if default.allowed and not self._is_held:
                return 'ask', f'`{name}` runs another command, and no rule matches `{name}` itself', None
        if not default.allowed:
            return 'block', 'no rule matches, and the default is to block', 'default'
        if name in _NEUTRAL and not state.is_in_program:
            return 'allow', 'the command changes nothing outside the shell', None
        if not default.approval:
            held = ', because the OS sandbox confines commands' if self._is_held else ''
            return 'allow', f'no rule matches, and the default is to allow{held}', 'default'
        if skipped is None:
            return 'ask', BY_DEFAULT, 'default'
        names = ', '.join(f'`{name}`' for name in skipped.rule.sandbox_paths)
        why = f'{skipped.rule.shown} applies only to paths in {names}, and this command may use other paths'
        return 'ask', why, 'default'

    def _lifted(
        self, command: SimpleCommand, inside: WrappedCommand | None, decided: CompiledRule | None, state: _LineState
    ) -> str | None:
        """Return the reason why an otherwise allowed command needs approval; `None` if no approval is needed."""
        words = command.words
        is_inline = inside is not None and inside.is_transparent
        runs_input = is_shell(words[0].value) or is_powerful(words) or 'runs_input' in label(words).flags
        if command.is_fed and not is_inline and runs_input:
            return 'the program runs code from its standard input'
        is_listed = entries().program(words[0].value) is not None
        is_exact = decided is not None and decided.rule.arguments == 'listed'
        if command.is_fed and is_exact and not is_listed and not is_inline:
            return 'the program is not listed, and may run code from its standard input'
        if state.cwd_changed and not is_inline and not runs_anywhere(words):
            return 'the command runs in another directory, and files there may change what it does'
        if is_shell(words[0].value):
            return None
        takes_any = decided.rule.arguments == 'any' if decided is not None else not is_listed
        hit = find_unlisted(
            words,
            named=None if decided is None else named_words(words, decided.words),
            any_arguments=takes_any,
        )
        if hit is None and not is_known(words):
            hit = code_within(words)
        if hit is None:
            return None
        subject = f'`{hit.word}`' if hit.word else 'an argument added by `xargs` or a similar program'
        return f'{subject} {hit.why}'

    def _guard_within(self, command: SimpleCommand, state: _LineState) -> None:
        """Require approval if an argument names a blocked program, unless the command uses arguments only as data.

        If the program has no entry, it may be a wrapper, so rules that ask about its arguments apply, too.
        """
        is_listed = entries().program(command.words[0].value) is not None
        for rule in self._book.guards_within(command.words):
            if (not rule.rule.allowed or not is_listed) and not takes_data(command.words):
                does = 'which is blocked' if not rule.rule.allowed else 'about which a rule asks'
                state.add(command.raw, 'ask', f'the command may run `{rule.rule.pattern}`, {does}', rule.rule.pattern)
                return


def _names_file(words: Sequence[Word], decided: CompiledRule | None) -> bool:
    """Return whether a rule, such as `bash scripts/test.sh`, allows a shell to run one named file."""
    if decided is None or decided.is_guard or len(decided.words) < 2 or decided.words[1].startswith('-'):
        return False
    return is_shell(words[0].value) and all(word.is_fixed for word in words)


def _rest(decided: CompiledRule | None, words: Sequence[Word], own: int | None) -> CompiledRule | None:
    """Return the part of a rule that names and allows the wrapped command, such as `pytest` in `uv run pytest`."""
    if decided is None or own is None or decided.is_guard or named_words(words, decided.words) <= own:
        return None
    return CompiledRule(decided.index, decided.rule, decided.words[own - named_words(words, decided.words) :])


def _by_rule(rule: CompiledRule) -> _Verdict:
    pattern, shown = rule.rule.pattern, rule.rule.shown
    if not rule.rule.allowed:
        return 'block', f'{shown} blocks it', pattern
    if rule.rule.approval:
        return 'ask', f'{shown} asks', pattern
    return 'allow', f'{shown} allows it', pattern
