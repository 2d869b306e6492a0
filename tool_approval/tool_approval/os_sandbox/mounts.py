"""Turn a profile into a list of mounts, so that the kernel opens what the profile opens, or less.

One mount for each root is not enough, for three reasons:

- Nothing can be mounted over a missing name, and a mount point must not be created in the user's workspace. The folder
  around the missing name is *frozen* instead: commands cannot create, rename or delete anything directly in it, while
  its entries stay as open as before. A symbolic link cannot be mounted over either, and is handled the same way.
- The folder above a mount could be renamed and replaced. So every folder between a writable root and a closed path in
  it is *pinned*: mounted onto itself, which makes the kernel refuse to rename or delete it.
- A mount cannot depend on file endings. A root that is limited to suffixes is closed as a whole.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .profile import Access, OSProfile, OSSandboxError, Step, covers, trail, way_to_root

MOST_FROZEN_ENTRIES = 200
"""Chosen: maximum entries of a frozen folder that are mounted one by one. In a frozen folder with more entries, all of
them are read-only."""

FROZEN = 'commands cannot make, rename or delete anything directly in'
"""Beginning of the note on a frozen folder, followed by its path."""

_KERNEL = ('/dev', '/proc', '/sys')
"""Folders of the kernel. No root opens the host's folders: a command gets its own, empty folders or none."""
_TEMPORARY = '/tmp'
_LINKS = (
    '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc/localtime', '/etc/os-release', '/etc/resolv.conf',
)  # fmt: skip
"""Paths where programs look for other programs or libraries, and where many systems have a symbolic link."""

MountKind = Literal['write', 'read', 'empty', 'mask', 'proc', 'dev', 'temporary', 'folder', 'link', 'lock']


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One mount. A later mount covers an earlier one."""

    kind: MountKind
    """`write` and `read` show a path of the host, `empty` an empty folder, `mask` a file that cannot be read. `folder`
    creates a folder, `link` a symbolic link. `lock` makes an earlier mount read-only. `proc`, `dev` and `temporary`
    are new file systems of their kind."""
    path: str
    """Path of the mount, the same inside and outside."""
    target: str = ''
    """Target of a `link`."""
    source: str = ''
    """For `write` and `read`: the part of a layer to show instead of the host's path. An empty value shows the host's
    path."""


@dataclass(frozen=True, kw_only=True)
class MountPlan:
    """The mounts for a profile."""

    mounts: tuple[Mount, ...]
    """Mounts, in the order to make them."""
    notes: tuple[str, ...]
    """Sentences for the user that say where the plan is stricter than the profile, and what to do about it."""
    frozen: Mapping[str, tuple[str, ...]]
    """Paths of the missing names and symbolic links that freeze a folder and must not change, by frozen folder."""


Change = Callable[[Iterable[Mount]], Iterable[Mount]]
"""Function that adds layers to a plan: it takes the mounts and returns the mounts to make instead."""


def plan_mounts(profile: OSProfile, cwd: str, change: Change | None = None) -> MountPlan:
    """Return the mounts for a profile, according to the files as they are now.

    Args:
        profile: The profile of the command.
        cwd: A folder that must exist in the sandbox. If the profile does not open the folder, it is empty.
        change: Function that adds layers to the mounts.

    Raises:
        OSSandboxError: A root leads elsewhere than when the profile was made, `cwd` is not a folder, symbolic links
            form a loop, or a folder cannot be searched.
    """
    return _Planner(profile).plan(cwd, change)


def as_mounted(profile: OSProfile) -> OSProfile:
    """Return the part of a profile that mounts can open, with its symbolic links resolved.

    Raises:
        OSSandboxError: Symbolic links form a loop, or a folder cannot be searched.
    """
    return OSProfile(
        roots=tuple(root if root.suffixes is None else replace(root, access=Access.NONE) for root in profile.roots),
        hidden=(*_KERNEL, *(trail(path)[1] for path in profile.hidden)),
        protected=tuple(trail(path)[1] for path in profile.protected),
    )


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

    def plan(self, cwd: str, change: Change | None) -> MountPlan:
        boundaries = {root.path for root in self.profile.roots} | {*self.mounted.hidden, *self.mounted.protected}
        steps = list(self.denied_steps)
        for root in self.profile.roots:
            way = way_to_root(root)
            if root.suffixes is not None and root.access > Access.NONE:
                self.notes.append(
                    f'commands cannot use {root.path}, because the OS sandbox cannot enforce `suffixes`; only file '
                    'tools can. Remove `suffixes` if commands need this folder'
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
        mounts += self._private(mounts)
        if change is not None:
            mounts = list(change(mounts))
        # By depth, so that what is inside comes after what it is in; the sort is stable.
        # By depth, so that a mount comes after those around it; the sort is stable.
        mounts.sort(key=lambda mount: 0 if mount.path == '/' else mount.path.count('/'))
        # Root owns the kernel's settings in `/proc/sys`, and needs no capability to write to its own files
        # (`test_root_cannot_set_the_kernel`).
        locks = [Mount(kind='lock', path=mount.path) for mount in mounts if mount.kind in ('empty', 'proc')]
        if self.level('/') is Access.NONE:
            locks.append(Mount(kind='lock', path='/'))
        frozen = {folder: tuple(sorted(found)) for folder, found in self.frozen.items()}
        return MountPlan(mounts=(*mounts, *self._start(cwd), *locks), notes=tuple(self.notes), frozen=frozen)

    def level(self, path: str) -> Access:
        """Return the access that mounts alone give to a path without links."""
        if path not in self.levels:
            self.levels[path] = self.mounted.access(path)
        return self.levels[path]

    def _hold(self, step: Step) -> None:
        """Prevent a command from replacing a step, if its folder is writable."""
        folder = posixpath.dirname(step.path)
        if self.level(folder) < Access.WRITE:
            return
        if step.kind in ('folder', 'file'):
            self.pinned.add(step.path)
        else:
            self.frozen.setdefault(folder, {})[step.path] = step

    def _entries(self, folder: str) -> set[str]:
        """Return the entries of a frozen folder that stay as open as they were."""
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
        """Yield the mount for a path at which the access changes."""
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
        if self.level('/') > Access.NONE and os.path.isdir('/sys'):
            yield Mount(kind='empty', path='/sys')
        if self.level(_TEMPORARY) is Access.NONE:
            mounts[:] = [mount for mount in mounts if mount.path != _TEMPORARY]
            yield Mount(kind='temporary', path=_TEMPORARY)
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
    return f'{FROZEN} {folder} while {", and ".join(why)}; to allow this, create a folder with each of these names'
