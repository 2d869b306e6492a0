"""Recognise programs and sub-commands by all of their names and paths."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from .words import Word, fixed

TRUSTED_PLACES: Final = ('/usr/bin/', '/bin/', '/usr/sbin/', '/sbin/', '/usr/local/bin/')
"""Folders of system programs. Only a privileged user can put programs into these folders."""
_DATA: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name('names.toml').read_text(encoding='utf-8'))
_SET: Final[dict[str, frozenset[str]]] = {name: frozenset(words.split()) for name, words in _DATA['sets'].items()}
_SAME: Final[dict[str, dict[str, str]]] = {
    program: {name: others for name, others in same.items() if name != 'programs'}
    for first, same in _DATA['same'].items()
    for program in (first, *same.get('programs', '').split())
}
"""Synonyms of sub-commands, by program."""
_SAME_PROGRAM: Final = {other: name for name, others in _DATA['programs'].items() for other in others.split()}
MANY_TARGETS: Final = _SET['many_targets']
"""Programs that accept several targets, such as `make`."""
POWERFUL: Final = _SET['powerful']
"""Programs without an entry that write files, run code, change the system or reach other machines."""
RUN_PROJECTS: Final = _SET['run_projects']
"""Programs without an entry that run files of the project, such as tests and build files."""
_RUNS: Final[dict[str, frozenset[str]]] = {name: frozenset(words.split()) for name, words in _DATA['runs'].items()}
_MOST_RUN: Final = 12
"""Maximum number of places where the command of a program without an entry is searched."""
_GIT_HARMLESS: Final = _SET['git_harmless']
GLOBAL_OPTIONS: Final = {'git': (_SET['git_valued'], _SET['git_flags'] | _SET['git_harmless'])}
"""Options before the sub-command, by program: those with a value in the next word, and those without a value."""
_VERSION: Final = re.compile(r'(?<=[a-z])-?\d+(?:\.\d+)*$')
_MAIN: Final = re.compile(r'(?<=[\w-])(?:/__main__\.pyc?|\.__main__)$')
_SUFFIX: Final = re.compile(r'\.(?:exe|cmd|bat|com)$')


def program_name(text: str) -> str:
    """Return the last part of a program's path. Rules that block or require approval apply to this name in every
    folder.
    """
    return text.rstrip('/').rsplit('/', 1)[-1]


def trusted_name(text: str) -> str | None:
    """Return the name to compare with rules that allow a program; `None` for a path outside of system folders."""
    if '/' not in text:
        return text
    for place in TRUSTED_PLACES:
        rest = text.removeprefix(place)
        if rest != text and '/' not in rest:
            return rest
    return None


# chosen: the programs of a line, which are compared with each rule.
@lru_cache(maxsize=128)
def guarded_name(text: str) -> str:
    """Return the name to compare with rules that block commands or require approval: `rm` for `/bin/RM` or `rm.exe`."""
    # Attack: `python -m pip.__main__`, and `python /usr/lib/python3/dist-packages/pip/__main__.py`.
    whole = _MAIN.sub('', text.casefold())
    name = _SUFFIX.sub('', program_name(whole))
    return _VERSION.sub('', name)


def sub_command_at(words: Sequence[Word]) -> int:
    """Return the index of the first word after `git` and its harmless flags, or the number of words if none follows."""
    others = (at for at, each in enumerate(words) if at and not (each.is_fixed and each.value in _GIT_HARMLESS))
    return next(others, len(words))


def named_words(words: Sequence[Word], pattern: Sequence[str]) -> int:
    """Return how many words match a rule that allows commands. Harmless flags of git are counted as well."""
    is_shifted = trusted_name(words[0].value) == 'git' and [word.value for word in words[: len(pattern)]] != [
        words[0].value, *pattern[1:]
    ]  # fmt: skip
    return len(pattern) + (sub_command_at(words) - 1 if is_shifted else 0)


def commands_behind(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Return what a program without an entry may run: `twine upload` in `uv run --with a twine upload`.

    Which of its options have a value is unknown, so there can be several such commands.
    """
    name, texts = guarded_name(words[0].value), [word.value for word in words]
    own = _RUNS.get(name, frozenset())
    starts = [0] if name in _RUNS and not own else [at for at, text in enumerate(texts) if text in own | _RUNS['*']]
    # Attack: `poetry -C run run rm x`, where the first `run` is a folder.
    first = next((number for number, at in enumerate(starts) if not texts[at - 1].startswith('-')), len(starts))
    found = sorted({at for start in starts[: min(first + 1, _MOST_RUN)] for at in _operands_behind(name, texts, start)})
    return [words[at:] for at in found[:_MOST_RUN]]


def _operands_behind(name: str, texts: Sequence[str], start: int) -> list[int]:
    """Return the places of words that may be the command behind a word such as `run`."""
    operands = [at for at in range(start + 1, len(texts)) if not texts[at].startswith('-')]
    if name in _SET['containers']:
        return [at for at in operands if at != operands[0] or texts[at - 1] == '--']
    # The first operand without an option in front is the command. Before it are options and their values.
    last = next(
        (at for at in operands if at == start + 1 or not texts[at - 1].startswith('-') or texts[at - 1] == '--'),
        len(texts),
    )
    return [at for at in operands if at <= last]


def alternatives(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return all patterns with the same meaning, the given pattern first.

    For example, a rule that blocks `npm publish` also matches `npm publ`, and a rule that blocks `git push` also
    matches `git subtree push`.

    Args:
        words: The pattern. Its first word is the name of the program, as returned by `guarded_name`.
    """
    forms = [words]
    if len(words) > 1 and not words[1].startswith('-'):
        forms += _spelled(words)
        forms += [longer for each in _spelled(words) for longer in _longer(each)]
    return tuple(dict.fromkeys(forms))


def option_names(program: str, name: str) -> list[str]:
    """Return all names of an option: `-r`, `-R` and `--recursive` for the `-r` of `rm`."""
    return next((names.split() for names in _DATA['options'].get(program, ()) if name in names.split()), [name])


def _longer(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    name = 'docker' if words[0] == 'podman' else words[0]
    for text in _DATA['longer'].get(f'{name} {words[1]}', ()):
        yield (words[0], *text.split(), *words[2:])
    for group, sub_commands in _DATA['docker'].items() if name == 'docker' else ():
        if words[1] in sub_commands.split():
            yield (words[0], group, *words[1:])


def _spelled(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    program = words[0]
    choices = [
        spellings(program, word) if at == 1 or (at == 2 and program in _SET['shortened_twice']) else (word,)
        for at, word in enumerate(words[1:], start=1)
    ]
    for rest in itertools.product(*choices):
        yield (program, *rest)


def spellings(program: str, word: str) -> tuple[str, ...]:
    """Return the synonyms of a sub-command, and its abbreviations if the program accepts abbreviations."""
    if word.startswith('-'):
        return (word,)
    same = _SAME.get(program, {})
    names = {
        word,
        *next((f'{name} {others}'.split() for name, others in same.items() if word in (name, *others.split())), ()),
    }
    if program not in _SET['shortened']:
        return tuple(sorted(names, key=lambda name: (name != word, name)))
    # npm reads `runScript` as `run-script`.
    names |= {re.sub(r'-([a-z])', lambda found: found[1].upper(), name) for name in names}
    taken = {name for each, others in same.items() for name in (each, *others.split())} - names
    short = {name[:end] for name in names for end in range(1, len(name) + 1)} - taken
    return tuple(sorted(short | names, key=lambda name: (name != word, name)))


def other_names(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Return equivalent commands that use other names."""
    found = (_module(words), _git_command(words), _pip(words), _same_program(words))
    return [each for each in found if each is not None]


def _pip(words: Sequence[Word]) -> Sequence[Word] | None:
    """Return `pip uninstall x` for `pipx runpip a uninstall x`."""
    texts = [word.value for word in words]
    if guarded_name(texts[0]) != 'pipx' or 'runpip' not in texts:
        return None
    return [fixed('pip'), *words[texts.index('runpip') + 2 :]]


def _same_program(words: Sequence[Word]) -> Sequence[Word] | None:
    """Return the command with the main name of the program, such as `apt remove x` for `apt-get remove x`."""
    name = guarded_name(words[0].value)
    return [fixed(_SAME_PROGRAM[name]), *words[1:]] if name in _SAME_PROGRAM else None


def same_program(name: str) -> str:
    """Return the main name of a program: `apt` for `apt-get`, and the name itself if it has no other."""
    return _SAME_PROGRAM.get(name, name)


def _git_command(words: Sequence[Word]) -> Sequence[Word] | None:
    """Return `git push x` for `/usr/lib/git-core/git-push x`."""
    found = re.fullmatch(r'git-([a-z-]+)', guarded_name(words[0].value))
    return None if found is None else [fixed('git'), fixed(found[1]), *words[1:]]


def _module(words: Sequence[Word]) -> Sequence[Word] | None:
    """Return `pip uninstall x` for `python -m pip uninstall x` and `coverage run -m pip uninstall x`."""
    name = guarded_name(words[0].value)
    if name not in ('python', 'pypy', 'py') and not (name == 'coverage' and any(word.value == 'run' for word in words)):
        return None
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch('-[A-Za-z]*m', word.value) and at + 1 < len(words):
            return words[at + 1 :]
        if (found := re.fullmatch(r'-[A-Za-z]*m(\w[\w.]*)', word.value)) is not None:
            return [fixed(found[1]), *words[at + 1 :]]
    return None
