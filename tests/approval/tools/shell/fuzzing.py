"""Makes commands from a grammar and from mutated attacks, and finds out from bash itself what they do."""

import random
import shutil
import subprocess
from pathlib import Path

from tool_approval.tools.shell import ShellConfig
from tool_approval.tools.shell.judge import Judge

from . import attacks

TRIP = 'trip'
"""A program that leaves a file where it runs. It is the only one that is not pre-approved, or the only one blocked."""

ASKING = {
    'rules': [
        {'pattern': name, 'approval': False}
        for name in ['echo', 'cat', 'ls', 'head', 'wc', 'true', 'pwd', 'grep', 'env']
    ]
}
OPEN = {'default': {'approval': False}, 'rules': [{'pattern': TRIP, 'allowed': False}]}

_PIECES = [
    ';', '&', '|', '\n', '&&', '||', '(', ')', '{', '}', '$(', '`', '"', "'", '\\', '$', '#', ' ', '\t', '<', '>', '<<',
    '<<<', '<(', '>(', '${', '$((', '((', '[[', ']]', '!', '*', '?', '[', ']', '=', '~', '\\\n', "$'", '$"', 'E', '\nE\n',
    '<<E', '<<-E', "<<'E'", '<<"E"', ';;', ';&', ' in ', ' do ', ' done', ' then ', ' fi', ' esac', 'case ', 'for ', 'if ',
    'while ', 'function ', 'f()', 'eval ', 'env ', 'command ', 'time ', 'exec ', 'sh -c ', 'xargs ', 'trip', 'echo ', 'a',
    '0', '-', '--', ',', '..', ':', '@', '%', '+', '/', '.', '{trip,a}', '2>', '&>', '>&', '|&', '\\\\', '\x01', 'é',
]  # fmt: skip


class Fuzzer:
    """Makes one command after another from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        known = [*attacks.lines(attacks.TOUCHING), *attacks.lines(attacks.BLOCKED), *attacks.lines(attacks.HIDDEN)]
        self.known = [
            command.replace('touch x', TRIP)
            .replace('rm x', TRIP)
            .replace('touch', TRIP)
            .replace('git status', 'echo a')
            for command in known
        ]

    def command(self):
        """One command."""
        made = self.line(3) if self.random.random() < 0.5 else self.random.choice(self.known)
        if self.random.random() < 0.7:
            made = self.mutated(made)
        return made.replace('\0', '')

    def mutated(self, command):
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(command))
            match self.random.randint(0, 4):
                case 0 | 1:
                    command = command[:at] + self.random.choice(_PIECES) + command[at:]
                case 2:
                    command = command[:at] + command[at + self.random.randint(1, 3) :]
                case 3:
                    other = self.random.choice(self.known)
                    command = command[:at] + other[self.random.randint(0, len(other)) :]
                case _:
                    command = self.random.choice(self.known) + self.random.choice(_PIECES) + command
        return command

    def line(self, depth):
        choose = self.random.choice
        if depth <= 0:
            return self.simple(0)
        one, two = (lambda: self.line(depth - 1)), (lambda: self.line(depth - 2))
        return choose(
            [
                lambda: self.simple(depth),
                lambda: self.simple(depth),
                lambda: (
                    one()
                    + choose(['; ', '\n', ' && ', ' || ', ' | ', ' & ', ';', '&&\n', '|\n', ' |& ', '\\\n;'])
                    + two()
                ),
                lambda: f'({one()})',
                lambda: f'{{ {one()}; }}',
                lambda: f'! {one()}',
                lambda: f'if {two()}; then {one()}; fi',
                lambda: f'for i in {self.word(depth)}; do {one()}; done',
                lambda: f'while {two()}; do {one()}; break; done',
                lambda: f'case {self.word(depth)} in {choose(["a", "*", "a|b", "(a"])}) {one()};; esac',
                lambda: f'{self.simple(depth)} # {one()}',
                lambda: (
                    f'{one()} {choose(["2>&1", "</dev/null", "2>/dev/null", ">/dev/null", "<f", "<<<" + self.word(1)])}'
                ),
                lambda: self.heredoc(depth),
                lambda: f'{choose(["a=", "LC_ALL=", "a+="])}{self.word(depth)} {choose(["", one()])}',
                lambda: f'{choose(["[ ", "[[ "])}{self.word(depth)} = {self.word(1)}{choose([" ]", " ]]"])}',
            ]
        )()

    def heredoc(self, depth):
        start, end = self.random.choice(
            [
                ('E', 'E'),
                ("'E'", 'E'),
                ('"E"', 'E'),
                ('\\E', 'E'),
                ('E"F"', 'EF'),
                ("E''", 'E'),
                ('"E F"', 'E F'),
                ('$E', '$E'),
            ]
        )
        dash = self.random.choice(['', '', '-'])
        tail = self.random.choice(
            ['', '', '; ' + self.simple(1), ' | cat', ' # a', ' && echo', ' \\\n a', ' >&2', ' <<E']
        )
        body = self.random.choice(
            [self.word(depth), self.line(depth - 1), f'a\n{end}', f'{end} ', f'\t{end}', 'a\\', '"', "'"]
        )
        return f'cat <<{dash}{start}{tail}\n{body}\n{end}\n{self.random.choice(["", self.line(depth - 1)])}'

    def simple(self, depth):
        program = self.random.choice(
            ['echo', 'echo', 'cat', 'ls', 'true', TRIP, 'env', 'command', 'timeout 1', 'nice', 'e\\cho']
        )
        count = self.random.randint(0, 3)
        return ' '.join([program, *(self.word(depth) for _ in range(count))])

    def word(self, depth):
        inner = self.line(depth - 1) if depth > 0 else TRIP
        hidden = f'$({inner})'
        return self.random.choice(
            [
                'a', 'f', '-n', TRIP, '"a b"', "'a b'", '$a', '"$a"', '${a}', '*', '{a,b}', '~', 'a\\ b', "$'a\\tb'", '$"a"', '$',
                hidden, f'"{hidden}"', f"'{hidden}'", f'\\{hidden}', f'"\\{hidden}"', f'`{inner}`', f'"`{inner}`"', f"'`{inner}`'",
                f"$'{hidden}'", f"$'\\'{hidden}'", f'"\'{hidden}\'"', f"'\"'{hidden}'\"'", f'${{a:-{hidden}}}', f'$(({hidden}))',
                f'a#{inner}', f'#{inner}', f'<({inner})', f'a{hidden}b', f'"a"{hidden}', f"a'{inner}'b", f'\\\\{hidden}', f'$${hidden}',
                f"'a\\'{inner}'", f'"a\\\\"{inner}', f'"${{a}}"{hidden}', f'$[{hidden}]', f'$((a[{hidden}]))', f"'\n'{inner}",
            ]
        )  # fmt: skip


class Oracle:
    """Runs commands in bash, in a bubblewrap, each in a directory of its own."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._programs = folder / 'programs'
        self._programs.mkdir()
        trip = self._programs / TRIP
        trip.write_text('#!/bin/sh\n: > "$PLACE/tripped"\n')
        trip.chmod(0o755)

    def touched(self, commands):
        """Those of `commands`, a mapping to whether they may write, that tripped, or wrote though they may not."""
        work = self._folder / 'work'
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for at, command in enumerate(commands):
            place = work / str(at)
            place.mkdir()
            (place / 'f').write_text('a\n')
            (work / f'{at}.command').write_bytes(command.encode(errors='surrogateescape'))
        driver = (
            f'for at in {" ".join(map(str, range(len(commands))))}; do cd "{work}/$at"; export PLACE="$PWD"; '
            'IFS= read -r -d "" command < "../$at.command"; '
            'timeout -s KILL 3 bash --noprofile --norc -c -- "$command" </dev/null >/dev/null 2>&1; done; wait'
        )
        path = f'{self._programs}:/usr/bin:/bin'
        subprocess.run(
            ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--bind', work,
             work, '--ro-bind', self._programs, self._programs, '--unshare-all', '--die-with-parent', '--new-session', '--clearenv', '--setenv', 'PATH', path,
             '--setenv', 'HOME', '/nowhere', '/bin/bash', '--noprofile', '--norc', '-c', driver],
            check=True, timeout=len(commands) * 4 + 30, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        return [command for at, command in enumerate(commands) if self._is_touched(work / str(at), commands[command])]

    def _is_touched(self, place, may_write):
        if not place.is_dir():
            return not may_write
        # Only what readers alone were asked to do leaves nothing else behind.
        names = sorted(each.name for each in place.iterdir())
        return 'tripped' in names or (not may_write and (names != ['f'] or (place / 'f').read_bytes() != b'a\n'))


def judges():
    """The two configurations: nothing but readers unasked, and everything but the trap."""
    return [Judge(ShellConfig.model_validate(config), cwd='/nowhere') for config in (ASKING, OPEN)]
