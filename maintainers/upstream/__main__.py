"""Make the patch for upstream, test and type-check the patched tree, and look for the newest release."""

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

from .newest import Unknown, download_newest, newest_version
from .patch import PATCH, PATCHED, apply_patch, write_patch
from .patched import check_import, run_tests, typecheck
from .places import PlaceChanged
from .release import NAME, NoRelease, unpack_installed, unpack_wheel

ADVICE = 'No patch was written. maintainers/upstream/README.md says what to do: "When upstream has moved".'


def main(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name.

    Returns:
        0 if it went well, 1 if the patch or what was checked is at fault, 2 if the newest release is not known.
    """
    parser = argparse.ArgumentParser(prog='python -m maintainers.upstream', description=__doc__)
    commands = parser.add_subparsers(dest='command')
    commands.add_parser('make', help='write the patch for the installed release and check it (default)')
    commands.add_parser('test', help="run the loop's tests on the patched tree; what follows is for pytest")
    commands.add_parser('typecheck', help='check the types of the patched signatures')
    commands.add_parser('newest', help='make the patch for the newest published release')
    # Options of pytest are none of this parser's.
    given = parser.parse_args(arguments[:1] if arguments[:1] == ['test'] else arguments)
    try:
        match given.command:
            case 'test':
                with alone():
                    make()
                    return run_tests(arguments[1:])
            case 'typecheck':
                with alone():
                    make()
                    return typecheck()
            case 'newest':
                return newest()
            case _:
                with alone():
                    make()
                return 0
    except PlaceChanged as error:
        print(f'{error}\n{ADVICE}', file=sys.stderr)
    except NoRelease as error:
        print(error, file=sys.stderr)
    except Unknown as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(error, (error.stderr or b'').decode(errors='replace'), sep='\n', file=sys.stderr)
    return 1


@contextlib.contextmanager
def alone() -> Generator[None]:
    """Wait until no other process rebuilds or uses the patched tree."""
    PATCHED.parent.mkdir(parents=True, exist_ok=True)
    with PATCHED.with_suffix('.lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make() -> None:
    """Write the patch for the installed release, apply it to a clean tree, and import the result."""
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder)
        version = unpack_installed(release)
        write_patch(release, PATCH)
        _patch_tree(release)
    lines = PATCH.read_text(encoding='utf-8').splitlines()
    added = sum(line.startswith('+') and not line.startswith('+++') for line in lines)
    print(f'{os.path.relpath(PATCH)} applies to {NAME} {version}, and the patched tree imports; {added} lines added')


def _patch_tree(release: Path) -> None:
    shutil.rmtree(PATCHED, ignore_errors=True)
    shutil.copytree(release, PATCHED)
    apply_patch(PATCH, PATCHED)
    check_import(PATCHED)


def newest() -> int:
    """Make the patch for the newest published release in a temporary folder, and compare that release with ours."""
    with tempfile.TemporaryDirectory() as folder:
        here = unpack_installed(Path(folder, 'here'))
        published = newest_version()
        if published == here:
            print(f'{NAME} {here} is the newest release.')
            return 0
        print(f'{NAME} {published} is out; the patch is made for {here}.')
        release = Path(folder, 'newest')
        unpack_wheel(download_newest(published, Path(folder)), release)
        try:
            write_patch(release, Path(folder, 'newest.patch'))
        except PlaceChanged as error:
            print(f'Upstream has moved: {error}\n{ADVICE}', file=sys.stderr)
            return 1
        apply_patch(Path(folder, 'newest.patch'), release)
        print(f'The patch can be made for {published} too. Raise the pinned release to test it there.')
        return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
