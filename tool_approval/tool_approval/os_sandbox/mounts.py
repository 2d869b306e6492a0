"""Turn a profile into a list of mounts that give a command at most the access that the profile gives.

It is not enough to mount each root, for three reasons:

- A mount over a missing file would need a mount point in the user's workspace. Instead, the folder of the file is
  *frozen*: commands cannot create, rename or delete anything directly in the folder, but can use its entries as before.
  A folder is also frozen if it contains a symbolic link that must not change.
- A command could rename the folder above a mount, and create a new folder with the old name. Therefore, every folder
  between a writable root and a restricted path in the root is *pinned*: the folder is mounted onto itself, so that the
  kernel refuses to rename or delete it.
- A mount cannot be limited to certain file suffixes. Therefore, commands cannot use a root with `suffixes`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .profile import Access, OSProfile, OSSandboxError, Step, covers, trail, way_to_root

MOST_FROZEN_ENTRIES = 200
"""Maximum number of entries of a frozen folder that are mounted one by one. If a frozen folder has more
entries than this, all its entries are read-only."""

FROZEN = 'commands cannot make, rename or delete anything directly in'
"""Beginning of the note on a frozen folder; the folder's path follows."""

_KERNEL = ('/dev', '/proc', '/sys')
"""Folders for the kernel's file systems. Commands get new file systems in `/dev` and `/proc`, and nothing in `/sys`."""
TEMPORARY = '/tmp'
"""Folder that is private to commands, unless the settings name it."""
_LINKS = (
    '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc/localtime', '/etc/os-release', '/etc/resolv.conf',
)  # fmt: skip
"""Paths that programs use and that are symbolic links on many systems."""

MountKind = Literal['write', 'read', 'empty', 'mask', 'proc', 'dev', 'temporary', 'folder', 'link', 'lock']


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One mount. A later mount hides an earlier one at the same path."""

    kind: MountKind
    """`write` and `read` mount a path of the host. `empty` mounts an empty folder, and `mask` mounts an unreadable
    file. `folder` creates a folder, and `link` creates a symbolic link. `lock` makes an earlier mount read-only.
    `proc` mounts a new procfs, `dev` mounts a new `/dev`, and `temporary` mounts a new tmpfs."""
    path: str
    """Path of the mount in the sandbox."""
    target: str = ''
    """Target of a `link`."""
    source: str = ''
    """Path on the host of a file that is mounted in place of another; empty if the path on the host is the same."""


@dataclass(frozen=True, kw_only=True)
class MountPlan:
    """The mounts for a profile."""

    mounts: tuple[Mount, ...]
    """Mounts, in the order in which they must be made."""
    notes: tuple[str, ...]
    """Notes for the user about paths where the mounts give less access than the profile. Some name a remedy."""
    frozen: Mapping[str, tuple[str, ...]]
    """Frozen folders. Each folder is frozen because the listed paths in it do not exist or are symbolic links."""

    @property
    def has_own_tmp(self) -> bool:
        """Whether `/tmp` is private and nothing else is mounted in it, so that commands can share it.

        Attack: a command makes a link in `/tmp` where bubblewrap then makes a mount for the next command
        (`test_shared.py`).
        """
        at_tmp = [each for each in self.mounts if covers((TEMPORARY,), each.path)]
        return [(each.kind, each.path) for each in at_tmp] == [('temporary', TEMPORARY)]


def plan_mounts(profile: OSProfile, cwd: str) -> MountPlan:
    """Return the mounts that enforce a profile, given the files that exist now.

    Args:
        profile: The profile of the command.
        cwd: Working directory of the command. A command without access to this folder sees an empty folder instead.

    Raises:
        OSSandboxError: A root now resolves to a different path than in the profile, `cwd` is not a folder, symbolic
            links form a loop, or a folder cannot be searched.
    """
    return _Planner(profile).plan(cwd)


def as_mounted(profile: OSProfile) -> OSProfile:
    """Return a copy of a profile, limited to the access that mounts can give. All symbolic links are resolved.

    Raises:
        OSSandboxError: Symbolic links form a loop, or a folder cannot be searched.
    """
    return OSProfile(
        roots=tuple(root if root.suffixes is None else replace(root, access=Access.NONE) for root in profile.roots),
        hidden=(*_KERNEL, *(trail(path)[1] for path in profile.hidden)),
        protected=tuple(trail(path)[1] for path in profile.protected),
    )


def without_missing(profile: OSProfile) -> tuple[OSProfile, tuple[str, ...]]:
    """Return a profile without the restricted paths that do not exist, and these paths.

    No mount can cover these paths. If a command runs under the returned profile, `sweep` has to remove what it makes at
    one of them.
    """
    protected = tuple(path for path in profile.protected if os.path.lexists(path))
    roots = tuple(each for each in profile.roots if each.access is Access.WRITE or os.path.lexists(each.path))
    missing = {*profile.protected, *(each.path for each in profile.roots)} - {
        *protected,
        *(each.path for each in roots),
    }
    return replace(profile, protected=protected, roots=roots), tuple(sorted(missing))


class _Planner:
    """Builds one plan."""

    def __init__(self, profile: OSProfile) -> None:
        self.profile = profile
        self.levels: dict[str, Access] = {}
        self.notes: list[str] = []
        self.pinned: set[str] = set()
        self.frozen: dict[str, dict[str, Step]] = {}
        self.denied_steps = [
            step for path in (*profile.hidden, *profile.protected, *profile.held) for step in trail(path)[0]
        ]
        self.mounted = as_mounted(profile)

    def plan(self, cwd: str) -> MountPlan:
        boundaries = {root.path for root in self.profile.roots} | {*self.mounted.hidden, *self.mounted.protected}
        steps = list(self.denied_steps)
        for root in self.profile.roots:
            way = way_to_root(root)
            if root.suffixes is not None and root.access > Access.NONE:
                self.notes.append(
                    f'only file tools can use {root.path}, because the OS sandbox cannot enforce `suffixes`. Remove '
                    '`suffixes` if commands need this folder'
                )
            if way and way[-1].kind == 'missing':
                self.notes.append(f'{root.path} does not exist, so commands cannot use it')
            if self.level(root.path) < Access.WRITE:
                steps += way
        for step in steps:
            self._hold(step)
        self.notes += [_frozen_note(folder, found.values()) for folder, found in self.frozen.items()]
        for folder in sorted(self.frozen):
            boundaries |= self._entries(folder)
        mounts = [
            mount for path in sorted(boundaries | self.pinned | self.frozen.keys()) for mount in self._mounts(path)
        ]
        # Even a writable file: the copy is for reading.
        copied = [pair for pair in self.profile.copies if self.level(pair[0]) > Access.NONE and os.path.isfile(pair[0])]
        mounts = [each for each in mounts if each.path not in dict(copied)]
        mounts += [Mount(kind='read', path=path, source=source) for path, source in copied]
        mounts += self._private(mounts)
        # By depth, so that a mount comes after those around it; the sort is stable.
        mounts.sort(key=lambda mount: 0 if mount.path == '/' else mount.path.count('/'))
        # Root owns the kernel's settings in `/proc/sys`, and needs no capability to write to its own files
        # (`test_root_cannot_set_the_kernel`).
        locks = [Mount(kind='lock', path=mount.path) for mount in mounts if mount.kind in ('empty', 'proc', 'dev')]
        if self.level('/') is Access.NONE:
            locks.append(Mount(kind='lock', path='/'))
        frozen = {folder: tuple(sorted(found)) for folder, found in self.frozen.items()}
        return MountPlan(mounts=(*mounts, *self._start(cwd), *locks), notes=tuple(self.notes), frozen=frozen)

    def level(self, path: str) -> Access:
        """Return the access that the mounts give to a path. The path must contain no symbolic links."""
        if path not in self.levels:
            self.levels[path] = self.mounted.access(path)
        return self.levels[path]

    def _hold(self, step: Step) -> None:
        """If the folder of `step` is writable, prevent commands from replacing `step`."""
        folder = posixpath.dirname(step.path)
        if self.level(folder) < Access.WRITE:
            return
        if step.kind in ('folder', 'file'):
            self.pinned.add(step.path)
        else:
            self.frozen.setdefault(folder, {})[step.path] = step

    def _entries(self, folder: str) -> set[str]:
        """Return the entries of a frozen folder. Each entry is mounted, so that commands can still use the entry."""
        try:
            with os.scandir(folder) as found:
                entries = [
                    each.path
                    for each in found
                    if each.is_dir(follow_symlinks=False) or each.is_file(follow_symlinks=False)
                ]
        except OSError as error:
            raise OSSandboxError(f'the folder cannot be listed: {error.strerror}', path=folder) from error
        if len(entries) > MOST_FROZEN_ENTRIES:
            self.notes.append(f'{folder} has more than {MOST_FROZEN_ENTRIES} entries, so commands can only read them')
            return set()
        return set(entries)

    def _mounts(self, path: str) -> Iterator[Mount]:
        """Yield a mount for a path if the access differs from that of the parent folder, or if the path is pinned."""
        level = Access.READ if path in self.frozen else self.level(path)
        folder = posixpath.dirname(path)
        around = Access.READ if folder in self.frozen else self.level(folder)
        if path == '/':
            around = Access.NONE
        if path in _KERNEL or (level == around and path not in self.pinned):
            return
        kind = trail(path)[0][-1].kind if path != '/' else 'folder'
        if kind in ('missing', 'link'):
            # A command cannot create it: the folder around it is frozen or not writable.
            return
        if level is Access.NONE:
            yield Mount(kind='empty' if kind == 'folder' else 'mask', path=path)
            return
        yield Mount(kind='write' if level is Access.WRITE else 'read', path=path)

    def _private(self, mounts: list[Mount]) -> Iterator[Mount]:
        yield Mount(kind='proc', path='/proc')
        yield Mount(kind='dev', path='/dev')
        yield Mount(kind='temporary', path='/dev/shm')
        if self.level('/') > Access.NONE and os.path.isdir('/sys'):
            yield Mount(kind='empty', path='/sys')
        if self.level(TEMPORARY) is Access.NONE:
            mounts[:] = [mount for mount in mounts if mount.path != TEMPORARY]
            yield Mount(kind='temporary', path=TEMPORARY)
        for path in _LINKS:
            real = os.path.realpath(path)
            is_hidden = self.level(posixpath.dirname(path)) is Access.NONE
            if os.path.islink(path) and is_hidden and self.level(real) > Access.NONE:
                yield Mount(kind='link', path=path, target=real)

    def _start(self, cwd: str) -> Iterator[Mount]:
        if not os.path.isdir(cwd):
            raise OSSandboxError('the working directory is not a folder', path=cwd)
        real = os.path.realpath(cwd)
        if self.level(real) is Access.NONE and not covers(_KERNEL, real):
            yield Mount(kind='folder', path=real)


def _frozen_note(folder: str, steps: Collection[Step]) -> str:
    names = ', '.join(posixpath.basename(step.path) for step in steps if step.kind == 'missing')
    links = ', '.join(posixpath.basename(step.path) for step in steps if step.kind == 'link')
    why = [f'it has no {names}'] * bool(names) + [f'{links} is a symbolic link'] * bool(links)
    return f'{FROZEN} {folder} while {", and ".join(why)}; to lift this limit, make a real file or folder for each name'
