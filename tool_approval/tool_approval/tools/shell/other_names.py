"""Find commands in the words of other commands: modules, what a runner runs, and what runs what it is fed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .checks import INTERPRETERS
from .options import find_unsafe, known_name
from .programs import alternatives, guarded_name
from .scripts import SHELLS
from .words import UnsafeArgument, Word, fixed

_LISTED: Final = """
    npx, bunx, uvx, pipx run, uv run, uv tool run, poetry run, pdm run, pipenv run, hatch run, rye run, bundle exec,
    npm exec, npm x, pnpm exec, pnpm dlx, yarn exec, yarn dlx, bun x, conda run, mamba run, docker run, docker exec,
    podman run, podman exec, docker compose run, docker compose exec, kubectl exec, kubectl run, kubectl debug, go
    run, deno run, dotnet run, swift run, mise exec, mise x, asdf exec, rbenv exec, pyenv exec, nvm exec, direnv
    exec, op run, dotenv, dotenvx run, nox, nix run, nix develop, nix shell, guix shell, vagrant ssh, gcloud compute
    ssh, heroku run, fly ssh, flatpak run, snap run, jexec, lxc exec, machinectl shell, git submodule foreach, git
    bisect run, git for-each-repo, npm init, pnpm init, yarn init, bun init, pnpm create, yarn create, bun create,
    npm explore, yarn node, pnpm node, tox exec, pixi run, devbox run, rustup run, dotnet exec, ip netns exec, ip
    vrf exec, docker-compose run, docker-compose exec, podman-compose run, podman-compose exec, nerdctl run, nerdctl
    exec, crictl exec, apptainer exec, singularity exec, toolbox run, distrobox enter, limactl shell, multipass
    exec, pct exec, ddev exec, devcontainer exec, mirrord exec, doppler run, infisical run, railway run, foreman
    run, sops exec-env, sops exec-file, aws-vault exec, chamber exec, envchain, stack exec, cabal exec, opam exec,
    lerna exec, jj bisect run, pueue add, rr record, uftrace record, gum spin, cargo watch, switcherooctl launch
"""
_RUNNERS: Final = frozenset(form for name in _LISTED.split(',') for form in alternatives(tuple(name.split())))


def runner_words(words: Sequence[Word]) -> int:
    """How many words of a command are the runner's own; 0 if it is none. A rule for `uv run` covers nothing behind it.

    Attack: `npm ex`, and `npm --silent exec`. Options in front may take the next word, or not: each word behind them is
    looked at.
    """
    program = guarded_name(words[0].value)
    texts = [word.value for word in words]
    starts = range(1, len(texts)) if texts[1:2] and texts[1].startswith('-') else (1,)
    for at in starts:
        for count in (2, 1):
            if (program, *texts[at : at + count]) in _RUNNERS and len(texts) > at + count:
                return at + count
    return 1 if (program,) in _RUNNERS and len(texts) > 1 else 0


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


def find_unsafe_within(words: Sequence[Word], *, named: int) -> UnsafeArgument | None:
    """Also of the program that a rule names behind a runner. Attack: `poetry run pytest -p evil`."""
    hit = find_unsafe(words, named=named)
    runner = runner_words(words)
    begins = range(runner, min(named, len(words))) if runner > 0 else ()
    programs = [at for at in begins if not words[at].value.startswith('-') and words[at].value not in _NO_PROGRAMS]
    for each in (*other_names(words), *(words[at:] for at in programs)):
        hit = hit or find_unsafe_within(each, named=max(1, named - len(words) + len(each)))
    return hit


def code_within(words: Sequence[Word], *, named: int) -> UnsafeArgument | None:
    """Code for an interpreter or a shell behind a program that may run it.

    Attack: `npm x -- perl -e ...`, `ssh-agent bash -c ...`, where what is not listed runs unasked.
    """
    if guarded_name(words[0].value) in _MANAGERS and words[1:] and words[1].value in _OF_PACKAGES:
        return None  # names of packages: `conda install python -c conda-forge`
    for at in range(named, len(words) - 1):
        name = guarded_name(words[at].value)
        if name in SHELLS and any(_INLINE.fullmatch(word.value) for word in words[at + 1 :]):
            return UnsafeArgument(words[at].raw, 'it may run code in a shell')
        if name in INTERPRETERS and words[at + 1].value.startswith('-'):
            # With a file behind it, so that `apt list python3 -a` is not one that reads its standard input.
            hit = find_unsafe([*words[at:], fixed('file')])
            if hit is not None:
                return hit
    return None


_MANAGERS: Final = frozenset(
    {
        'conda', 'mamba', 'micromamba', 'apt', 'apt-get', 'apt-cache', 'dnf', 'yum', 'apk', 'pacman', 'zypper', 'brew',
        'port',
        'choco', 'scoop', 'winget', 'snap', 'flatpak', 'nix-env', 'pip', 'npm', 'pnpm', 'yarn', 'cargo', 'gem',
        'docker', 'podman',
    }
)  # fmt: skip
_OF_PACKAGES: Final = frozenset(
    {
        'install', 'add', 'remove', 'uninstall', 'update', 'upgrade', 'search', 'info', 'show', 'list', 'view', 'pull',
    }
)  # fmt: skip
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
