"""Find the command that a wrapper such as `timeout` or `xargs` runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from .labels import LabelledCommand, command_end, label
from .names import program_name
from .scripts import UNKNOWN_CODE, WrappedCommand, is_shell, reads_otherwise, run_by_shell
from .words import SimpleCommand, Word

_ANYTHING: Final = Word('', '', is_fixed=False, growth='any')


def unwrap(words: Sequence[Word]) -> WrappedCommand | None:
    """Return the commands that a program runs, or `None` if the program is not a known wrapper."""
    if (shell := run_by_shell(program_name(words[0].value), words)) is not None:
        return shell
    found = label(words)
    if found.entry is None:
        return None
    special = _SPECIAL.get(found.entry.checker or '')
    return special(found) if special is not None else _labelled(found)


def _labelled(found: LabelledCommand) -> WrappedCommand | None:
    """Use the labels to find the command. It follows the wrapper's operands, or is in an operand or an option value."""
    scripts = [each for each in found.labels if each.holds in ('script', 'command')]
    at = found.command_at
    assigning = (each.word.value for each in found.labels if each.kind in ('assignment', 'unknown_word'))
    assignments = tuple(text.partition('=')[0] for text in assigning if '=' in text)
    if at is None and not scripts:
        # Attack: `time PATH=.; ls`, where the shell's own `time` sets the variable.
        return WrappedCommand(is_program=True, assignments=assignments) if assignments else None
    problem = None if all(each.word.is_fixed for each in scripts) else UNKNOWN_CODE
    problem = problem or next(filter(None, (reads_otherwise(each.value or '') for each in scripts)), None)
    if not found.flags.isdisjoint({'never', 'runs_input'}):
        problem = problem or 'the command runs later, elsewhere, or on other words than these'
    inner = found.words[at:] if at is not None else ()
    if inner and 'appends' in found.flags:
        inner = (*inner, _ANYTHING)
    return WrappedCommand(
        words=(inner,) if inner else (),
        scripts=tuple(each.value or '' for each in scripts),
        is_transparent='transparent' in found.flags,
        is_program='runs_files' in found.flags and not scripts,
        assignments=assignments,
        own=at,
        problem=problem,
    )


def _xargs(found: LabelledCommand) -> WrappedCommand | None:
    """Mark as unknown the words that `xargs -I` replaces."""
    inside = _labelled(found)
    replacing = (each for each in found.labels if not {'-I', '-i', '--replace'}.isdisjoint(each.options))
    marks = [each.value or ('{}' if each.word.is_fixed and not each.follows else '') for each in replacing]
    if inside is None or not inside.words or not marks:
        return inside
    # An empty or unknown mark may match anything.
    starts = [
        min((word.value.partition(mark)[0] if mark else '' for mark in marks), key=len) for word in inside.words[0]
    ]
    words = (
        word if start == word.value else Word(word.raw, start, is_fixed=False)
        for word, start in zip(inside.words[0], starts, strict=True)
    )
    return replace(inside, words=(tuple(words),))


_SPLIT: Final = re.compile(r'-S|--s(?:p[a-z-]*)?(?:=.*)?', re.DOTALL)
"""Names of the option of `env` that splits its value into a command."""


def _env(found: LabelledCommand) -> WrappedCommand | None:
    # `-S` splits its value by rules that differ from the shell's.
    splits = (at for at, each in enumerate(found.labels) if any(map(_SPLIT.fullmatch, each.options)))
    if (at := next(splits, None)) is None:
        return _with_path(_labelled(found), found)
    first, *more = found.labels[at:]
    value = first.word.value.partition('=')[2] if first.value is None else first.value
    texts = [*filter(None, [value]), *(each.word.value for each in more)]
    return WrappedCommand(scripts=(' '.join(texts),), problem='`env -S` runs its value as a command')


def _with_path(inside: WrappedCommand | None, found: LabelledCommand) -> WrappedCommand | None:
    """Count removing `PATH` as setting it, if a shell follows: without one, bash looks in the working directory, too.

    Attack: `env -i bash -c tree`, `env -u PATH bash -c tree`, where `./tree` exists.
    """
    given = {each.value if '-u' in each.options or '--unset' in each.options else None for each in found.labels}
    is_removed = 'PATH' in given or not found.options.isdisjoint({'-', '-i', '--ignore-environment'})
    if inside is None or not is_removed or not any(is_shell(word.value) for each in inside.words for word in each):
        return inside
    return replace(inside, assignments=(*inside.assignments, 'PATH'))


def _command(found: LabelledCommand) -> WrappedCommand | None:
    if len(found.words) > 1 and found.words[1].value in ('-v', '-V'):
        return None  # it prints what it would run
    return _labelled(found)


def _joined(found: LabelledCommand) -> WrappedCommand:
    """Return the command of a program that joins its operands with blanks and passes the text to a shell."""
    inside = _labelled(found) or WrappedCommand(is_program=True)
    commands = [each.word.value for each in found.labels if each.kind == 'command' or each.holds == 'script']
    problem = inside.problem or (None if all(word.is_fixed for word in found.words) else UNKNOWN_CODE)
    return replace(inside, words=(), scripts=(' '.join(commands),), problem=problem)


def _find(found: LabelledCommand) -> WrappedCommand | None:
    words, inner = found.words, list[tuple[Word, ...]]()
    starts = list(itertools.takewhile(lambda word: not word.value.startswith(('-', '(', '!')), words[1:]))
    for at, word in enumerate(words):
        if word.value in ('-exec', '-execdir', '-ok', '-okdir'):
            end = command_end(words, at + 1)
            is_batch = end < len(words) and words[end].value == '+'
            inner.append(tuple(_found(each, starts, is_batch=is_batch) for each in words[at + 1 : end]))
    if not inner:
        return None
    return WrappedCommand(
        words=tuple(each for each in inner if each),
        is_program=True,
        changes_cwd=any(word.value in ('-execdir', '-okdir') for word in words),
        problem=None if all(inner) else '`-exec` has no command',
    )


def _found(word: Word, starts: Sequence[Word], *, is_batch: bool) -> Word:
    """Return a word with `{}` replaced by a path, as `find` does. The path begins with one of the starting points."""
    if '{}' not in word.value:
        return word
    # Attack: `find @x -exec pytest {} +`, where pytest reads options from a file `x`.
    is_plain = bool(starts) and all(each.is_fixed and re.match(r'[\w./]', each.value) for each in starts)
    is_path = word.value.startswith('{}') and is_plain
    return Word('{}', './' if is_path else '', is_fixed=False, growth='alike' if is_batch else 'none')


_SPECIAL: Final[dict[str, Callable[[LabelledCommand], WrappedCommand | None]]] = {
    'command': _command,
    'env': _env,
    'joined': _joined,
    'find': _find,
    'xargs': _xargs,
}
"""Functions by checker name. A function finds the wrapped command if the labels are not sufficient."""


_CWD_CHANGES: Final = frozenset({'cd', 'pushd', 'popd'})
_CWD_CHANGE_IN_CODE: Final = re.compile(r"\b(?:cd|pushd|popd)\b|\$'")
_QUOTING: Final = re.compile(r"""\\\n|[\\"]|(?<!\$)\'""")


def changes_cwd(command: SimpleCommand, cwd: str) -> bool:
    """Return whether a command may change the working directory. Examples: `cd x`, `command cd x` and `eval 'cd x'`.

    Args:
        command: The command.
        cwd: Absolute path of the working directory. A `cd` to this directory changes nothing.
    """
    words = command.words
    if not words or not words[0].is_fixed or not words[0].value:
        return False
    if program_name(words[0].value) in _CWD_CHANGES:
        return not _stays(words, cwd)
    # Attack: `command c\\d x`, `eval 'c\\d x'`, where the words or the code are quoted.
    texts = [_QUOTING.sub('', text) for text in (command.raw, *(word.value for word in words))]
    return unwrap(words) is not None and any(map(_CWD_CHANGE_IN_CODE.search, texts))


def _stays(words: Sequence[Word], cwd: str) -> bool:
    if len(words) != 2 or words[0].value != 'cd' or not words[1].is_fixed:
        return False
    path = words[1].value
    return path in ('.', './') or (path.startswith('/') and path.rstrip('/') == cwd.rstrip('/'))
