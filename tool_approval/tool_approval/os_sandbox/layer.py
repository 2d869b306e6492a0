"""Layers for one command: what it may write is a copy, and what may be kept of that is written back afterwards."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import Final

from tool_approval.core.errors import printable

from .access import ExtraAccess
from .backend import ENV, OSSandboxBackend
from .bubblewrap import BubblewrapBackend
from .git_files import LayerError
from .git_layer import GitLayer
from .mounts import Mount, as_mounted, plan_mounts
from .names_layer import NamesLayer
from .profile import Access, OSProfile

_NEW: Final = 'tool-approval-new-'
_NAME: Final = 'tool-approval-layer-'
_LOCK: Final = 'lock'
_MOST_LOOKED_AT: Final = 10_000
_MOST_SWEPT: Final = 5
"""Chosen: a process that was killed leaves one or two folders; the next layer goes on with more."""


def layer_problem(backend: OSSandboxBackend) -> str | None:
    """Why commands of a backend have no layers, for a person; `None` if they have."""
    if isinstance(backend, BubblewrapBackend):
        return None
    return f'the OS sandbox {backend.name} cannot show a command a copy in the place of a folder; only bubblewrap can'


class Layer:
    """What one command writes, before it is kept. Made by `open_layer`; its methods block."""

    def __init__(
        self,
        backend: OSSandboxBackend,
        profile: OSProfile,
        parts: Sequence[GitLayer | NamesLayer],
        problems: Sequence[str],
    ) -> None:
        """Hold what was opened."""
        self.problems = tuple(problems)
        """Where there is no layer though one was asked for, and why. There the command can do what it always can."""
        self._backend = backend
        self._profile = profile
        self._parts = parts

    def wrap(self, command: Sequence[str], cwd: str) -> list[str]:
        """See `OSSandboxBackend.wrap`; the profile is the one that the layer was opened for.

        Raises:
            OSSandboxError: Likewise.
        """
        if not self._parts or not isinstance(self._backend, BubblewrapBackend):
            return self._backend.wrap(command, self._profile, cwd)
        variables = {name: value for part in self._parts for name, value in part.variables().items()}
        environment = [f'{name}={value}' for name, value in variables.items()]
        return self._backend.wrap([ENV, *environment, *command], self._profile, cwd, change=self._change)

    def keep(self, cancelled: threading.Event) -> tuple[str, ...]:
        """Write back what may be kept. Call it once the command has ended by itself, whatever it returned.

        Args:
            cancelled: May be set by another thread: what is not being written yet is not kept then.

        Returns:
            Lines for the model and for a person: what was dropped or removed, and why something was not kept.
        """
        lines = list(self.problems)
        # What takes long, and may be cancelled, goes first.
        for part in reversed(self._parts):
            if not cancelled.is_set():
                lines += part.keep(self._backend, cancelled)
        return tuple(lines)

    def _change(self, mounts: Iterable[Mount]) -> Iterable[Mount]:
        for part in self._parts:
            mounts = part.change(mounts)
        return mounts


@contextmanager
def open_layer(extra: ExtraAccess, profile: OSProfile, backend: OSSandboxBackend) -> Generator[Layer]:
    """Make the layers for one command, and throw them away in the end, with all that was not kept.

    Args:
        extra: What an approver allowed it.
        profile: What it may touch, `extra` included.
        backend: Who confines it.

    Raises:
        OSSandboxError: The profile cannot be followed.
    """
    if (problem := layer_problem(backend)) is not None:
        yield Layer(backend, profile, (), (problem,))
        return
    parts: list[GitLayer | NamesLayer] = []
    problems: list[str] = []
    mounted = as_mounted(profile)
    with ExitStack() as stack:
        # Names first: `.git` comes on top of the folder that it is in.
        for top in extra.names:
            held = plan_mounts(profile, top).frozen.get(top)
            if held is None:
                continue
            try:
                parts.append(NamesLayer(top, stack.enter_context(_staging(mounted, top)), mounted, held))
            except (LayerError, OSError) as error:
                problems.append(f'names at the top of {printable(top)} cannot be changed: {printable(str(error))}')
        for tree in extra.git:
            try:
                parts.append(GitLayer(tree, stack.enter_context(_staging(mounted)), mounted))
            except (LayerError, OSError, subprocess.SubprocessError) as error:
                problems.append(f'{printable(tree)}/.git cannot be written: {printable(str(error))}')
        yield Layer(backend, profile, parts, problems)


@contextmanager
def _staging(profile: OSProfile, near: str | None = None) -> Generator[str]:
    """An empty folder of ours that no command reaches.

    Args:
        profile: What a command may touch.
        near: What has to be on the same file system, so that files can be moved there.

    Raises:
        LayerError: There is no such place.
    """
    places = [tempfile.gettempdir(), os.path.expanduser('~/.cache'), os.path.expanduser('~')]
    for place in (os.path.realpath(place) for place in places):
        is_near = near is None or (os.path.isdir(place) and os.stat(place).st_dev == os.stat(near).st_dev)
        # Below what is hidden a command does not get either.
        if is_near and profile.access(place) is Access.NONE and os.access(place, os.W_OK):
            break
    else:
        raise LayerError('no folder for temporary files suits')
    _sweep(place)
    folder = tempfile.mkdtemp(prefix=_NEW, dir=place)
    try:
        with open(os.path.join(folder, _LOCK), 'xb') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Only now: what has this name and is not locked belongs to a process that is gone.
            named = os.path.join(place, _NAME + os.path.basename(folder).removeprefix(_NEW))
            os.rename(folder, named)
            folder = named
            yield folder
    finally:
        _remove(folder)


def _sweep(place: str) -> None:
    """Remove layers of processes that were killed, where this user may list them."""
    with suppress(PermissionError), os.scandir(place) as found:
        paths = [entry.path for entry in islice(found, _MOST_LOOKED_AT) if entry.name.startswith(_NAME)]
        for path in islice(filter(_is_left, paths), _MOST_SWEPT):
            _remove(path)


def _is_left(folder: str) -> bool:
    """Whether a folder is one that a process of this user made, and that no process holds."""
    with suppress(OSError):
        status = os.lstat(folder)
        if (status.st_mode & ~stat.S_ISGID, status.st_uid) != (stat.S_IFDIR | stat.S_IRWXU, os.geteuid()):
            return False
        with suppress(FileNotFoundError):  # it was being removed
            lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(lock)
        return True
    return False


def _remove(folder: str) -> None:
    """Remove a folder, even if a command took permissions away in it, or nested more folders than Python follows."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        for command in (['chmod', '-R', 'u+rwX'], ['rm', '-rf']):
            # Attack: in a folder of this process's `PATH` may be a `chmod` that a command wrote.
            subprocess.run([*command, '--', folder], env={'PATH': os.defpath}, stderr=subprocess.DEVNULL, check=False)
