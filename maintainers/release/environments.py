"""Run commands, find the Pythons of this machine, and create clean environments with them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORTED = ('3.11', '3.12', '3.13', '3.14')
"""Python versions in the classifiers of both distributions."""


class CommandError(Exception):
    """A command failed. The message has the command and its output."""


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command, and return its output.

    Raises:
        CommandError: The exit code is not 0.
    """
    # uv has its own certificate authorities, which do not include that of a company or a mirror.
    variables = {**os.environ, 'UV_NATIVE_TLS': '1', 'NO_COLOR': '1', **environment}
    words = [str(word) for word in command]
    finished = subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise CommandError(f'{" ".join(words)}\n{finished.stdout}{finished.stderr}')
    return finished.stdout


def find_python(version: str) -> Path | None:
    """Return a working interpreter of `3.x`: this one, one on `PATH`, or one of pyenv."""
    if version == f'{sys.version_info.major}.{sys.version_info.minor}':
        return Path(sys.executable)
    pyenv = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv'))
    candidates = [shutil.which(f'python{version}'), *sorted(pyenv.glob(f'versions/{version}.*/bin/python'))]
    for candidate in candidates:
        if candidate is not None and _version_of(Path(candidate)) == version:
            return Path(candidate)
    return None


def _version_of(python: Path) -> str | None:
    # pyenv has shims for versions that are not active, which fail.
    try:
        return run(python, '-c', 'import sys; print("%d.%d" % sys.version_info[:2])').strip()
    except (CommandError, OSError):
        return None


def create(folder: Path, python: Path, *requirements: str, options: tuple[object, ...] = ()) -> Path:
    """Create an environment with only these requirements, and return its interpreter.

    Raises:
        CommandError: The requirements have no solution, or cannot be downloaded.
    """
    run(sys.executable, '-m', 'uv', 'venv', '--quiet', '--python', python, folder)
    interpreter = folder / 'bin' / 'python'
    command = (sys.executable, '-m', 'uv', 'pip', 'install', '--quiet', '--python', interpreter)
    run(*command, *options, *requirements)
    return interpreter


if __name__ == '__main__':
    print(find_python(sys.argv[1]) or 'self')
