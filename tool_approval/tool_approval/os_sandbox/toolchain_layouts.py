"""Define the layout of each kind of toolchain: default folder, characteristic files, and readable parts."""

from __future__ import annotations

import glob
import os
import posixpath
import re
import stat
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class ToolchainLayout:
    """Files and folders that identify one kind of toolchain."""

    kind: str
    parts: tuple[str, ...]
    """Globs of the parts that commands can read."""
    marks: tuple[str, ...]
    """Globs of characteristic files and folders. A folder with this layout contains a match for every glob."""
    bins: tuple[str, ...] = ('bin',)
    """Globs of the folders with programs. If several folders match a glob, the newest version is used."""
    only: str = ''
    """Regular expression that every name in the folder must match. An empty expression allows every name."""
    variable: str = ''
    """Environment variable that overrides the default folder. The variable is passed on to commands."""
    place: str = ''
    """Default folder, relative to the home directory."""


ENVIRONMENT: Final = ToolchainLayout(
    kind='virtual environment',
    marks=('pyvenv.cfg', 'bin/activate*', 'lib/python3*'),
    parts=('bin', 'include', 'lib', 'lib64', 'pyvenv.cfg', 'share'),
)
CONDA: Final = ToolchainLayout(
    kind='conda environment',
    marks=('conda-meta/history', 'bin/python3*'),
    parts=('bin', 'compiler_compat', 'conda-meta', 'include', 'lib', 'libexec', 'share', 'ssl', '*-linux-gnu'),
)
_INSTALLED: Final = (
    CONDA,
    ToolchainLayout(
        kind='Python',
        marks=('bin/python3*', 'lib/python3*/os.py', 'lib/python3*/encodings'),
        parts=('bin', 'include', 'lib', 'lib64'),
    ),
    ToolchainLayout(kind='Node.js', marks=('bin/node', 'include/node/node.h'), parts=('bin', 'include', 'lib')),
    ToolchainLayout(
        kind='Go',
        marks=('bin/go', 'VERSION', 'src/runtime'),
        parts=('VERSION', 'bin', 'go.env', 'lib', 'misc', 'pkg', 'src'),
    ),
)
"""Layouts of toolchains whose `bin` folder is in `PATH`. The parent folder of `bin` must have one of the layouts."""
MANAGERS: Final = (
    ToolchainLayout(
        kind='pyenv',
        variable='PYENV_ROOT',
        place='.pyenv',
        marks=('versions', 'libexec/pyenv'),
        parts=('bin', 'libexec', 'plugins', 'pyenv.d', 'shims', 'version', 'versions'),
        bins=('shims', 'bin'),
    ),
    ToolchainLayout(
        kind='nvm',
        variable='NVM_DIR',
        place='.nvm',
        marks=('nvm.sh', 'versions/node'),
        parts=('versions',),
        bins=('versions/node/v*/bin',),
    ),
    ToolchainLayout(
        kind='rustup',
        variable='RUSTUP_HOME',
        place='.rustup',
        marks=('settings.toml', 'toolchains'),
        # rustup does not start without `update-hashes`.
        parts=('settings.toml', 'toolchains', 'update-hashes'),
        bins=(),
    ),
    # Not all of `.cargo`, which contains registry credentials. Commands get a private `.cargo` (`caches.py`).
    ToolchainLayout(kind='cargo', variable='CARGO_HOME', place='.cargo', marks=('bin/cargo',), parts=('bin',)),
    ToolchainLayout(
        kind='uv',
        variable='UV_PYTHON_INSTALL_DIR',
        place='.local/share/uv/python',
        marks=('cpython-*/bin',),
        # Open the whole folder: environments refer to links next to the Pythons.
        parts=('',),
        only=r'(cpython|pypy|graalpy)-.*|\..*',
        bins=(),
    ),
    ToolchainLayout(
        kind='asdf',
        variable='ASDF_DATA_DIR',
        place='.asdf',
        marks=('installs', 'shims'),
        parts=('bin', 'installs', 'lib', 'libexec', 'plugins', 'shims'),
        bins=('shims', 'bin'),
    ),
    ToolchainLayout(
        kind='mise',
        variable='MISE_DATA_DIR',
        place='.local/share/mise',
        marks=('installs',),
        parts=('installs', 'shims'),
        bins=('shims',),
    ),
)
_IN_WORKSPACE: Final = ('.venv', 'venv', 'env')
"""Usual names of the virtual environment in a workspace."""


def environments_in(root: str) -> tuple[str, ...]:
    """Return the virtual environments among the subfolders `.venv`, `venv` and `env`. Symbolic links are ignored."""
    places = (os.path.join(root, name) for name in _IN_WORKSPACE)
    return tuple(place for place in places if os.path.realpath(place) == place and has_layout(ENVIRONMENT, place))


def has_layout(layout: ToolchainLayout, folder: str) -> bool:
    """Whether `folder` contains what `layout` requires. Broken symbolic links are ignored."""
    if not all(any(map(_is_real, glob.iglob(posixpath.join(glob.escape(folder), mark)))) for mark in layout.marks):
        return False
    return not layout.only or all(re.fullmatch(layout.only, name) for name in os.listdir(folder))


def layout_around(bins: str) -> ToolchainLayout | None:
    """Return the layout of the parent folder of a `bin` folder; `None` if the layout is unknown."""
    folder, name = posixpath.split(bins)
    return next((each for each in (ENVIRONMENT, *_INSTALLED) if name == 'bin' and has_layout(each, folder)), None)


def _is_real(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
