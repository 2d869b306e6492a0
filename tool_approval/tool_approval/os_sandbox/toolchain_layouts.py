"""Know how each kind of toolchain looks: where it usually is, what it has, and what of it programs need."""

from __future__ import annotations

import glob
import os
import posixpath
import re
import stat
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a kind of toolchain looks."""

    kind: str
    parts: tuple[str, ...]
    """Globs of what is opened in it."""
    marks: tuple[str, ...]
    """Globs of regular files and folders that it has, each at least once."""
    bins: tuple[str, ...] = ('bin',)
    """Globs of the folders with its programs; of several, the newest counts."""
    only: str = ''
    """What the names of all its entries match, where it is opened as a whole; a regular expression."""
    variable: str = ''
    """Names it, where it is not in its usual place; also set for commands."""
    place: str = ''
    """The usual one, below the home directory."""


ENVIRONMENT: Final = Layout(
    kind='virtual environment',
    marks=('pyvenv.cfg', 'bin/activate*', 'lib/python3*'),
    parts=('bin', 'include', 'lib', 'lib64', 'pyvenv.cfg', 'share'),
)
CONDA: Final = Layout(
    kind='conda environment',
    marks=('conda-meta/history', 'bin/python3*'),
    parts=('bin', 'compiler_compat', 'conda-meta', 'include', 'lib', 'libexec', 'share', 'ssl', '*-linux-gnu'),
)
_INSTALLED: Final = (
    CONDA,
    Layout(
        kind='Python',
        marks=('bin/python3*', 'lib/python3*/os.py', 'lib/python3*/encodings'),
        parts=('bin', 'include', 'lib', 'lib64'),
    ),
    Layout(kind='Node.js', marks=('bin/node', 'include/node/node.h'), parts=('bin', 'include', 'lib')),
    Layout(
        kind='Go',
        marks=('bin/go', 'VERSION', 'src/runtime'),
        parts=('VERSION', 'bin', 'go.env', 'lib', 'misc', 'pkg', 'src'),
    ),
)
"""What a folder `bin` of the search path may belong to."""
MANAGERS: Final = (
    Layout(
        kind='pyenv',
        variable='PYENV_ROOT',
        place='.pyenv',
        marks=('versions', 'libexec/pyenv'),
        parts=('bin', 'libexec', 'plugins', 'pyenv.d', 'shims', 'version', 'versions'),
        bins=('shims', 'bin'),
    ),
    Layout(
        kind='nvm',
        variable='NVM_DIR',
        place='.nvm',
        marks=('nvm.sh', 'versions/node'),
        parts=('versions',),
        bins=('versions/node/v*/bin',),
    ),
    Layout(
        kind='rustup',
        variable='RUSTUP_HOME',
        place='.rustup',
        marks=('settings.toml', 'toolchains'),
        # It refuses to start without the last.
        parts=('settings.toml', 'toolchains', 'update-hashes'),
        bins=(),
    ),
    # Not the folder itself: it has the credentials for registries. Commands get a private one (`caches.py`).
    Layout(kind='cargo', variable='CARGO_HOME', place='.cargo', marks=('bin/cargo',), parts=('bin',)),
    Layout(
        kind='uv',
        variable='UV_PYTHON_INSTALL_DIR',
        place='.local/share/uv/python',
        marks=('cpython-*/bin',),
        # As a whole: beside its Pythons are links to them, which environments are made of.
        parts=('',),
        only=r'(cpython|pypy|graalpy)-.*|\..*',
        bins=(),
    ),
    Layout(
        kind='asdf',
        variable='ASDF_DATA_DIR',
        place='.asdf',
        marks=('installs', 'shims'),
        parts=('bin', 'installs', 'lib', 'libexec', 'plugins', 'shims'),
        bins=('shims', 'bin'),
    ),
    Layout(
        kind='mise',
        variable='MISE_DATA_DIR',
        place='.local/share/mise',
        marks=('installs',),
        parts=('installs', 'shims'),
        bins=('shims',),
    ),
)
_IN_WORKSPACE: Final = ('.venv', 'venv', 'env')
"""What a virtual environment at the top of a workspace is called."""


def environments_in(root: str) -> tuple[str, ...]:
    """The virtual environments at the top of a folder. One that is a symbolic link is none."""
    places = (os.path.join(root, name) for name in _IN_WORKSPACE)
    return tuple(place for place in places if os.path.realpath(place) == place and has_layout(ENVIRONMENT, place))


def has_layout(layout: Layout, folder: str) -> bool:
    """Whether a folder has the layout, with files and folders of its own."""
    if not all(any(map(_is_real, glob.iglob(posixpath.join(glob.escape(folder), mark)))) for mark in layout.marks):
        return False
    return not layout.only or all(re.fullmatch(layout.only, name) for name in os.listdir(folder))


def layout_around(bins: str) -> Layout | None:
    """What a folder `bin` belongs to, by the layout of what is around it."""
    folder, name = posixpath.split(bins)
    return next((each for each in (ENVIRONMENT, *_INSTALLED) if name == 'bin' and has_layout(each, folder)), None)


def _is_real(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
