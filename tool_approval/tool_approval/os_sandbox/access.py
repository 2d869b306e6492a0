"""Define the extra access, beyond the profile, that an approver can grant to one command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from .profile import Access, OSProfile, check_path, covers

AccessName = Literal['network', 'git', 'environment']
"""A kind of extra access: use the network, write to `.git`, or write to the project's environment."""
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
    """Repositories, such as `/project/.git`. The command writes to all but what decides which programs git runs."""
    writes: tuple[str, ...] = ()
    """Folders that the command writes to directly, such as a virtual environment in the workspace."""

    def __post_init__(self) -> None:
        """Sort the paths and remove duplicates, so that objects that grant the same access are equal.

        Raises:
            OSSandboxError: A path is not absolute or not normalised.
        """
        for name in ('git', 'writes'):
            paths: tuple[str, ...] = getattr(self, name)
            for path in paths:
                check_path(path)
            object.__setattr__(self, name, tuple(sorted(set(paths))))

    def __bool__(self) -> bool:
        """Return whether the object grants any access."""
        return any(getattr(self, field.name) for field in fields(self))

    def beyond(self, profile: OSProfile) -> ExtraAccess:
        """Return the access that an approval can add to `profile` and that `profile` does not give yet.

        An approval cannot add a hidden path, a blocked path or a control file.
        """
        return ExtraAccess(
            network=self.network and not profile.network,
            git=tuple(path for path in self.git if profile.access(path) is not Access.WRITE),
            writes=tuple(path for path in self.writes if profile.can_open(path)),
        )

    def describe(self, cwd: str | None = None, *, brief: bool = False) -> tuple[str, ...]:
        """Return one line for each kind of access and path, for the approver and the model.

        Args:
            cwd: Paths below this folder are shown relative to the folder.
            brief: Whether to leave out the explanation of network access.
        """
        return (
            *((_BRIEF_NETWORK if brief else _NETWORK,) if self.network else ()),
            *(f'writes to {_shown(path, cwd)}' for path in (*self.git, *self.writes)),
        )

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object with all fields that are not empty. The approval is valid only for this access."""
        paths = {'git': list(self.git), 'writes': list(self.writes)}
        return {**({'network': True} if self.network else {}), **{name: each for name, each in paths.items() if each}}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> ExtraAccess:
        """Build the access from the JSON that `as_json` returned."""
        paths = {name: tuple(found.get(name, ())) for name in ('git', 'writes')}
        return cls(network=found.get('network') is True, **paths)


def _shown(path: str, cwd: str | None) -> str:
    if cwd is None or not covers((cwd,), path):
        return path
    return 'this directory' if path == cwd else os.path.relpath(path, cwd)
