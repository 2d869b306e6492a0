"""Apply the commits for Pydantic AI to a release, and test and type-check the patched tree."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from .release import FOLDER, NAME, NoRelease, Unknown, download, newest_version, unpack_installed, unpack_wheel

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATCHED = ROOT / 'build' / 'patched'
"""Tree of the release with the commits applied."""
COMMITS = tuple(sorted(HERE.glob('000[12]-*.patch')))
"""The commits that change what a release contains. The third one changes `docs/`, which no release contains."""
PROPOSAL = Path('tests/loop/test_proposal.py')
"""Tests of the proposal through public names, which run on this project's `Agent` as well."""
IMPORT = """\
import inspect, sys, pydantic_ai, pydantic_ai.durable_exec
assert pydantic_ai.__file__.startswith(sys.argv[1]), pydantic_ai.__file__
assert 'deferred_tool_handler' in inspect.signature(pydantic_ai.Agent.run).parameters, 'no deferred_tool_handler'
"""


class Moved(Exception):
    """A commit does not apply. The message is that of git, which names the files."""


def main(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name.

    Returns:
        0 if it went well, 1 if the patches or what was checked are at fault, 2 if the newest release is not known.
    """
    parser = argparse.ArgumentParser(prog='python -m maintainers.upstream', description=__doc__)
    parser.add_argument('command', nargs='?', choices=('apply', 'test', 'typecheck', 'newest'), default='apply')
    given, options = parser.parse_known_args(arguments)
    try:
        if given.command == 'newest':
            return newest()
        with alone():
            apply_to_installed()
            match given.command:
                case 'test':
                    return run_tests(options)
                case 'typecheck':
                    return typecheck()
                case _:
                    return 0
    except (Moved, NoRelease) as error:
        print(error, file=sys.stderr)
        return 1
    except Unknown as error:
        print(error, file=sys.stderr)
        return 2


@contextlib.contextmanager
def alone() -> Generator[None]:
    """Wait until no other process makes or uses the patched tree."""
    PATCHED.parent.mkdir(parents=True, exist_ok=True)
    with PATCHED.with_suffix('.lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def apply_to_installed() -> None:
    """Make the patched tree anew, and import it.

    Raises:
        Moved: A commit does not apply; there is no patched tree then.
        NoRelease: The files of the installed release are not known.
    """
    shutil.rmtree(PATCHED, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=PATCHED.parent) as folder:
        tree = Path(folder, 'tree')
        version = unpack_installed(tree)
        commit(tree, version)
        apply(tree)
        tree.rename(PATCHED)
    check_import(PATCHED)
    print(f'{len(COMMITS)} commits apply to {NAME} {version}, and {os.path.relpath(PATCHED)} imports')


def newest() -> int:
    """Apply the commits to the newest published release, in a temporary folder.

    Returns:
        0 if they apply or the installed release is the newest, 1 if not.
    """
    published = newest_version()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, 'tree')
        here = unpack_installed(tree)
        if published == here:
            print(f'{NAME} {here} is the newest release.')
            return 0
        # git merges what has moved if it knows the files that the commits were made from.
        commit(tree, here)
        shutil.rmtree(tree / FOLDER)
        unpack_wheel(download(published, Path(folder)), tree)
        commit(tree, published)
        print(f'{NAME} {published} is out; the commits are made for {here}.')
        apply(tree)
        check_import(tree)
    print(f'The commits apply to {published} too. Raise the pinned release to test them there.')
    return 0


def commit(tree: Path, version: str) -> None:
    """Record the tree, so that the commits can be applied to it."""
    _git(tree, 'init', '--quiet')
    _git(tree, 'add', '--all', '--force')
    _git(tree, 'commit', '--quiet', '--message', version)


def apply(tree: Path) -> None:
    """Apply the commits, as a maintainer of Pydantic AI would.

    Raises:
        Moved: One does not apply.
    """
    done = _git(tree, 'am', '--3way', *map(str, COMMITS), check=False)
    if done.returncode:
        raise Moved(f'The commits do not apply:\n{done.stdout}{done.stderr}')


def check_import(tree: Path) -> None:
    """Import the patched package in a process of its own.

    Raises:
        Moved: It cannot be imported, or has no `deferred_tool_handler`.
    """
    command = [sys.executable, '-c', IMPORT, str(tree.resolve())]
    done = subprocess.run(command, env=environment(tree.resolve()), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Moved(f'The patched package cannot be used:\n{done.stderr}')


def environment(tree: Path) -> dict[str, str]:
    """Return variables with which `pydantic_ai` is the patched package, and the tests of the loop know it."""
    path = [str(tree / FOLDER), *filter(None, [os.environ.get('PYTHONPATH')])]
    return {**os.environ, 'PYTHONPATH': os.pathsep.join(path), 'DEFERRED_HOST': 'patched'}


def run_tests(options: Sequence[str]) -> int:
    """Run the commits' own tests, and those of the proposal, on the patched tree; `options` are for pytest."""
    pytest = [sys.executable, '-m', 'pytest', *options]
    # As in their repository: without this project's settings, and on asyncio alone.
    alone = ['-c', os.devnull, '--rootdir', str(PATCHED), '--confcutdir', str(PATCHED), '-p', 'no:cacheprovider']
    runs = [[*pytest, *alone, '-p', 'no:langsmith_plugin', '-k', 'not trio', str(PATCHED / 'tests')]]
    if (ROOT / PROPOSAL).exists():
        runs.append([*pytest, str(PROPOSAL)])
    return max(subprocess.run(run, cwd=ROOT, env=environment(PATCHED), check=False).returncode for run in runs)


def typecheck() -> int:
    """Check the types of `typed/uses.py` against the patched signatures in strict mode."""
    command = [sys.executable, '-m', 'pyright', '--project', str(HERE / 'typed')]
    return subprocess.run(command, cwd=ROOT, env=environment(PATCHED), check=False).returncode


def _git(tree: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    # Neither a repository around the tree nor the user's configuration may have an influence.
    around = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}
    configuration = {'GIT_CONFIG_GLOBAL': os.devnull, 'GIT_CONFIG_SYSTEM': os.devnull}
    identity = ['-c', 'user.name=maintainers', '-c', 'user.email=noreply@example.com']
    command = ['git', *identity, *arguments]
    return subprocess.run(
        command, cwd=tree, env={**around, **configuration}, capture_output=True, text=True, check=check
    )


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
