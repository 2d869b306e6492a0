"""Provide private cache folders for confined commands, two for each workspace.

Pre-approved commands write to one folder and approved commands to another. An approved command never reads the files
that a pre-approved command wrote. Every confined command can read the files that an approved command downloaded.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tool_approval.storage.private_file import make_private_folder

from .profile import Access, OSProfile, Root

_BUILDS: Final = {
    'XDG_CACHE_HOME': '',
    'GOCACHE': 'go-build',
    'PIP_CACHE_DIR': 'pip',
    'UV_CACHE_DIR': 'uv',
    'npm_config_cache': 'npm',
}
"""Cache folders that programs write to. Each key is the environment variable that sets the path of the folder."""
_IN_PROJECT: Final = {
    'CARGO_TARGET_DIR': 'cargo-target',
    'COVERAGE_FILE': 'coverage',
    'MYPY_CACHE_DIR': 'mypy',
    'RUFF_CACHE_DIR': 'ruff',
}
"""Caches that programs keep in the project unless an environment variable, the key, sets another path. Pre-approved
commands need the variables, because these commands cannot write to the project."""
_PYTEST: Final = 'PYTEST_ADDOPTS'
"""Environment variable from which pytest reads extra options."""
_NO_CACHE: Final = '-W ignore::pytest.PytestCacheWarning'
"""Option that silences the warning that pytest prints if it cannot write its cache. The option `-o cache_dir=...` would
break projects that disable the cache plugin and use `--strict-config`."""
_DOWNLOADS: Final = {'CARGO_HOME': 'cargo', 'GOMODCACHE': 'go-mod'}
"""Cache folders that programs only read. Each key is the environment variable that sets the path of the folder."""


@dataclass(frozen=True, kw_only=True)
class Caches:
    """Cache folders of one workspace."""

    approved: Path
    """Folder that approved commands write to."""
    unasked: Path
    """Folder that pre-approved commands write to."""

    def open_in(self, profile: OSProfile, *, approved: bool) -> OSProfile:
        """Return a copy of the profile with two additions: access to the caches, and their environment variables."""
        own = self.approved if approved else self.unasked
        variables = {name: posixpath.join(own, folder).rstrip('/') for name, folder in _BUILDS.items()}
        variables |= {name: posixpath.join(self.approved, folder) for name, folder in _DOWNLOADS.items()}
        variables |= {} if approved else self.in_project(profile, approved=False)
        # A hard link cannot cross the two mounts of the cache and the environment.
        variables['UV_LINK_MODE'] = 'copy'
        roots = [Root(path=str(own), access=Access.WRITE)]
        roots += [] if approved else [Root(path=str(self.approved), access=Access.READ)]
        given = dict(profile.variables)
        return replace(
            profile,
            roots=(*profile.roots, *roots),
            variables=tuple((variables | given).items()),
        )

    def in_project(self, profile: OSProfile, *, approved: bool) -> dict[str, str]:
        """Return variables that move caches out of the project, for a command that cannot write there."""
        own = self.approved if approved else self.unasked
        variables = {name: posixpath.join(own, folder) for name, folder in _IN_PROJECT.items()}
        # The user's own options are kept.
        return variables if _PYTEST in profile.environment else {**variables, _PYTEST: _NO_CACHE}


def open_caches(directory: str | os.PathLike[str]) -> Caches:
    """Create the cache folders of a workspace if they do not exist, and return them.

    The folders are in `$XDG_CACHE_HOME/tool-approval` or `~/.cache/tool-approval`. Commands cannot access the state
    directory, so the caches cannot be there.

    Raises:
        OSError: A folder cannot be created, or other users can write to it.
        RuntimeError: There is no home directory.
    """
    given = os.environ.get('XDG_CACHE_HOME', '')
    base = Path(given) if os.path.isabs(given) else Path.home() / '.cache'
    name = hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:32]
    folder = Path(os.path.realpath(base), 'tool-approval')
    make_private_folder(folder)
    for each in (folder / name, folder / name / 'approved', folder / name / 'unasked'):
        make_private_folder(each)
    return Caches(approved=folder / name / 'approved', unasked=folder / name / 'unasked')
