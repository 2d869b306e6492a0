"""Import, test and type-check the patched tree, which comes before the installed release on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .patch import PATCHED
from .release import FOLDER

ROOT = Path(__file__).parents[2]
TESTS = 'tests/loop'
TYPED = Path(__file__).parent / 'typed'
"""Code that uses the keyword everywhere, with the errors that a type checker must find."""


def environment(tree: Path) -> dict[str, str]:
    """Return variables with which `pydantic_ai` is the patched package, and the tests know it."""
    path = [str(tree / FOLDER), *filter(None, [os.environ.get('PYTHONPATH')])]
    return {**os.environ, 'PYTHONPATH': os.pathsep.join(path), 'DEFERRED_HOST': 'patched'}


def check_import(tree: Path) -> None:
    """Import the patched package in a separate process.

    Raises:
        subprocess.CalledProcessError: It cannot be imported, or another one is.
    """
    program = (
        'import sys, pydantic_ai, pydantic_ai.durable_exec, inspect\n'
        'assert pydantic_ai.__file__.startswith(sys.argv[1]), pydantic_ai.__file__\n'
        "assert 'deferred_tool_handler' in inspect.signature(pydantic_ai.Agent.run).parameters\n"
    )
    command = [sys.executable, '-c', program, str(tree.resolve())]
    subprocess.run(command, env=environment(tree.resolve()), capture_output=True, check=True)


def run_tests(arguments: Sequence[str]) -> int:
    """Run the loop's tests on the patched tree, without those for features of our package alone.

    Returns:
        The exit code of pytest.
    """
    selected = [sys.executable, '-m', 'pytest', TESTS, '-m', 'not layer_only and not slow', *arguments]
    return subprocess.run(selected, cwd=ROOT, env=environment(PATCHED), check=False).returncode


def typecheck() -> int:
    """Check the types of the patched signatures in strict mode.

    Returns:
        The exit code of pyright.
    """
    command = [sys.executable, '-m', 'pyright', '--project', str(TYPED)]
    return subprocess.run(command, cwd=ROOT, env=environment(PATCHED), check=False).returncode
