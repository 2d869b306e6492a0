"""Build a distribution: from the tree, from its own sdist, and again from a copy of the tree."""

import os
import shutil
import sys
from pathlib import Path

from .environments import ROOT, CommandError, run


def epoch(root: Path = ROOT) -> str:
    """Return the time for files in archives, in seconds: `SOURCE_DATE_EPOCH`, or else the time of the commit."""
    if given := os.environ.get('SOURCE_DATE_EPOCH'):
        return given
    try:
        return run('git', 'log', '-1', '--format=%ct', cwd=root).strip()
    except CommandError:
        return '1577836800'  # The first second of 2020, for a tree without git; zip has no year before 1980


def build(folder: Path, target: Path, *, time: str) -> list[Path]:
    """Build an sdist of a folder, and a wheel from that sdist, as for publication. The wheel is first.

    `python -m build` uses isolated environments that contain only the build requirements in pyproject.toml.
    """
    run(sys.executable, '-m', 'build', '--outdir', target, folder, SOURCE_DATE_EPOCH=time)
    return _artefacts(target)


def build_again(folder: Path, scratch: Path, *, time: str) -> list[Path]:
    """Build both from a copy of the tree, the wheel directly, with another umask. The wheel is first."""
    copy = scratch / 'elsewhere' / folder.name
    ignore = shutil.ignore_patterns('__pycache__', '*.pyc')
    # Without times and modes, on which the result must not depend.
    shutil.copytree(folder, copy, ignore=ignore, copy_function=shutil.copyfile)
    (copy.parent / '.git').mkdir(exist_ok=True)
    shutil.copyfile(folder.parent / '.gitignore', copy.parent / '.gitignore')
    target = scratch / 'again'
    before = os.umask(0o077)
    try:
        run(sys.executable, '-m', 'build', '--sdist', '--wheel', '--outdir', target, copy, SOURCE_DATE_EPOCH=time)
    finally:
        os.umask(before)
    return _artefacts(target)


def differences(first: list[Path], second: list[Path]) -> list[str]:
    """Return the differences between two builds, in sentences."""
    if [path.name for path in first] != [path.name for path in second]:
        return [f'Two builds make {[path.name for path in first]} and {[path.name for path in second]}.']
    pairs = zip(first, second, strict=True)
    return [f'Two builds of {one.name} differ.' for one, other in pairs if one.read_bytes() != other.read_bytes()]


def _artefacts(folder: Path) -> list[Path]:
    found = sorted(folder.iterdir(), key=lambda path: path.suffix != '.whl')
    assert [path.suffix for path in found] == ['.whl', '.gz'], found
    return found
