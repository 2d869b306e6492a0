"""What an operation does to each path it names, and what the rules of that path's root say to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tool_approval.core.errors import printable

from .content import MISSING, state_of, tree
from .names import has_suffix, is_control
from .paths import SandboxRoot, WalkedPath

Operation = Literal['read_file', 'write_file', 'edit_file', 'list_files', 'make_directory', 'move', 'copy', 'delete']
"""What a tool does, by its name."""

Use = Literal['read', 'list', 'write', 'edit', 'make', 'take', 'put', 'delete']
"""What happens to one path: `take` moves it away, `put` moves a directory there, the others are as they say."""

USES: dict[str, tuple[Use, ...]] = {
    'read_file': ('read',),
    'write_file': ('write',),
    'edit_file': ('edit',),
    'list_files': ('list',),
    'make_directory': ('make',),
    'move': ('take', 'write'),
    'copy': ('read', 'write'),
    'delete': ('delete',),
}
"""What each operation does to its path, and to its destination."""

OWN_LINKS: frozenset[Use] = frozenset({'take', 'delete'})
"""Uses of a link at the end of a path, not of what it leads to."""


_CHANGES, _READING = 'Changes in {} need approval.', 'Reading in {} needs approval.'


@dataclass(frozen=True, kw_only=True)
class PathTarget:
    """One path of an operation: where it led when it was judged, held open."""

    use: Use
    """What is done to it."""
    root: SandboxRoot
    """Whose rules hold."""
    place: WalkedPath
    """Where it leads."""
    holds_secret: bool = False
    """Whether a secret would be read, or lose the name that it is known by."""
    given: str = ''
    """The path as it was given."""
    needs: list[str] = field(default_factory=list[str])
    """Why somebody has to consent; empty if nobody has to."""

    @property
    def path(self) -> str:
        """The path within the root; empty for the root itself."""
        return '/'.join(self.place.names[len(self.root.names) :])

    @property
    def key(self) -> str:
        """Root and path, exactly."""
        return f'{self.root.name}:{self.path}'

    @property
    def shown(self) -> str:
        """Root and path for a message."""
        return printable(self.key, 300)

    @property
    def title(self) -> str:
        """The path for a person: as it was given where that says where it leads, else root and path, exactly."""
        # Attack: `a.py` is a link into another root, and the person takes it for a file that is here (test_showing.py).
        is_literal = not (self.given.startswith('/') or self.place.links or self.place.left)
        return self.given if is_literal else self.key

    @property
    def is_usual(self) -> bool:
        """Whether consent is needed for no more than what the root's rules say of every path in it."""
        return set(self.needs) <= {each.format(self.root.name) for each in (_CHANGES, _READING)}

    @property
    def is_free_to_read(self) -> bool:
        """Of a path to edit: whether consent is needed for the change alone."""
        return set(self.needs) <= {_CHANGES.format(self.root.name)}

    @property
    def is_root(self) -> bool:
        """Whether it is a root, not something in one."""
        return len(self.place.names) == len(self.root.names)

    @property
    def is_link(self) -> bool:
        """Whether it is a link, which was not followed."""
        return self.place.status is not None and stat.S_ISLNK(self.place.status.st_mode)

    def state(self) -> str:
        """What stands there now.

        Raises:
            OSError: It cannot be read.
        """
        if self.place.missing_folders or self.is_root:
            return MISSING
        return state_of(self.place.parent, self.place.name)


def check(target: PathTarget, roots_below: Sequence[SandboxRoot]) -> None:
    """Refuse what the rules of the root forbid, and note why consent is needed.

    Args:
        target: The path, as it was found.
        roots_below: The roots that are at the path or below it.

    Raises:
        PermissionError: The rules forbid it; the text is for a model.
    """
    config = target.root.config
    reads = target.use in ('read', 'list', 'edit', 'take')
    if reads and config.read_approval == 'blocked':
        raise PermissionError(f'{target.shown} cannot be read: reading in {target.root.name} is blocked.')
    if target.use not in ('read', 'list'):
        _check_change(target, roots_below)
    _check_kind(target)
    if target.use in ('take', 'delete') and target.place.is_folder:
        _check_tree(target)
    elif target.use not in ('list', 'make', 'put') and not has_suffix(target.place.name, config.suffixes):
        allowed = ', '.join(config.suffixes or ())
        raise PermissionError(f'{target.shown} has a suffix that is not allowed in {target.root.name}; use {allowed}.')
    if target.use not in ('read', 'list') and config.write_approval:
        target.needs.append(_CHANGES.format(target.root.name))
    if reads and config.read_approval:
        target.needs.append(_READING.format(target.root.name))
    if target.holds_secret:
        target.needs.append(f'{target.shown} usually holds secrets.')
    if has_more_names(target):
        # Attack: `ln ~/.ssh/id notes/a.txt`. Nothing tells where the other names are (test_links.py).
        target.needs.append(f'{target.shown} has more than one name (hard links); the others may lie elsewhere.')


def has_more_names(target: PathTarget) -> bool:
    """Whether the content of a file that has further names, hard links, is read or replaced."""
    status = target.place.status
    return target.use in ('read', 'write', 'edit') and status is not None and status.st_nlink > 1


def _check_change(target: PathTarget, roots_below: Sequence[SandboxRoot]) -> None:
    if target.root.config.mode != 'rw':
        raise PermissionError(f'{target.shown} cannot be changed: {target.root.name} is read-only.')
    # Attack: `.git` is a link to a directory of another name (test_control_files.py).
    if any(map(is_control, (target.place.names, *target.place.links))):
        raise PermissionError(f'{target.shown} belongs to git or to the approval rules, which are never changed.')
    if target.is_root and target.use != 'make':
        raise PermissionError(f'{target.shown} is the whole of {target.root.name}; name a file in it.')
    if roots_below and target.use != 'make':
        # Attack: moving or replacing a directory strips what lies in it of its rules (test_overlap.py).
        inner = roots_below[0].name
        raise PermissionError(f'{target.shown} contains {inner}, which has rules of its own, so it stays where it is.')


def _check_kind(target: PathTarget) -> None:
    place, use = target.place, target.use
    if use == 'list':
        if not place.is_folder and not place.is_missing:
            raise PermissionError(f'{target.shown} is no directory.')
        return
    if use == 'put' and not place.is_missing:
        raise PermissionError(f'{target.shown} exists already, and a directory replaces nothing.')
    if place.is_folder and use in ('read', 'write', 'edit'):
        raise PermissionError(f'{target.shown} is a directory; name a file.')
    if place.status is None:
        return
    if use == 'make':
        raise PermissionError(f'{target.shown} is a file.')
    if target.is_link and use == 'delete':
        return
    if target.is_link:
        raise PermissionError(f'{target.shown} is a symbolic link, which cannot be moved.')
    if not stat.S_ISREG(place.status.st_mode):
        raise PermissionError(f'{target.shown} is neither a file nor a directory.')


def _check_tree(target: PathTarget) -> None:
    """A directory goes with all it contains, so the rules hold for all of that."""
    try:
        for path, status in tree(target.place.parent, target.place.name):
            inner = _inner(target, path)
            if is_control(path.split('/')):
                raise PermissionError(f'{inner} belongs to git or to the approval rules, which are never changed.')
            if stat.S_ISDIR(status.st_mode) or (stat.S_ISLNK(status.st_mode) and target.use == 'delete'):
                continue
            if not stat.S_ISREG(status.st_mode):
                raise PermissionError(f'{inner} is neither a file nor a directory, so {target.shown} stays.')
            _check_suffix(inner, path, target.root)
    except OSError as error:
        if error.errno is None:  # one of those above
            raise
        raise PermissionError(f'{target.shown} cannot be looked through: {error.strerror}.') from None


def check_suffixes_below(source: PathTarget, root: SandboxRoot) -> None:
    """Refuse to move a directory to where the names of its files are not allowed.

    Raises:
        PermissionError: They are not.
    """
    for path, status in tree(source.place.parent, source.place.name):
        if not stat.S_ISDIR(status.st_mode):
            _check_suffix(_inner(source, path), path, root)


def _inner(target: PathTarget, path: str) -> str:
    # A name is as secret as the list that has it.
    return (
        f'Something in {target.shown}' if target.root.config.read_approval else printable(f'{target.key}/{path}', 300)
    )


def _check_suffix(shown: str, path: str, root: SandboxRoot) -> None:
    if not has_suffix(os.path.basename(path), root.config.suffixes):
        raise PermissionError(f'{shown} has a suffix that is not allowed in {root.name}.')
