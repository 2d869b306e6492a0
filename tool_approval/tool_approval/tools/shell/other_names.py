"""Commands in other commands' words: modules, what a runner runs, and what runs what it is fed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .checks import INTERPRETERS
from .hits import Hit
from .options import find_hit, known_name
from .programs import guarded_name
from .runners import runner_words
from .shells import SHELLS
from .words import Word, fixed

_FED: Final = frozenset(
    {
        'sqlite', 'psql', 'mysql', 'mariadb', 'duckdb', 'gdb', 'lldb', 'sftp', 'gnuplot', 'octave', 'maxima', 'irb',
        'ghci', 'mongosh', 'vim', 'vi', 'ex', 'view', 'nvim', 'rvim', 'vimdiff', 'ssh', 'mosh', 'rsh',
    }
)  # fmt: skip
"""Programs that read commands, some of which run others, from standard input."""
_NO_PROGRAMS: Final = frozenset({'test', '[', '[[', 'read', 'set', 'printf', 'cd', 'command', 'type', 'exit'})
"""Builtins of the shell, which no runner runs: `hatch run test` runs a script of that name."""


def runs_what_it_is_fed(program: Word) -> bool:
    """Also of what a runner runs: `docker exec -i c sh`."""
    return known_name(program.value) in _FED or guarded_name(program.value) in SHELLS


def find_hit_within(words: Sequence[Word], *, named: int) -> Hit | None:
    """Also of the program that a rule names behind a runner. Attack: `poetry run pytest -p evil`."""
    hit = find_hit(words, named=named)
    runner = runner_words(words)
    begins = range(runner, min(named, len(words))) if runner > 0 else ()
    programs = [at for at in begins if not words[at].value.startswith('-') and words[at].value not in _NO_PROGRAMS]
    for each in (*other_names(words), *(words[at:] for at in programs)):
        hit = hit or find_hit_within(each, named=max(1, named - len(words) + len(each)))
    return hit


def code_within(words: Sequence[Word], *, named: int) -> Hit | None:
    """Code for an interpreter or a shell behind a program that may run it.

    Attack: `npm x -- perl -e ...`, `ssh-agent bash -c ...`, where what is not listed runs unasked.
    """
    if guarded_name(words[0].value) in _MANAGERS and words[1:] and words[1].value in _OF_PACKAGES:
        return None  # names of packages: `conda install python -c conda-forge`
    for at in range(named, len(words) - 1):
        name = guarded_name(words[at].value)
        if name in SHELLS and any(_INLINE.fullmatch(word.value) for word in words[at + 1 :]):
            return Hit(words[at].raw, 'it may run code in a shell')
        if name in INTERPRETERS and words[at + 1].value.startswith('-'):
            # With a file behind it, so that `apt list python3 -a` is not one that reads its standard input.
            hit = find_hit([*words[at:], fixed('file')])
            if hit is not None:
                return hit
    return None


_MANAGERS: Final = frozenset(
    {
        'conda', 'mamba', 'micromamba', 'apt', 'apt-get', 'apt-cache', 'dnf', 'yum', 'apk', 'pacman', 'zypper', 'brew', 'port',
        'choco', 'scoop', 'winget', 'snap', 'flatpak', 'nix-env', 'pip', 'npm', 'pnpm', 'yarn', 'cargo', 'gem', 'docker', 'podman',
    }
)  # fmt: skip
_OF_PACKAGES: Final = frozenset(
    {
        'install',
        'add',
        'remove',
        'uninstall',
        'update',
        'upgrade',
        'search',
        'info',
        'show',
        'list',
        'view',
        'pull',
    }
)
_INLINE: Final = re.compile(r'-[A-Za-z]*c[A-Za-z]*')


def other_names(words: Sequence[Word]) -> list[Sequence[Word]]:
    """The commands that a command is by another name."""
    found = (_module(words), _git_command(words), _pip(words), _same_program(words))
    return [each for each in found if each is not None]


def _pip(words: Sequence[Word]) -> Sequence[Word] | None:
    """`pip uninstall x` of `pipx runpip a uninstall x`."""
    texts = [word.value for word in words]
    if guarded_name(texts[0]) != 'pipx' or 'runpip' not in texts:
        return None
    return [fixed('pip'), *words[texts.index('runpip') + 2 :]]


def _same_program(words: Sequence[Word]) -> Sequence[Word] | None:
    """`apt remove x` of `apt-get remove x`."""
    same = _SAME.get(guarded_name(words[0].value))
    return None if same is None else [fixed(same), *words[1:]]


_SAME: Final = {
    'apt-get': 'apt',
    'aptitude': 'apt',
    'yum': 'dnf',
    'tofu': 'terraform',
    'gmake': 'make',
    'nodejs': 'node',
}
"""Programs that take the sub-commands of another."""


def _git_command(words: Sequence[Word]) -> Sequence[Word] | None:
    """`git push x` of `/usr/lib/git-core/git-push x`."""
    found = re.fullmatch(r'git-([a-z-]+)', guarded_name(words[0].value))
    return None if found is None else [fixed('git'), fixed(found[1]), *words[1:]]


def _module(words: Sequence[Word]) -> Sequence[Word] | None:
    """`pip uninstall x` of `python -m pip uninstall x`, and of `coverage run -m pip uninstall x`."""
    name = guarded_name(words[0].value)
    if name not in ('python', 'pypy', 'py') and not (name == 'coverage' and any(word.value == 'run' for word in words)):
        return None
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch('-[A-Za-z]*m', word.value) and at + 1 < len(words):
            return words[at + 1 :]
        if (found := re.fullmatch(r'-[A-Za-z]*m(\w[\w.]*)', word.value)) is not None:
            return [fixed(found[1]), *words[at + 1 :]]
    return None
