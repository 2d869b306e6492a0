"""Makes commands from a grammar and from mutated attacks, and finds out from bash itself what they do."""

import random
import shutil
import subprocess
from pathlib import Path

from tool_approval.tools.shell import ShellConfig
from tool_approval.tools.shell.judge import ShellJudge

from . import fuzzing_tools
from .cases import cases

TRIP = 'trip'
"""A program that leaves a file where it runs. It is the only one that is not pre-approved, or the only one blocked."""

ASKING = {
    'rules': [
        {'pattern': name, 'approval': False} for name in fuzzing_tools.READERS if name not in fuzzing_tools.WRITERS
    ]
}
OPEN = {'default': {'approval': False}, 'rules': [{'pattern': TRIP, 'allowed': False}, {'pattern': 'touch'}]}
"""`touch` asks, since `touch tripped` makes the file by which the trap is known."""


class Fuzzer:
    """Makes one command after another from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.known = [
            case.command.replace('touch x', TRIP)
            .replace('rm x', TRIP)
            .replace('touch', TRIP)
            .replace('git status', 'echo a')
            for case in cases('hidden_behind_a_reader', 'around_a_block')
        ]

    def command(self):
        """One command."""
        kind = self.random.random()
        if kind < 0.35:
            made = self.line(3)
        elif kind < 0.75:
            made = self.tools()
        else:
            made = self.random.choice(self.known)
        if self.random.random() < (0.3 if 0.35 < kind < 0.75 else 0.7):
            made = self.mutated(made)
        if self.random.random() < 0.01:
            made = self.odd(made)
        return made.replace('\0', '')

    def odd(self, command):
        """The same with line ends, blanks or a length that nobody types."""
        choose = self.random.choice
        return choose(
            [
                command.replace('\n', '\r\n'),
                command.replace(' ', choose(['\u00a0', '\u3000', '\t', '\u2003', '\x0b', '\x0c', ' \\\n'])),
                f'{command}\r',
                f'echo {"a" * self.random.choice([4_000, 8_170, 8_200])}\n{command}',
                f'{command} # {"b" * 8_200}\n{TRIP}',
                ' ' * 3_000 + command,
                '\n'.join([command] * 40),
                f'{"(" * 30}{command}{")" * 30}',
            ]
        )

    def tools(self):
        """Programs with arguments that may run or write something, one or a pipe of them, with a hostile variable."""
        parts = [self.tool() for _ in range(self.random.choice([1, 1, 1, 2, 2, 3]))]
        made = parts[0]
        for part in parts[1:]:
            made += self.random.choice([' | ', ' | ', ' && ', '; ']) + part
        if self.random.random() < 0.15:
            made = self.assigned(made)
        value = self.random.choice(fuzzing_tools.VALUES)
        return self.random.choice(
            [
                made, made, made, f'x={value}; {made}', f'x={value}; {made}', f'x={value}; {made}',
                f'for x in {value} a; do {made}; done',
                f'bash -c {quoted(made)} _ {value}', f'set -- {value}; {made}', f'x={value} {made}',
                f'while read -r x; do {made}; done <<< {value}',
            ]
        )  # fmt: skip

    def assigned(self, command):
        """The same with a variable in front that may change what runs: for it, for all that follows, or on its own."""
        one = self.random.choice(fuzzing_tools.ASSIGNMENTS)
        return self.random.choice(
            [
                f'{one} {command}', f'{one} {command}', f'{one} {command}', f'{one}; {command}', f'{one}; {command}',
                f'{one}\n{command}',
                f'env {one} {command}', f'export {one}; {command}', f'export {one.partition("=")[0]}; {one}; {command}',
                f'declare -x {one}; {command}',
                f'({one}; {command})', f'{one} bash -c {quoted(command)}', f'{one} sh -c {quoted(command)}',
                f'{command}; {one}', one,
                f'env {one} bash -c {quoted(command)}', f'LC_ALL=C {one} {command}',
                f'for x in a; do {one} {command}; done',
                f'env {quoted("BASH_FUNC_ls%%=() { trip; }")} bash -c ls',
                f'read -r {one.partition("=")[0]} <<< ../../traps; {command}',
            ]
        )  # fmt: skip

    def tool(self):
        if self.random.random() < 0.15:
            value = self.random.choice(fuzzing_tools.VALUES)
            end = self.random.choice(fuzzing_tools.ENDS).replace('{value}', value)
            return self.random.choice(fuzzing_tools.GROWING).replace('{}', end)
        program = self.random.choice(fuzzing_tools.READERS)
        if self.random.random() < 0.6:
            program = self.random.choice(
                [name for name in fuzzing_tools.READERS if name.split()[0] in fuzzing_tools.OPTIONS]
            )
        before = self.random.choice(
            [
                '',
                '',
                '',
                '',
                '',
                'timeout 1 ',
                'env ',
                'xargs ',
                'nice -n 1 ',
                'time ',
                'command ',
                'find . -exec ',
                'exec -a a ',
            ]
        )
        words = fuzzing_tools.arguments(self.random, program, lambda: self.word(1))
        return ' '.join([before + program, *words, *(['{} \\;'] if before.startswith('find') else [])])

    def mutated(self, command):
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(command))
            match self.random.randint(0, 4):
                case 0 | 1:
                    command = command[:at] + self.random.choice(fuzzing_tools.PIECES) + command[at:]
                case 2:
                    command = command[:at] + command[at + self.random.randint(1, 3) :]
                case 3:
                    other = self.random.choice(self.known)
                    command = command[:at] + other[self.random.randint(0, len(other)) :]
                case _:
                    command = self.random.choice(self.known) + self.random.choice(fuzzing_tools.PIECES) + command
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
                lambda: f'{self.simple(depth)}{choose(["", " "])}\\\n#{choose(["", " ", ";"])} {one()}',
                lambda: (
                    f'{one()} {choose(["2>&1", "</dev/null", "2>/dev/null", ">/dev/null", "<f", "<<<" + self.word(1)])}'
                ),
                lambda: self.heredoc(depth),
                lambda: f'{choose(["a=", "LC_ALL=", "a+="])}{self.word(depth)} {choose(["", one()])}',
                lambda: self.assigned(one()),
                lambda: (
                    f'{choose(["[ ", "[[ "])}{self.word(depth)} {choose(["=", "=~", "-eq", "<", ">", "||", "&&"])} '
                    f'{self.word(1)}{choose([" ]", " ]]"])}'
                ),
                lambda: f'coproc {choose(["", "C "])}{choose([one, lambda: f"{{ {one()}; }}"])()}; wait',
                lambda: f'select i in a b; do {one()}; break; done <<< 1',
                lambda: f'for ((i=0; i<1; i++)); do {one()}; done',
                lambda: f'until {two()}; do {one()}; break; done',
                lambda: f'case a in {choose(["a", "b", "*"])}) {two()} {choose([";;&", ";&", ";;"])} *) {one()};; esac',
                lambda: f'{choose(["ls", "echo", "cat", "cd", "["])}() {{ {one()}; }}\n{self.simple(depth)}',
                lambda: (
                    f'shopt -s expand_aliases\nalias {choose(["ls", "echo"])}={quoted(one())}\n{self.simple(depth)}'
                ),
                lambda: (
                    f'a=({self.word(depth)} {self.word(1)}); '
                    f'echo {choose(["${a[0]}", "${a[@]}", "${#a[@]}", "${!a[@]}"])}'
                ),
                lambda: (
                    f'{choose(["declare", "export", "local", "readonly", "typeset -i"])} a={self.word(depth)}; {one()}'
                ),
                lambda: (
                    f'{choose(["builtin eval", "eval", "command eval", "exec", "exec -a ls", "trap"])} '
                    f'{quoted(one())}{choose(["", " EXIT"])}'
                ),
                lambda: f'env -S {quoted(one())}',
                lambda: (
                    f'{choose(["while", "until"])} {choose(["", "IFS= ", "IFS=a "])}read -r {choose(["x", "a", "i"])}; '
                    f'do {one()}; done < f'
                ),
                lambda: (
                    f'{one()} {choose(["&&", ";"])} '
                    f'cd {choose([".", "/", "..", self.word(1)])} {choose(["&&", ";"])} {two()}'
                ),
                lambda: (
                    f'{choose(["bash -c", "sh -c", "bash -ec", "bash -c --", "timeout 1 sh -c"])} '
                    f'{quoted(one())} {choose(["", "_ " + self.word(1)])}'
                ),
                lambda: f'mapfile -C {quoted(TRIP)} -c 1 a < f; {one()}',
                lambda: f'x={choose(fuzzing_tools.VALUES)}; {one()}',
                lambda: f'((a={self.word(1)})); let {self.word(1)}; {one()}',
                lambda: f'printf -v a {self.word(1)}; hash -p {TRIP} ls; enable -n echo; {one()}',
                lambda: f'exec 3<>f; {one()} {choose([">&3", "<&3", "3>f", "{d}>f", "3<f", "<>f"])}',
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
                'a', 'f', '-n', TRIP, '"a b"', "'a b'", '$a', '"$a"', '${a}', '*', '{a,b}', '~', 'a\\ b', "$'a\\tb'",
                '$"a"', '$',
                hidden, f'"{hidden}"', f"'{hidden}'", f'\\{hidden}', f'"\\{hidden}"', f'`{inner}`', f'"`{inner}`"',
                f"'`{inner}`'",
                f"$'{hidden}'", f"$'\\'{hidden}'", f'"\'{hidden}\'"', f"'\"'{hidden}'\"'", f'${{a:-{hidden}}}',
                f'$(({hidden}))',
                f'a#{inner}', f'#{inner}', f'<({inner})', f'a{hidden}b', f'"a"{hidden}', f"a'{inner}'b",
                f'\\\\{hidden}', f'$${hidden}',
                f"'a\\'{inner}'", f'"a\\\\"{inner}', f'"${{a}}"{hidden}', f'$[{hidden}]', f'$((a[{hidden}]))',
                f"'\n'{inner}",
                '$x', '"$x"', 'a$x', '"$@"', '$*', '${x@P}', '${!x}', f'${{x:={hidden}}}', f'${{x/a/{hidden}}}',
                f'${{x:{hidden}}}', '${x[0]}', f'${{a[{hidden}]}}',
                '{1..3}', '{a,-o}', '{,a}', '~+', '~root', f'$"a{hidden}"', f"$'\\x24({inner})'", f'$"{inner}"',
                '<(echo)', '>(cat)', '[a-z]', '@(a|f)', '!(f)',
                '$((x))', '$((1+1))', '${x^^}', '${x@A}', '$_', '$-', '$0', '--', '-e', '-o', '=', 'a=b', 'é', '\\\n',
                f'"${{x:-`{inner}`}}"', f'{{{inner},a}}',
                '${x:-a}', '"${x:-a}"', '${x:+-o}', '${x##*/}', '${x%.*}', '${x//a/b}', '${x:0:3}', '${x: -1}',
                '${a[0]}', '${a[@]}', '"${a[@]}"', '${#a[@]}',
                f'${{x:+{hidden}}}', f'${{x//a/{hidden}}}', f'${{x%{hidden}}}', '${x:a[0]}', '${a[x]}', '${x:?a}',
                '${x:=a}', '${x/#a/b}', '${x:-a b}', '${x^^}',
            ]
        )  # fmt: skip


def quoted(text):
    """As one word, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


class Oracle:
    """Runs commands in bash, in a bubblewrap, each in a directory of its own."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._programs = folder / 'programs'
        self._programs.mkdir()
        trip = self._programs / TRIP
        trip.write_text('#!/bin/sh\n: > "$PLACE/tripped"\n')
        trip.chmod(0o755)
        # The names of every day, for commands that change where programs are looked for.
        self._traps = folder / 'traps'
        self._traps.mkdir()
        for name in {reader.split()[0] for reader in fuzzing_tools.READERS}:
            shutil.copy(trip, self._traps / name)
        (self._traps / 'start').write_text(f'{TRIP}\n')
        (self._traps / 'rules').write_text(f'$(shell {TRIP})\n')
        self._repository = folder / 'repository'
        for command in (
            ['init', '--quiet', '--initial-branch=main', '.'],
            ['config', 'alias.t', f'!{TRIP}'],
            ['-c', 'user.name=a', '-c', 'user.email=a@a', 'commit', '--quiet', '--allow-empty', '-m', 'a'],
        ):
            self._repository.mkdir(exist_ok=True)
            subprocess.run(['git', *command], cwd=self._repository, check=True, stdin=subprocess.DEVNULL)

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
            'timeout -s KILL 1 bash --noprofile --norc -c -- "$command" </dev/null >/dev/null 2>&1; done; wait'
        )
        path = f'{self._programs}:/usr/bin:/bin'
        subprocess.run(
            ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--bind', work,
             work, '--ro-bind', self._programs, self._programs, '--ro-bind', self._traps, self._traps, '--ro-bind',
             self._repository, self._repository, '--unshare-all', '--die-with-parent', '--new-session', '--clearenv',
             '--setenv', 'PATH', path,
             '--setenv', 'HOME', '/nowhere', '--setenv', 'GIT_DIR', self._repository / '.git', '--setenv', 'PAGER',
             'cat',  '/bin/bash', '--noprofile', '--norc', '-c', driver],
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
    return [ShellJudge(ShellConfig.model_validate(config), cwd='/nowhere') for config in (ASKING, OPEN)]
