"""Build a virtual environment for each peer, and keep it until its installations change."""

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
"""Function that runs a command in the folder of the repository, and raises `InstallError` if it fails."""


class InstallError(Exception):
    """An environment could not be built."""


def execute(command: list[str]) -> None:
    """Run a command without output.

    Raises:
        InstallError: The command failed. The message is the last line of its errors.
    """
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.strip()]
        raise InstallError(errors[-1] if errors else f'exit status {done.returncode}')


def python_of(environment: Environment, *, folder: Path = ENVIRONMENTS, execute: Execute = execute) -> Path:
    """Return the interpreter of an environment, building the environment if it does not exist or is outdated.

    Args:
        environment: The environment.
        folder: The folder of all environments.
        execute: Runs the commands.

    Raises:
        InstallError: The environment could not be built. An unfinished one is removed.
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
        # An editable install follows our code, but not the dependencies in its project file.
        paths = (REPOSITORY / each.split('[')[0] for each in arguments if each.startswith('./'))
        lines += [(path / 'pyproject.toml').read_text(encoding='utf-8') for path in paths]
    return '\n'.join(lines)
