"""A profile as a list of mounts, so that the kernel's view of the files grants what the profile does, or less.

Three things make this more than one mount for each root:

- A name that does not exist cannot be mounted over, and a mount point must not be made in somebody's workspace. The
  folder it would be made in becomes *frozen*: nothing new, nothing renamed or deleted directly in it, while what it
  holds stays as open as it was. The same goes for a symbolic link, which cannot be mounted over either.
- A mount does not keep the folder above it from being renamed, and another one from being made in its place. So every
  folder between a writable root and what is closed in it is *pinned*: mounted onto itself, which the kernel refuses to
  rename or delete.
- Endings of files cannot be mounted. A root that is limited to some is closed as a whole.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .profile import Access, OSProfile, OSSandboxError, Step, covers, trail, way_to_root

MOST_FROZEN_ENTRIES = 200
"""Chosen: each is a mount. The entries of a fuller folder that is frozen are read-only."""

FROZEN = 'commands can make, rename and delete nothing directly in'
"""How the note on a frozen folder begins; the folder follows."""

_KERNEL = ('/dev', '/proc', '/sys')
"""Made anew for the command, or left out; no root opens anything of the host's."""
_TEMPORARY = '/tmp'
_LINKS = (
    '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc/localtime', '/etc/os-release', '/etc/resolv.conf',
)  # fmt: skip
"""Where programs look, and where many systems have a symbolic link."""

MountKind = Literal['write', 'read', 'empty', 'mask', 'proc', 'dev', 'temporary', 'folder', 'link', 'lock']


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One thing to do, in order; a later one covers an earlier one."""

    kind: MountKind
    """`write` and `read` show the host's own path, `empty` an empty folder, `mask` something that cannot be read;
    `folder` makes one, `link` a symbolic link; `lock` makes an earlier mount of ours read-only."""
    path: str
    """Where, the same inside and outside."""
    target: str = ''
    """Of a `link`: what it leads to."""
    source: str = ''
    """Of `write` and `read`: what is shown instead of the host's own path; a part of a layer."""


@dataclass(frozen=True, kw_only=True)
class MountPlan:
    """What a backend that mounts has to do."""

    mounts: tuple[Mount, ...]
    """In order."""
    notes: tuple[str, ...]
    """Where the plan is stricter than the profile, and what to do about it, for a person."""
    frozen: Mapping[str, tuple[str, ...]]
    """Each folder that is frozen, with the paths in it that are missing or symbolic links, and must stay so."""


Change = Callable[[Iterable[Mount]], Iterable[Mount]]
"""Puts layers into a plan: takes its mounts and gives those to make instead."""


def plan_mounts(profile: OSProfile, cwd: str, change: Change | None = None) -> MountPlan:
    """Look at the files as they are now, and say what to mount.

    Args:
        profile: What may be touched.
        cwd: A folder that has to exist inside, be it empty.
        change: Puts layers into it.

    Raises:
        OSSandboxError: A root leads elsewhere than when the profile was made, `cwd` is not a folder, links lead in a
            circle, or a folder cannot be searched.
    """
    return _Planner(profile).plan(cwd, change)


def as_mounted(profile: OSProfile) -> OSProfile:
    """What mounts alone can open of a profile, by where paths lead.

    Raises:
        OSSandboxError: Links lead in a circle, or a folder cannot be searched.
    """
    return OSProfile(
        roots=tuple(root if root.suffixes is None else replace(root, access=Access.NONE) for root in profile.roots),
        hidden=(*_KERNEL, *(trail(path)[1] for path in profile.hidden)),
        protected=tuple(trail(path)[1] for path in profile.protected),
    )


class _Planner:
    """One plan in the making."""

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
                    f'commands cannot use {root.path}: here the OS sandbox cannot keep to `suffixes`, so they get none '
                    f'of '
                    'it; the file tools do. Leave `suffixes` out if commands need it'
                )
            if way and way[-1].kind == 'missing':
                self.notes.append(f'{root.path}: it does not exist, so it is not there')
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
        mounts.sort(key=lambda mount: 0 if mount.path == '/' else mount.path.count('/'))
        # Root owns the settings of the kernel in `/proc/sys`, and needs no capability to write what it owns
        # (`test_root_cannot_set_the_kernel`).
        locks = [Mount(kind='lock', path=mount.path) for mount in mounts if mount.kind in ('empty', 'proc')]
        if self.level('/') is Access.NONE:
            locks.append(Mount(kind='lock', path='/'))
        frozen = {folder: tuple(sorted(found)) for folder, found in self.frozen.items()}
        return MountPlan(mounts=(*mounts, *self._start(cwd), *locks), notes=tuple(self.notes), frozen=frozen)

    def level(self, path: str) -> Access:
        """How far a path without links is open by mounts alone."""
        if path not in self.levels:
            self.levels[path] = self.mounted.access(path)
        return self.levels[path]

    def _hold(self, step: Step) -> None:
        """Keep a step from being replaced, if it could be."""
        folder = posixpath.dirname(step.path)
        if self.level(folder) < Access.WRITE:
            return
        if step.kind in ('folder', 'file'):
            self.pinned.add(step.path)
        else:
            self.frozen.setdefault(folder, {})[step.path] = step

    def _entries(self, folder: str) -> set[str]:
        """What stays as open as it was in a frozen folder."""
        try:
            with os.scandir(folder) as found:
                entries = [
                    each.path
                    for each in found
                    if each.is_dir(follow_symlinks=False) or each.is_file(follow_symlinks=False)
                ]
        except OSError as error:
            raise OSSandboxError(f'it cannot be listed: {error.strerror}', path=folder) from error
        if len(entries) > MOST_FROZEN_ENTRIES:
            self.notes.append(f'{folder}: it holds more than {MOST_FROZEN_ENTRIES} entries, so they are read-only')
            return set()
        return set(entries)

    def _mounts(self, path: str) -> Iterator[Mount]:
        """What to do at a boundary; nothing if it is as open as what is around it."""
        level = Access.READ if path in self.frozen else self.level(path)
        folder = posixpath.dirname(path)
        around = Access.READ if folder in self.frozen else self.level(folder)
        if path == '/':
            around = Access.NONE
        if path in _KERNEL or (level == around and path not in self.pinned):
            return
        kind = trail(path)[0][-1].kind if path != '/' else 'folder'
        if kind in ('missing', 'link'):
            # Nobody can make it: the folder around it is frozen or not writable.
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
    return f'{FROZEN} {folder} while {", and ".join(why)}; a folder of each name, made by you, lifts this'
