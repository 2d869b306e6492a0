"""Define how each file operation uses its paths, and check the use of a path against the rules of its root."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tool_approval.core.errors import printable
from tool_approval.os_sandbox.git_forms import TOP, is_repository

from .content import MISSING, state_of, tree
from .names import components, fold, has_suffix, is_control
from .paths import SandboxRoot, WalkedPath

Operation = Literal['read_file', 'write_file', 'edit_file', 'list_files', 'make_directory', 'move', 'copy', 'delete']
"""Name of a file operation."""

Use = Literal['read', 'list', 'write', 'edit', 'make', 'take', 'put', 'delete']
"""How an operation uses a path. `take` is for the source of a move, `put` for the destination of a moved directory."""

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
"""How each operation uses its path and, for `move` and `copy`, its destination."""

OWN_LINKS: frozenset[Use] = frozenset({'take', 'delete'})
"""Kinds of use that apply to a symbolic link itself, and not to the link's target."""


_REPOSITORY = ('HEAD', 'objects', 'refs', 'commondir')
"""Names by which git takes a folder for a repository."""
_CHANGES, _READING = 'Changes in {} need approval.', 'Reading in {} needs approval.'


@dataclass(frozen=True, kw_only=True)
class PathTarget:
    """One resolved path of an operation, with an open descriptor for each directory on the path."""

    use: Use
    """How the operation uses the path."""
    root: SandboxRoot
    """Root that contains the path."""
    place: WalkedPath
    """Resolved path."""
    holds_secret: bool = False
    """Whether the operation would read a secret, or rename a secret so that it is no longer recognised."""
    given: str = ''
    """Path as the model gave it."""
    needs: list[str] = field(default_factory=list[str])
    """Reasons why approval is needed; empty if no approval is needed."""

    @property
    def path(self) -> str:
        """Path within the root; empty for the root itself."""
        return '/'.join(self.place.names[len(self.root.names) :])

    @property
    def key(self) -> str:
        """Root and path as `root:path`, unescaped."""
        return f'{self.root.name}:{self.path}'

    @property
    def shown(self) -> str:
        """Root and path for messages, escaped and shortened."""
        return printable(self.key, 300)

    @property
    def title(self) -> str:
        """Path to show to the approver: the given path if it contains no link or `..` and is stored so, else `key`."""
        # Attack: `a.py` is a link into another root, and the approver takes it for a local file (test_showing.py).
        is_literal = not (self.given.startswith('/') or self.place.links or self.place.left)
        return self.given if is_literal and self.is_stored_so else self.key

    @property
    def is_stored_so(self) -> bool:
        """Whether the path that is used ends with the names of the given path, in the same Unicode form."""
        given = components(self.given)
        return self.place.names[len(self.place.names) - len(given) :] == given

    @property
    def is_usual(self) -> bool:
        """Whether all reasons for approval are settings of the root, and none is a property of the file itself."""
        return set(self.needs) <= {each.format(self.root.name) for each in (_CHANGES, _READING)}

    @property
    def is_free_to_read(self) -> bool:
        """Whether the file can be read without approval. Changes to the file may need approval."""
        return set(self.needs) <= {_CHANGES.format(self.root.name)}

    @property
    def is_root(self) -> bool:
        """Whether the path is the root itself."""
        return len(self.place.names) == len(self.root.names)

    @property
    def is_link(self) -> bool:
        """Whether the path is a link that was not followed."""
        return self.place.status is not None and stat.S_ISLNK(self.place.status.st_mode)

    def state(self) -> str:
        """Return the current state of the file or directory.

        Raises:
            OSError: The file cannot be read.
        """
        if self.place.missing_folders or self.is_root:
            return MISSING
        return state_of(self.place.parent, self.place.name)


def check(target: PathTarget, roots_below: Sequence[SandboxRoot]) -> None:
    """Check the use of a path against the rules of its root, and record why approval is needed.

    Args:
        target: The resolved path. Reasons are added to `target.needs`.
        roots_below: Other roots that are equal to the path or below it.

    Raises:
        PermissionError: The rules forbid this use of the path. The message is for the model.
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
        # Attack: `ln ~/.ssh/id notes/a.txt`. The other names of a file cannot be found out (test_links.py).
        target.needs.append(f'{target.shown} has more than one name (hard links); the other names may be elsewhere.')


def has_more_names(target: PathTarget) -> bool:
    """Return whether the operation reads or replaces the content of a file that has several hard links."""
    status = target.place.status
    return target.use in ('read', 'write', 'edit') and status is not None and status.st_nlink > 1


def _check_change(target: PathTarget, roots_below: Sequence[SandboxRoot]) -> None:
    if target.root.config.mode != 'rw':
        raise PermissionError(f'{target.shown} cannot be changed: {target.root.name} is read-only.')
    # Attack: `.git` is a link to a directory of another name (test_decisions.py).
    if any(map(is_control, (target.place.names, *target.place.links))):
        raise PermissionError(f'{target.shown} belongs to git or to the approval rules, which no tool may change.')
    if _makes_repository(target.place.names, len(target.root.names)):
        raise PermissionError(
            f'{target.shown} is in a folder that git takes for a repository, or would take for one, which no tool may '
            'change.'
        )
    if target.is_root and target.use != 'make':
        raise PermissionError(f'{target.shown} is the directory {target.root.name} itself; name a file in it.')
    if roots_below and target.use != 'make':
        # Attack: moving or replacing a directory takes the roots in it out of their rules (test_overlap.py).
        inner = roots_below[0].name
        raise PermissionError(f'{target.shown} cannot be moved or deleted: {inner} in it has its own rules.')


def _makes_repository(names: Sequence[str], top: int) -> bool:
    """Return whether a path belongs to a folder that git takes for a repository, or would take for one with the path.

    Attack: `x/HEAD`, `x/objects/a`, `x/refs/a`, and an `x/config` with programs for the next `git status` in `x`
    (test_hostile_repository.py).

    Args:
        names: The components of the absolute path.
        top: The number of components of its root.
    """
    for at in range(top, len(names)):
        folder, name = '/' + '/'.join(names[:at]), fold(names[at])
        name = 'HEAD' if name == 'head' else name
        if TOP.fullmatch(name) is None:
            continue
        there = {each for each in (name, *_REPOSITORY) if each == name or os.path.lexists(f'{folder}/{each}')}
        is_complete = 'HEAD' in there and ('commondir' in there or {'objects', 'refs'} <= there)
        # Git looks at `.git` first.
        if is_complete and not (os.path.isfile(f'{folder}/.git') or is_repository(f'{folder}/.git')):
            return True
    return False


def _check_kind(target: PathTarget) -> None:
    place, use = target.place, target.use
    if use == 'list':
        if not place.is_folder and not place.is_missing:
            raise PermissionError(f'{target.shown} is not a directory.')
        return
    if use == 'put' and not place.is_missing:
        raise PermissionError(f'{target.shown} already exists, and a directory cannot replace it.')
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
    """Check everything in a moved or deleted directory against the rules."""
    try:
        for path, status in tree(target.place.parent, target.place.name):
            inner = _inner(target, path)
            if is_control(path.split('/')):
                raise PermissionError(f'{inner} belongs to git or to the approval rules, which no tool may change.')
            if stat.S_ISDIR(status.st_mode) or (stat.S_ISLNK(status.st_mode) and target.use == 'delete'):
                continue
            if not stat.S_ISREG(status.st_mode):
                raise PermissionError(f'{target.shown} cannot be moved or deleted: {inner} is not a file or directory.')
            _check_suffix(inner, path, target.root)
    except OSError as error:
        if error.errno is None:  # a PermissionError raised above
            raise
        raise PermissionError(f'{target.shown} cannot be searched: {error.strerror}.') from None


def check_suffixes_below(source: PathTarget, root: SandboxRoot) -> None:
    """Check that all files in a directory have suffixes that the destination root allows.

    Raises:
        PermissionError: A suffix is not allowed in the root.
    """
    for path, status in tree(source.place.parent, source.place.name):
        if not stat.S_ISDIR(status.st_mode):
            _check_suffix(_inner(source, path), path, root)


def _inner(target: PathTarget, path: str) -> str:
    # If listing the directory needs approval, a message must not reveal a name in it.
    return (
        f'Something in {target.shown}' if target.root.config.read_approval else printable(f'{target.key}/{path}', 300)
    )


def _check_suffix(shown: str, path: str, root: SandboxRoot) -> None:
    if not has_suffix(os.path.basename(path), root.config.suffixes):
        raise PermissionError(f'{shown} has a suffix that is not allowed in {root.name}.')
