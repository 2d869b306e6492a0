"""Programs that run the command they are given, and how to find it among their own options."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Final

from .program_data import WRAPPERS, OptionSpec, Wrapper, option_spec
from .programs import program_name
from .scripts import WrappedCommand, reads_otherwise, run_by_shell
from .words import Word, fixed

_ANYTHING: Final = Word('', '', is_fixed=False)


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
    wrapper = WRAPPERS.get(name)
    return _after_options(wrapper, words) if wrapper is not None else None


def _after_options(wrapper: Wrapper, words: Sequence[Word]) -> WrappedCommand:
    at, problem = _skip(wrapper.spec, words)
    at += wrapper.operands
    problem = problem or _growing(words[1:at])
    inner = tuple(words[at:])
    if not inner:
        # `sudo -s`, `unshare`: with nothing to run, some start a shell.
        return WrappedCommand(
            is_program=True, problem=problem or (None if wrapper.is_transparent else 'it may start a shell')
        )
    if wrapper.appends:
        inner = (*_replaced(words[:at], inner), _ANYTHING)
    if words[0].value in ('sudo', 'doas', 'time'):
        # Attack: `time A=1 rm x`. To the shell's own `time`, it is a variable.
        inner, names = _without_assignments(inner)
        return WrappedCommand(words=(inner,), assignments=names, problem=problem, is_transparent=wrapper.is_transparent)
    return WrappedCommand(words=(inner,), is_transparent=wrapper.is_transparent, problem=problem, own=at)


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


def _skip(spec: OptionSpec, words: Sequence[Word]) -> tuple[int, str | None]:
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
        kind = spec.kind(text)
        if kind == 'attached' and not spec.attached_value(text):
            kind = spec.kind(text.partition('=')[0])  # `--preserve-env=PATH`
        if kind == 'unknown':
            problem = problem or f'the option `{text}` of a wrapper is not known'
        at += 2 if kind == 'takes' else 1
    return at, problem


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


_ENV: Final = option_spec(flags='i0v', valued='uC', long='ignore-environment null debug', long_valued='unset chdir')


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
    return _after_options(WRAPPERS['command'], words)


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
    at, problem = _skip(option_spec(flags='bcdegptxr', valued='nq', long_valued='interval'), words)
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


_SSH: Final = option_spec(flags='46AaCfGgKkMNnqsTtVvXxYy', valued='BbcDEeFIiJLlmOopQRSWw')


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
    inside = _after_options(WRAPPERS['flock'], words)
    given = inside.words[0] if inside.words else ()
    if len(given) > 1 and given[0].value in ('-c', '--command') and given[1].is_fixed:
        return WrappedCommand(scripts=(given[1].value,), problem=inside.problem or 'it is given to a shell')
    return inside


def _entr(words: Sequence[Word]) -> WrappedCommand:
    inside = _after_options(WRAPPERS['entr'], words)
    script = next(iter(inside.words[0]), None) if inside.words else None
    if script is None or not any(re.fullmatch(r'-[a-z]*s[a-z]*', word.value) for word in words[1 : inside.own]):
        return inside
    problem = inside.problem or (None if script.is_fixed else _UNKNOWN_CODE)
    return WrappedCommand(scripts=(script.value,), problem=problem)


def _strings(spec: OptionSpec) -> Callable[[Sequence[Word]], WrappedCommand]:
    """Of a program that gives each of its operands to a shell; options may follow them."""

    def find(words: Sequence[Word]) -> WrappedCommand:
        scripts: list[Word] = []
        problem, rest = _growing(words[1:]), words
        while len(rest) > 1:
            at, more = _skip(spec, rest)
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
    'hyperfine': _strings(option_spec(flags='i', valued='wmMru', long='ignore-failure show-output',
                                   long_valued='warmup min-runs max-runs runs style sort time-unit')),
    **dict.fromkeys(('pee', 'mispipe', 'bench'), _strings(OptionSpec())),
    'concurrently': _strings(option_spec(flags='kr', valued='m', long='kill-others kill-others-on-fail raw',
        long_valued='max-processes')),
    'su': _by_letter('c', 'it runs as somebody else'), 'script': _by_letter('c', '`script` writes a file'),
    'nix-shell': _by_letter('run', 'it runs in another environment'),
    'capsh': _by_letter('c', 'it runs with other capabilities'), 'sg': _by_letter('c', 'it runs as another group'),
}  # fmt: skip
"""Wrappers that say in their own way what they run."""
