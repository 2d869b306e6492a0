"""Hold the backend and the profiles of commands, and build the profile of an approved command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tool_approval.os_sandbox import Access, ExtraAccess, OSProfile, OSSandboxBackend, OSSandboxError, Root
from tool_approval.os_sandbox.profile import covers
from tool_approval.tools.shell.environment import clean_environment

HOST: Final = 'host'
"""Kind of access with which a command runs outside of the sandbox. It goes with no other kind."""
MAY_BE_REMOTE: Final = re.compile(r'\bgit\b.*\b(push|fetch|pull|ls-remote|clone)\b', re.DOTALL)
"""Found in every line whose git may need keys or logins of the user."""
_MOST_SECRETS: Final = 500
"""Maximum number of secrets to hide. Each hidden secret adds a mount to the command line of the OS sandbox."""


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """OS sandbox for commands: a backend and its profiles."""

    backend: OSSandboxBackend
    """Backend that confines commands."""
    approved: OSProfile
    """Profile with all access to files that an approval can give."""
    unasked: OSProfile
    """Base profile, of a command without approval. It has no access to paths for which the file tools need
    approval."""
    secrets: Callable[[], Collection[str]] = tuple
    """Function that returns the files and folders that currently contain secrets."""
    roots: tuple[str, ...] = ()
    """Folders of the workspace. After a command that can write to one of them, the sweep looks for what it has left."""
    state: str | None = None
    """The user's state folder, to which no command has access; `None` if there is none."""
    environments: tuple[str, ...] = ()
    """Folders of environments, such as Python's virtual environments, in the workspace. All commands can read these
    folders. Only a command approved with the extra access `environment` can write to the folders."""
    written: tuple[str, ...] = ()
    """Directories of the settings to which the file tools or commands can write, with their links resolved."""
    project_caches: tuple[tuple[str, str], ...] = ()
    """Environment variables that move caches out of the project, for an approved command that cannot write there."""

    @cached_property
    def _base(self) -> dict[str, Access]:
        """Access of the base profile to each folder of the workspace."""
        base = {root.path: root.access for root in self.unasked.roots}
        return {path: base.get(path, Access.NONE) for path in self.roots}

    @cached_property
    def _opened(self) -> dict[str, Access]:
        """Access that an approval can give to the folders that the base profile gives less.

        Folders with `suffixes`, which mounts cannot limit, are left out.
        """
        roots = (root for root in self.approved.roots if root.path in self._base and root.suffixes is None)
        return {root.path: root.access for root in roots if root.access > self._base[root.path]}

    @property
    def files(self) -> tuple[str, ...]:
        """Folders of the workspace to which only approved commands can write."""
        return tuple(path for path, most in self._opened.items() if most is Access.WRITE)

    @property
    def reads(self) -> tuple[str, ...]:
        """Folders of the workspace that only approved commands can read."""
        return tuple(path for path in self._opened if self._base[path] is Access.NONE)

    def given(self, extra: ExtraAccess) -> OSProfile:
        """Return the profile of an approved command: the base profile, and what its question showed."""
        found: list[Root] = []
        for root in self.approved.roots:
            access = self._base.get(root.path, root.access)
            if root.path in self._opened and root.path in (*extra.files, *extra.reads):
                most = root.access if root.path in extra.files else min(root.access, Access.READ)
                access = max(access, most)
            found.append(replace(root, access=min(access, root.access)))
        profile = replace(self.approved, roots=tuple(found))
        if not extra.files:
            variables = dict(self.project_caches) | dict(profile.variables)
            profile = replace(profile, variables=tuple(variables.items()))
        return profile.with_access(extra)

    def is_written(self, path: str) -> bool:
        """Whether a command with some access can write to a path, which has no links."""
        return covers((*self.written, *self.environments), path)

    def programs_written(self, words: Collection[str]) -> list[str]:
        """Return the programs of these names in the folders of `PATH` to which commands can write with some access."""
        search = dict(self.approved.variables).get('PATH') or clean_environment(os.environ)['PATH']
        folders = [each for each in search.split(':') if self.is_written(os.path.realpath(each))]
        paths = (f'{folder}/{word}' for folder in folders for word in words if word and '/' not in word)
        return [path for path in paths if os.path.isfile(path)]

    def closed(self, profile: OSProfile) -> OSProfile:
        """Return the profile with all current secrets hidden.

        Raises:
            OSSandboxError: There are too many secrets.
        """
        secrets = [path for path in self.secrets() if profile.access(path) > Access.NONE]
        if len(secrets) > _MOST_SECRETS:
            raise OSSandboxError(
                f'more than {_MOST_SECRETS} files look like secrets; list the harmless ones in `sandbox.visible`'
            )
        return replace(profile, hidden=(*profile.hidden, *secrets))
