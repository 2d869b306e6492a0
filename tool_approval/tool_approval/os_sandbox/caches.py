"""The private folders where confined commands keep what they downloaded and built, one for each workspace.

A command that runs unasked writes to another folder than one that was approved, and an approved one never reads what an
unasked one left. What an approved one downloaded is there for both.
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
"""By variable, a folder that a program has to be able to write."""
_IN_PROJECT: Final = {
    'CARGO_TARGET_DIR': 'cargo-target',
    'COVERAGE_FILE': 'coverage',
    'MYPY_CACHE_DIR': 'mypy',
    'RUFF_CACHE_DIR': 'ruff',
}
"""The same for what is in the project otherwise, where a command that runs unasked cannot write."""
_PYTEST: Final = 'PYTEST_ADDOPTS'
"""Options that pytest puts before all others."""
_NO_CACHE: Final = '-W ignore::pytest.PytestCacheWarning'
"""Where nothing can be written in the project, pytest warns of it in six lines, and goes on. Another folder by `-o
cache_dir=...` would be an unknown option, an error under `--strict-config`, where a project has no cache."""
_DOWNLOADS: Final = {'CARGO_HOME': 'cargo', 'GOMODCACHE': 'go-mod'}
"""By variable, a folder whose programs are content with reading it."""


@dataclass(frozen=True, kw_only=True)
class Caches:
    """The folders of one workspace."""

    approved: Path
    """Written by commands that were approved."""
    unasked: Path
    """Written by the others."""

    def open_in(self, profile: OSProfile, *, approved: bool) -> OSProfile:
        """The profile, with the caches that a command may use, and the variables that lead there."""
        own = self.approved if approved else self.unasked
        written = _BUILDS if approved else _BUILDS | _IN_PROJECT
        variables = {name: posixpath.join(own, folder).rstrip('/') for name, folder in written.items()}
        variables |= {name: posixpath.join(self.approved, folder) for name, folder in _DOWNLOADS.items()}
        if not approved and _PYTEST not in profile.environment:  # the user's own is kept
            variables[_PYTEST] = _NO_CACHE
        # Links from a cache into an environment are not possible between two mounts.
        variables['UV_LINK_MODE'] = 'copy'
        roots = [Root(path=str(own), access=Access.WRITE)]
        roots += [] if approved else [Root(path=str(self.approved), access=Access.READ)]
        given = dict(profile.variables)
        return replace(
            profile,
            roots=(*profile.roots, *roots),
            variables=tuple((variables | given).items()),
        )


def open_caches(directory: str | os.PathLike[str]) -> Caches:
    """Make the folders of a workspace, if they are not there.

    They are in `tool-approval` in `XDG_CACHE_HOME`, or in `~/.cache`: not in the state directory, which is closed to
    commands as a whole.

    Raises:
        OSError: They cannot be made, or others can write to them.
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
