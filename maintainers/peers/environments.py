"""Builds the environments: one virtual environment for each peer, kept until what is installed in it changes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from .catalog import Environment

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENTS = REPOSITORY / '.hatch' / 'peers'

Execute: TypeAlias = Callable[[list[str]], None]
"""Runs a command in the repository's folder; raises `InstallError` where it fails."""


class InstallError(Exception):
    """An environment could not be built."""


def execute(command: list[str]) -> None:
    """Run a command quietly.

    Raises:
        InstallError: It failed; the message is the end of what it said.
    """
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.strip()]
        raise InstallError(errors[-1] if errors else f'exit status {done.returncode}')


def python_of(environment: Environment, *, folder: Path = ENVIRONMENTS, execute: Execute = execute) -> Path:
    """The interpreter of an environment, which is built first if it is not there or holds something else.

    Args:
        environment: Which.
        folder: Where environments are kept.
        execute: Runs the commands.

    Raises:
        InstallError: It could not be built. What was begun is removed.
    """
    home = folder / environment.name
    python = home / 'bin' / 'python'
    holds = home / 'installed'
    wanted = _fingerprint(environment)
    if holds.exists() and holds.read_text(encoding='utf-8') == wanted:
        return python
    shutil.rmtree(home, ignore_errors=True)
    try:
        execute([sys.executable, '-m', 'venv', str(home)])
        for arguments in environment.installs:
            execute([str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', *arguments])
    except InstallError:
        shutil.rmtree(home, ignore_errors=True)
        raise
    holds.write_text(wanted, encoding='utf-8')
    return python


def _fingerprint(environment: Environment) -> str:
    lines = [sys.version, *(' '.join(arguments) for arguments in environment.installs)]
    for arguments in environment.installs:
        # An editable install follows our code, but not what its project file asks for.
        paths = (REPOSITORY / each.split('[')[0] for each in arguments if each.startswith('./'))
        lines += [(path / 'pyproject.toml').read_text(encoding='utf-8') for path in paths]
    return '\n'.join(lines)
