"""Which of the configured directories a place lies in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tool_approval.core.errors import ApprovalConfigError

from .names import components, fold, starts_with
from .walk import Place, WalkError, walk

if TYPE_CHECKING:
    from .config import PathConfig

OUTSIDE = 'It lies outside of every directory that these tools may use.'


@dataclass(frozen=True, kw_only=True)
class Root:
    """One configured directory, as it stood when the sandbox was made."""

    name: str
    """What messages call it."""
    config: PathConfig
    """What may be done in it."""
    names: tuple[str, ...]
    """Its place, from the top of the file system, without links."""
    identity: tuple[int, int] | None
    """Device and inode; `None` if it did not exist then."""

    @classmethod
    def of(cls, name: str, config: PathConfig, base: Path) -> Root:
        """Fix the place of a root once, so that no change of directory moves it later.

        Links on the way to it are followed, but not within the working directory: what is a link there may have been
        made by whoever wrote the files in it, and leads nowhere that was meant (test_links.py).
        """
        place = _resolved(config.root, base)
        return cls(name=name, config=config, names=tuple(components(str(place))), identity=_identity(place))

    @property
    def place(self) -> Path:
        """Where it is on the host. Not for messages."""
        return Path('/', *self.names)

    @property
    def is_where_it_was(self) -> bool:
        """Whether the directory is still the one that was configured."""
        return self.identity is not None and _identity(self.place) == self.identity


class Roots:
    """All of them."""

    def __init__(self, paths: Mapping[str, PathConfig], base: Path) -> None:
        """Resolve them.

        Raises:
            ApprovalConfigError: Two are the same directory.
        """
        self.base = tuple(components(os.path.realpath(base)))
        roots = [Root.of(name, config, base) for name, config in paths.items()]
        # The longest first: the innermost root decides.
        self.all = sorted(roots, key=lambda root: len(root.names), reverse=True)
        seen: dict[tuple[str, ...], str] = {}
        for root in roots:
            if root.names in seen:
                problem = f'is the same directory as `{seen[root.names]}`; name it once'
                raise ApprovalConfigError(problem, key=f'sandbox.paths.{root.name}.root')
            seen[root.names] = root.name
        far = [Path('/', *self.base) / root.config.root for root in roots if not starts_with(root.names, self.base)]
        self._passed = {names for path in (base, *far) for names in _left_on_the_way(path)}
        self._on_the_way = (self.base, components(str(base)), *(root.names for root in roots))

    def find(self, names: Sequence[str]) -> Root | None:
        """The innermost root that a place is at or in."""
        return next((root for root in self.all if starts_with(names, root.names)), None)

    def of(self, place: Place) -> Root:
        """The root whose rules hold.

        Raises:
            PermissionError: There is none, or the place is another name for something in one.
        """
        found = self.find(place.names)
        if found is None:
            raise PermissionError(OUTSIDE)
        for root in self.all:
            self._check_look_alike(root, place)
        return found

    def _check_look_alike(self, root: Root, place: Place) -> None:
        beginning = place.names[: len(root.names)]
        is_like = list(map(fold, beginning)) == list(map(fold, root.names)) and tuple(beginning) != root.names
        # Attack: on a file system that ignores case, `Ref/` is `ref/` without its rule; so is a second mount of it.
        if is_like or any(
            _identity_of(folder) == root.identity and tuple(place.names[:depth]) != root.names and root.is_where_it_was
            for depth, folder in enumerate(place.folders)
        ):
            raise PermissionError(f'It is, or looks like, another name for {root.name!r}; use the name itself.')

    def below(self, names: Sequence[str]) -> list[Root]:
        """The roots that are at a place or below it."""
        return [root for root in self.all if starts_with(root.names, names)]

    def is_known(self, names: Sequence[str]) -> bool:
        """Whether the configuration itself says that a place exists: it is in a root, or on the way to one.

        So is what is on the way to where relative paths begin.
        """
        return (
            self.find(names) is not None
            or tuple(names) in self._passed
            or any(starts_with(way, names) for way in self._on_the_way)
        )

    def listed(self) -> str:
        """For a model: which directories there are, relative to the working directory."""
        base = Path('/', *self.base)
        shown = sorted(f'{os.path.relpath(root.place, base)}/ ({root.name}, {root.config.mode})' for root in self.all)
        return ', '.join(shown) or 'none'


def _resolved(root: Path, base: Path) -> Path:
    real_base = Path(os.path.realpath(base))
    place = Path(os.path.normpath(real_base / root))
    for beginning in (base, real_base):
        if place.is_relative_to(beginning):
            return real_base / place.relative_to(beginning)
    return Path(os.path.realpath(real_base / root))


def _left_on_the_way(path: Path) -> Iterable[tuple[str, ...]]:
    """What `..` leads away from on the way to a path, as in a link to `../elsewhere`."""
    try:
        with walk([], str(path), follows_last=True) as place:
            return place.left
    except WalkError as error:
        return error.left


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _identity_of(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino
