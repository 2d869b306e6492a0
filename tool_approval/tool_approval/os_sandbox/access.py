"""Define the extra access, beyond the profile, that an approver can grant to one command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from .profile import Access, OSProfile, check_path, covers

AccessName = Literal['network', 'git', 'environment', 'names']
"""A kind of extra access: use the network, write to `.git`, write to the project's environment, or create and remove
files directly in a frozen folder."""
ACCESS_NAMES: Final[tuple[AccessName, ...]] = get_args(AccessName)
"""Every `AccessName`, in the order used by approval requests."""

_NETWORK: Final = "network (every host and this machine's own services; the command can send all it can read)"
_BRIEF_NETWORK: Final = 'network (every host)'


@dataclass(frozen=True, kw_only=True)
class ExtraAccess:
    """Additional access for one command, beyond what its profile allows."""

    network: bool = False
    """Whether the command can use the machine's network."""
    git: tuple[str, ...] = ()
    """Work trees. The command writes to a copy of `.git`, and permitted changes are written back."""
    names: tuple[str, ...] = ()
    """Frozen folders. The command creates and removes files in a copy, and permitted changes are written back."""
    writes: tuple[str, ...] = ()
    """Folders that the command writes to directly, such as a virtual environment in the workspace."""

    def __post_init__(self) -> None:
        """Sort the paths and remove duplicates, so that objects that grant the same access are equal.

        Raises:
            OSSandboxError: A path is not absolute or not normalised.
        """
        for name in ('git', 'names', 'writes'):
            paths: tuple[str, ...] = getattr(self, name)
            for path in paths:
                check_path(path)
            object.__setattr__(self, name, tuple(sorted(set(paths))))

    def __bool__(self) -> bool:
        """Return whether the object grants any access."""
        return any(getattr(self, field.name) for field in fields(self))

    def beyond(self, profile: OSProfile) -> ExtraAccess:
        """Return the access that an approval can add to `profile` and that `profile` does not give yet.

        An approval cannot add a hidden path, a blocked path or a control file. `git` and `names` are added only for
        folders that the profile makes writable.
        """
        return ExtraAccess(
            network=self.network and not profile.network,
            git=tuple(path for path in self.git if _is_git_lacking(profile, path)),
            names=tuple(path for path in self.names if profile.access(path) is Access.WRITE),
            writes=tuple(path for path in self.writes if profile.can_open(path)),
        )

    def describe(self, cwd: str | None = None, *, brief: bool = False) -> tuple[str, ...]:
        """Return one line for each kind of access and path, for the approver and the model.

        Args:
            cwd: Paths below this folder are shown relative to the folder.
            brief: Whether to leave out the explanation of network access.
        """
        git = (os.path.join(path, '.git') for path in self.git)
        return (
            *((_BRIEF_NETWORK if brief else _NETWORK,) if self.network else ()),
            *(f'writes to {_shown(path, cwd)}' for path in git),
            *(f'writes to {_shown(path, cwd)}' for path in self.writes),
            *(f'adds or removes files in {_shown(path, cwd)}' for path in self.names),
        )

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object with all fields that are not empty. The approval is valid only for this access."""
        paths = {'git': list(self.git), 'names': list(self.names), 'writes': list(self.writes)}
        return {**({'network': True} if self.network else {}), **{name: each for name, each in paths.items() if each}}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> ExtraAccess:
        """Build the access from the JSON that `as_json` returned."""
        paths = {name: tuple(found.get(name, ())) for name in ('git', 'names', 'writes')}
        return cls(network=found.get('network') is True, **paths)


def _is_git_lacking(profile: OSProfile, tree: str) -> bool:
    control = os.path.join(tree, '.git')
    return profile.access(tree) is Access.WRITE and profile.access(control) is Access.READ


def _shown(path: str, cwd: str | None) -> str:
    if cwd is None or not covers((cwd,), path):
        return path
    return 'this directory' if path == cwd else os.path.relpath(path, cwd)
