"""Define the extra access, beyond the base profile, that an approver can grant to one command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, get_args

from .profile import Access, OSProfile, check_path, covers

AccessName = Literal['write', 'git', 'network', 'environment']
"""A kind of extra access: write to files, write to files and `.git`, use the network, or write to the project's
environment."""
ACCESS_NAMES: Final[tuple[AccessName, ...]] = get_args(AccessName)
"""Every `AccessName`, in the order used by approval requests."""

_NETWORK: Final = "network (every host and this machine's own services; the command can send all it can read)"
_BRIEF_NETWORK: Final = 'network (every host)'
_GIT: Final = '; can change or delete history'
_NOT_GIT: Final = ' (not .git)'
_PATHS: Final = ('reads', 'files', 'git', 'writes')
"""Fields of `ExtraAccess` with paths."""


@dataclass(frozen=True, kw_only=True)
class ExtraAccess:
    """Additional access for one command, beyond what its profile allows."""

    network: bool = False
    """Whether the command can use the machine's network."""
    git: tuple[str, ...] = ()
    """Repositories, such as `/project/.git`. The command writes to all but what decides which programs git runs."""
    writes: tuple[str, ...] = ()
    """Environments in the workspace, such as `/project/.venv`, that the command writes to."""
    files: tuple[str, ...] = ()
    """Directories of the settings in which the command writes files, but for control files and environments."""
    reads: tuple[str, ...] = ()
    """Directories of the settings that commands cannot read without approval. The command reads them."""

    def __post_init__(self) -> None:
        """Sort the paths and remove duplicates, so that objects that grant the same access are equal.

        Raises:
            OSSandboxError: A path is not absolute or not normalised.
        """
        for name in _PATHS:
            paths: tuple[str, ...] = getattr(self, name)
            for path in paths:
                check_path(path)
            object.__setattr__(self, name, tuple(sorted(set(paths))))

    def __bool__(self) -> bool:
        """Return whether the object grants any access."""
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def names(self) -> frozenset[AccessName]:
        """The kinds of access that the object grants."""
        granted = {'write': self.files, 'git': self.git, 'network': self.network, 'environment': self.writes}
        return frozenset(name for name in ACCESS_NAMES if granted[name])

    def beyond(self, profile: OSProfile) -> ExtraAccess:
        """Return the access that an approval can add to `profile` and that `profile` does not give yet.

        An approval cannot add a hidden path, a blocked path or a control file. `files` and `reads` stay as they are.
        """
        return replace(
            self,
            network=self.network and not profile.network,
            git=tuple(path for path in self.git if profile.access(path) is not Access.WRITE),
            writes=tuple(path for path in self.writes if profile.can_open(path)),
        )

    def describe(self, cwd: str | None = None, *, brief: bool = False) -> tuple[str, ...]:
        """Return one line for each kind of access and path, for the approver and the model.

        Args:
            cwd: Paths below this folder are shown relative to the folder.
            brief: Whether to leave out explanations.
        """
        besides = '' if self.git else _NOT_GIT
        here = {cwd} & set(self.files) - set(self.reads) if self.git else set[str]()
        return (
            *((_BRIEF_NETWORK if brief else _NETWORK,) if self.network else ()),
            *(f'reads files in {_shown(path, cwd)}' for path in self.reads if path not in self.files),
            *(
                f'{"reads and writes" if path in self.reads else "writes to"} files in {_shown(path, cwd)}{besides}'
                for path in self.files
                if path not in here
            ),
            *(
                f'writes to {_shown(path, cwd)}{" and files here" if here else ""}{"" if brief else _GIT}'
                for path in self.git
            ),
            *(f'writes to {_shown(path, cwd)}' for path in self.writes),
        )

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object with all fields that are not empty. The approval is valid only for this access."""
        paths: dict[str, list[str]] = {name: list(getattr(self, name)) for name in _PATHS}
        return {**({'network': True} if self.network else {}), **{name: each for name, each in paths.items() if each}}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> ExtraAccess:
        """Build the access from the JSON that `as_json` returned."""
        paths = {name: tuple(found.get(name, ())) for name in _PATHS}
        return cls(network=found.get('network') is True, **paths)


def _shown(path: str, cwd: str | None) -> str:
    if cwd is None or not covers((cwd,), path):
        return path
    return 'this directory' if path == cwd else os.path.relpath(path, cwd)
