"""Programs that run the command they are given, and how to find it among their own options."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .programs import program_name
from .scripts import WrappedCommand, reads_otherwise, run_by_shell
from .words import Word, fixed

_ANYTHING: Final = Word('', '', is_fixed=False)


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The options a wrapper has before the command, with what is needed to step over them."""

    flags: str = ''
    valued: str = ''
    optional: str = ''
    """Letters whose value, if any, is attached."""
    long_flags: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    operands: int = 0
    """Operands before the command."""
    is_transparent: bool = True
    appends: bool = False
    """Whether arguments are added that stand nowhere in the line."""


def _options(
    flags: str = '', valued: str = '', optional: str = '', *, long: str = '', long_valued: str = '', operands: int = 0,
    is_transparent: bool = True, appends: bool = False,
) -> _Options:  # fmt: skip
    return _Options(
        flags=flags,
        valued=valued,
        optional=optional,
        long_flags=frozenset(long.split()),
        long_valued=frozenset(long_valued.split()),
        operands=operands,
        is_transparent=is_transparent,
        appends=appends,
    )


_WRAPPERS: Final = {
    'timeout': _options('fpv', 'ks', long='foreground preserve-status verbose', long_valued='kill-after signal',
                        operands=1),
    'nice': _options('0123456789', 'n', long_valued='adjustment'),
    'nohup': _options(),
    'ionice': _options('t', 'cn', long='ignore', long_valued='class classdata'),
    'stdbuf': _options('', 'ioe', long_valued='input output error'),
    'time': _options('pqvV', 'f', long='portability quiet verbose', long_valued='format'),
    'command': _options('p'),
    'builtin': _options(),
    'exec': _options('cl', 'a'),
    'xargs': _options('0rtx', 'EILnPsda', 'eil', long='null no-run-if-empty verbose exit max-lines replace eof',
                      long_valued='arg-file delimiter max-args max-procs max-chars',
                      appends=True),
    'setsid': _options('cfw', long='ctty fork wait', is_transparent=False),
    'sudo': _options('AbEHknPSBi', 'ugpCDhrtTU', long='preserve-env non-interactive stdin login set-home background',
                     long_valued='user group host prompt chdir role type close-from', is_transparent=False),
    'doas': _options('nsL', 'uC', is_transparent=False),
    'pkexec': _options('', '', long='disable-internal-agent keep-cwd', long_valued='user', is_transparent=False),
    'chroot': _options('', '', long='skip-chdir', long_valued='userspec groups', operands=1, is_transparent=False),
    'flock': _options('sxeunoF', 'wE', long='shared exclusive unlock nonblock close no-fork verbose',
                      long_valued='timeout wait conflict-exit-code', operands=1, is_transparent=False),
    'taskset': _options('ac', '', long='all-tasks cpu-list', operands=1, is_transparent=False),
    'chrt': _options('abfiormv', 'TPD', operands=1, is_transparent=False),
    'setarch': _options('vR3BFILSTXZ', '', operands=1, is_transparent=False),
    'linux32': _options('vR', is_transparent=False), 'linux64': _options('vR', is_transparent=False),
    'unshare': _options('cfimnpuUrCT', 'GS', is_transparent=False),
    'nsenter': _options('mnpuUiCaFZr', 'tSG', is_transparent=False),
    'setpriv': _options('', '', long='no-new-privs clear-groups keep-groups init-groups reset-env',
                        long_valued='reuid regid groups ruid euid rgid egid inh-caps bounding-set pdeathsig',
                        is_transparent=False),
    'strace': _options('cCdfFhiqrtTvVxyDkwnzZ', 'aeEIObopPsSuXU', is_transparent=False),
    'ltrace': _options('bcCfhiLrStTV', 'aAeDFlnopsuwx', is_transparent=False),
    'catchsegv': _options(is_transparent=False), 'unbuffer': _options('p', is_transparent=False),
    'fakeroot': _options('uh', 'lsifb', is_transparent=False), 'torsocks': _options(is_transparent=False),
    'proxychains': _options('q', 'f', is_transparent=False), 'prlimit': _options(is_transparent=False),
    'numactl': _options(is_transparent=False), 'cpulimit': _options('mivz', 'elP', is_transparent=False),
    'dbus-run-session': _options(is_transparent=False), 'xvfb-run': _options('al', 'enfps', is_transparent=False),
    'coproc': _options(is_transparent=False), 'busybox': _options(is_transparent=False),
    'toybox': _options(is_transparent=False), 'runuser': _options('', 'ug', is_transparent=False),
    'entr': _options('acdnprsxz', is_transparent=False, appends=True), 'systemd-run': _options(is_transparent=False),
    **dict.fromkeys(('i386', 'i486', 'i586', 'i686', 'x86_64', 'uname26'), _options('vR', is_transparent=False)),
    **dict.fromkeys(
        ('chronic', 'tini', 'dumb-init', 'catatonit', 'eatmydata', 'proxychains4', 'torify', 'bwrap', 'systemd-cat',
         'systemd-inhibit', 'ifne', 'watchexec', 'nodemon', 'reflex', 'retry', 'rlwrap', 'cronic', 'daemon',
         'daemonize',
         'runlim', 'runcon', 'run0', 'dzdo', 'gksu', 'gksudo', 'sshpass', 'autoexpect', 'bear', 'scan-build',
         'mangohud',
         'gamescope', 'prime-run', 'boxxy', 'oniux', 'heaptrack', 'multitime', 'softlimit', 'chpst', 'mpirun',
         'mpiexec',
         'salloc', 'srun', 'dtach', 'abduco', 'nq', 'tsp', 'zrun', 'ttyd', 'gotty', 'websocketd', 'kde-inhibit',
         'distrobox-host-exec', 'tsocks', 'noglob', 'firejail', 'proot'),
        _options(is_transparent=False),
    ),
    **dict.fromkeys(('envdir', 'setuidgid', 'envuidgid', 'setlock'), _options(operands=1, is_transparent=False)),
    'gtime': _options('pqvV', 'f', long='portability quiet verbose', long_valued='format', is_transparent=False),
    'perf': _options(operands=1, is_transparent=False), 'logsave': _options('asv', operands=1, is_transparent=False),
    'faketime': _options('mf', operands=1, is_transparent=False),
    'ssh-agent': _options('Dd', 'aEPt', is_transparent=False),
    'gosu': _options(operands=1, is_transparent=False), 'su-exec': _options(operands=1, is_transparent=False),
    'choom': _options('', 'n', is_transparent=False), 'cgexec': _options('', 'g', is_transparent=False),
    'uclampset': _options('asR', 'mM', is_transparent=False), 'valgrind': _options(is_transparent=False),
    'caffeinate': _options('dimsu', 't', is_transparent=False), 'arch': _options(is_transparent=False),
    'ld.so': _options('', '', long='list verify inhibit-cache preload',
                      long_valued='library-path inhibit-rpath argv0 audit', is_transparent=False),
}  # fmt: skip

_LOADER: Final = re.compile(r'ld-(?:linux|musl)[\w.-]*|ld\.so|ld-\d[\d.]*\.so')


def unwrap(words: Sequence[Word]) -> WrappedCommand | None:
    """What the program runs for others, or `None` if it is no wrapper.

    Args:
        words: A command with a fixed program.
    """
    name = program_name(words[0].value)
    if _LOADER.fullmatch(name):
        name = 'ld.so'
    if (shell := run_by_shell(name, words)) is not None:
        return shell
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    options = _WRAPPERS.get(name)
    return _after_options(options, words) if options is not None else None


def _after_options(options: _Options, words: Sequence[Word]) -> WrappedCommand:
    at, problem = _skip(options, words)
    at += options.operands
    problem = problem or _growing(words[1:at])
    inner = tuple(words[at:])
    if not inner:
        # `sudo -s`, `unshare`: with nothing to run, some start a shell.
        return WrappedCommand(
            is_program=True, problem=problem or (None if options.is_transparent else 'it may start a shell')
        )
    if options.appends:
        inner = (*_replaced(words[:at], inner), _ANYTHING)
    if words[0].value in ('sudo', 'doas', 'time'):
        # Attack: `time A=1 rm x`. To the shell's own `time`, it is a variable.
        inner, names = _without_assignments(inner)
        return WrappedCommand(words=(inner,), assignments=names, problem=problem, is_transparent=options.is_transparent)
    return WrappedCommand(words=(inner,), is_transparent=options.is_transparent, problem=problem, own=at)


def _growing(words: Sequence[Word]) -> str | None:
    """Attack: `x='5 touch y'; timeout $x ls` runs `touch`. Where words multiply, the command begins elsewhere."""
    return 'a word in front of the command may become several' if any(word.growth != 'none' for word in words) else None


def _replaced(options: Sequence[Word], inner: Sequence[Word]) -> tuple[Word, ...]:
    """The command with what `xargs -I` puts into it marked as not known."""
    marks: list[str] = []
    for word, following in zip(options, [*options[1:], None], strict=False):
        if found := re.fullmatch(r'-(?:[0rtx]*[Ii]|-replace=?)(.*)', word.value, re.DOTALL):
            marks.append(found[1] or (following.value if following is not None and word.value.endswith('I') else '{}'))
    return tuple(
        next(
            # A mark that is empty, or not known, may stand for anything.
            (
                Word(word.raw, word.value.partition(mark)[0] if mark else '', is_fixed=False)
                for mark in marks
                if mark in word.value
            ),
            word,
        )
        for word in inner
    )


def _skip(options: _Options, words: Sequence[Word]) -> tuple[int, str | None]:
    """Where the operands begin, and why that is not certain."""
    problem, at = None, 1
    while at < len(words):
        word = words[at]
        if not word.is_fixed and word.can_be_option:
            return at, 'an option of a wrapper is not known'
        text = word.value
        if text == '--':
            return at + 1, problem
        if len(text) < 2 or not text.startswith('-'):
            break
        step, more = _step(options, text)
        at, problem = at + step, problem or more
    return at, problem


def _step(options: _Options, text: str) -> tuple[int, str | None]:
    if text.startswith('--'):
        name, has_value, _ = text[2:].partition('=')
        if name in options.long_valued:
            return (1 if has_value else 2), None
        return 1, None if name in options.long_flags else f'the option `{text}` of a wrapper is not known'
    for place, letter in enumerate(text[1:], start=2):
        if letter in options.optional:
            return 1, None
        if letter in options.valued:
            return (1 if place < len(text) else 2), None
        if letter not in options.flags:
            return 1, f'the option `{text}` of a wrapper is not known'
    return 1, None


# Attack: `env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls`. To `env` and `sudo`, whatever has a `=` is a variable.
_ASSIGNMENT: Final = re.compile(r'([^=]*)=.*', re.DOTALL)


def _without_assignments(words: Sequence[Word]) -> tuple[tuple[Word, ...], tuple[str, ...]]:
    names: list[str] = []
    for at, word in enumerate(words):
        found = _ASSIGNMENT.fullmatch(word.value)
        if found is None:
            return tuple(words[at:]), tuple(names)
        names.append(found[1])
    return (), tuple(names)


_ENV: Final = _options('i0v', 'uC', long='ignore-environment null debug', long_valued='unset chdir')


def _env(words: Sequence[Word]) -> WrappedCommand:
    for word in words[1:]:
        # `-S` splits its value by rules of its own.
        if word.value.startswith(('-S', '--split-string')) or re.match(r'-[i0v]+S', word.value):
            return WrappedCommand(words=(_split(words),), problem='`env -S` splits a text into a command')
        if re.match(r'-[i0v]*C|--chdir', word.value):
            at, _ = _skip(_ENV, words)
            inner, names = _without_assignments(words[at:])
            return WrappedCommand(words=(inner,), assignments=names, problem='`env -C` runs it in another directory')
    at, problem = _skip(_ENV, words)
    if at < len(words) and words[at].value == '-':
        at += 1
    inner, names = _without_assignments(words[at:])
    return WrappedCommand(
        words=(inner,) if inner else (),
        is_transparent=bool(inner),
        is_program=not inner,
        assignments=names,
        problem=problem or _growing(words[1 : len(words) - len(inner)]),
    )


def _split(words: Sequence[Word]) -> tuple[Word, ...]:
    text = ' '.join(word.value for word in words[1:])
    text = re.sub(r'^.*?(?:-[i0v]*S|--split-string)[= ]?', '', text)
    inner, _ = _without_assignments([fixed(part) for part in text.split()])
    return inner


def _command(words: Sequence[Word]) -> WrappedCommand:
    if len(words) > 1 and words[1].value in ('-v', '-V'):
        return WrappedCommand(is_program=True)  # it says what it would run
    return _after_options(_WRAPPERS['command'], words)


def _eval(words: Sequence[Word]) -> WrappedCommand:
    if not all(word.is_fixed for word in words):
        return WrappedCommand(problem='`eval` is given code that is not known')
    operands = [word.value for word in words[1:]]
    if operands[:1] == ['--']:
        del operands[0]
    return WrappedCommand(scripts=(' '.join(operands),), is_transparent=True)


def _trap(words: Sequence[Word]) -> WrappedCommand:
    scripts = tuple(word.value for word in words[1:] if word.is_fixed and not word.value.startswith('-'))[:1]
    return WrappedCommand(scripts=scripts, problem='`trap` runs it later')


def _watch(words: Sequence[Word]) -> WrappedCommand:
    at, problem = _skip(_options('bcdegptxr', 'nq', long_valued='interval'), words)
    return WrappedCommand(
        scripts=(' '.join(word.value for word in words[at:]),), problem=problem or '`watch` runs it again'
    )


def _by_letter(letter: str, problem: str) -> Callable[[Sequence[Word]], WrappedCommand]:
    """Of a program that gives the value of one option to a shell."""

    def find(words: Sequence[Word]) -> WrappedCommand:
        scripts: list[str] = []
        for word, following in zip(words[1:], [*words[2:], None], strict=False):
            if re.fullmatch(rf'--?[a-z]*{letter}', word.value) and following is not None and following.is_fixed:
                scripts.append(following.value)
            elif word.value.startswith('--command='):
                scripts.append(word.value.partition('=')[2])
            elif word.value == '--command' and following is not None:
                scripts.append(following.value)
        return WrappedCommand(scripts=tuple(scripts), problem=problem)

    return find


_SSH: Final = _options('46AaCfGgKkMNnqsTtVvXxYy', 'BbcDEeFIiJLlmOopQRSWw')


def _remote(words: Sequence[Word]) -> WrappedCommand | None:
    at, _ = _skip(_SSH, words)
    if len(words) <= at + 1:
        return None
    # Attack: `ssh host -t rm x`. There are options behind the host as well.
    behind, _ = _skip(_SSH, words[at:])
    return WrappedCommand(
        scripts=(' '.join(word.value for word in words[at + behind :]),), problem='it runs on another machine'
    )


def _flock(words: Sequence[Word]) -> WrappedCommand:
    inside = _after_options(_WRAPPERS['flock'], words)
    given = inside.words[0] if inside.words else ()
    if len(given) > 1 and given[0].value in ('-c', '--command') and given[1].is_fixed:
        return WrappedCommand(scripts=(given[1].value,), problem=inside.problem or 'it is given to a shell')
    return inside


def _entr(words: Sequence[Word]) -> WrappedCommand:
    inside = _after_options(_WRAPPERS['entr'], words)
    script = next(iter(inside.words[0]), None) if inside.words else None
    if script is None or not any(re.fullmatch(r'-[a-z]*s[a-z]*', word.value) for word in words[1 : inside.own]):
        return inside
    problem = inside.problem or (None if script.is_fixed else _UNKNOWN_CODE)
    return WrappedCommand(scripts=(script.value,), problem=problem)


def _strings(options: _Options) -> Callable[[Sequence[Word]], WrappedCommand]:
    """Of a program that gives each of its operands to a shell; options may follow them."""

    def find(words: Sequence[Word]) -> WrappedCommand:
        scripts: list[Word] = []
        problem, rest = _growing(words[1:]), words
        while len(rest) > 1:
            at, more = _skip(options, rest)
            scripts += rest[at : at + 1]
            problem, rest = problem or more, rest[at:]
        if not all(script.is_fixed for script in scripts):
            problem = problem or _UNKNOWN_CODE
        problem = problem or next(filter(None, (reads_otherwise(script.value) for script in scripts)), None)
        return WrappedCommand(scripts=tuple(script.value for script in scripts), problem=problem)

    return find


_UNKNOWN_CODE: Final = 'a shell is given code that is not known'


def _parallel(words: Sequence[Word]) -> WrappedCommand:
    operands = [word for word in words[1:] if not word.value.startswith('-')]
    script = ' '.join(word.value for word in operands if not word.value.startswith(':::'))
    return WrappedCommand(scripts=(script,), problem='`parallel` makes commands of its input')


def _find(words: Sequence[Word]) -> WrappedCommand | None:
    inner: list[tuple[Word, ...]] = []
    at, changes_cwd = 1, False
    starts = list(itertools.takewhile(lambda word: not word.value.startswith(('-', '(', '!')), words[1:]))
    while at < len(words):
        changes_cwd = changes_cwd or words[at].value in ('-execdir', '-okdir')
        if words[at].value in ('-exec', '-execdir', '-ok', '-okdir'):
            end = at + 1
            while end < len(words) and words[end].value != ';' and not _ends_batch(words, end):
                end += 1
            inner.append(tuple(_found(word, starts) if '{}' in word.value else word for word in words[at + 1 : end]))
            at = end
        at += 1
    if not inner:
        return None
    found = tuple(each for each in inner if each)
    return WrappedCommand(
        words=found, is_program=True, changes_cwd=changes_cwd, problem=None if all(inner) else 'nothing to execute'
    )


def _found(word: Word, starts: Sequence[Word]) -> Word:
    """What `find` puts in the place of a word: it begins as the place does where the search starts."""
    # Attack: `find @x -exec pytest {} +`, where the options are read from a file `x`.
    is_plain = bool(starts) and all(each.is_fixed and re.match(r'[\w./]', each.value) for each in starts)
    is_path = word.value.startswith('{}') and is_plain
    return Word('{}', './' if is_path else '', is_fixed=False)


def _ends_batch(words: Sequence[Word], at: int) -> bool:
    return words[at].value == '+' and words[at - 1].value == '{}'


_SPECIAL: Final[dict[str, Callable[[Sequence[Word]], WrappedCommand | None]]] = {
    'command': _command, 'env': _env, 'eval': _eval, 'trap': _trap, 'watch': _watch, 'find': _find, 'ssh': _remote,
    'flock': _flock, 'parallel': _parallel, 'sem': _parallel, 'entr': _entr,
    'hyperfine': _strings(_options('i', 'wmMru', long='ignore-failure show-output',
                                   long_valued='warmup min-runs max-runs runs style sort time-unit')),
    **dict.fromkeys(('pee', 'mispipe', 'bench'), _strings(_options())),
    'concurrently': _strings(_options('kr', 'm', long='kill-others kill-others-on-fail raw',
        long_valued='max-processes')),
    'su': _by_letter('c', 'it runs as somebody else'), 'script': _by_letter('c', '`script` writes a file'),
    'nix-shell': _by_letter('run', 'it runs in another environment'),
    'capsh': _by_letter('c', 'it runs with other capabilities'), 'sg': _by_letter('c', 'it runs as another group'),
}  # fmt: skip
"""Wrappers that say in their own way what they run."""
