"""Let one command write to copies of folders, and write the safe changes back after the command has ended."""

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
"""Maximum number of leftover folders to remove at a time. A killed process leaves one or two folders behind."""


def layer_problem(backend: OSSandboxBackend) -> str | None:
    """Return a message for the user if a backend does not support layers, else `None`."""
    if isinstance(backend, BubblewrapBackend):
        return None
    return f'the OS sandbox {backend.name} cannot give a command a copy of a folder; only bubblewrap can'


class Layer:
    """The copies that one command writes to. `open_layer` creates the object. Its methods block."""

    def __init__(
        self,
        backend: OSSandboxBackend,
        profile: OSProfile,
        parts: Sequence[GitLayer | NamesLayer],
        problems: Sequence[str],
    ) -> None:
        """Store the parts that `open_layer` created."""
        self.problems = tuple(problems)
        """A line for each layer that could not be created. Without layers, the command has only the access that
        its profile gives."""
        self._backend = backend
        self._profile = profile
        self._parts = parts

    def wrap(self, command: Sequence[str], cwd: str) -> list[str]:
        """Return the confined command line with the layers mounted; see `OSSandboxBackend.wrap`.

        Raises:
            OSSandboxError: The backend cannot enforce the profile of the layer.
        """
        if not self._parts or not isinstance(self._backend, BubblewrapBackend):
            return self._backend.wrap(command, self._profile, cwd)
        variables = {name: value for part in self._parts for name, value in part.variables().items()}
        environment = [f'{name}={value}' for name, value in variables.items()]
        return self._backend.wrap([ENV, *environment, *command], self._profile, cwd, change=self._change)

    def keep(self, cancelled: threading.Event) -> tuple[str, ...]:
        """Write the command's safe changes back to the original folders. Call this only if the command ended by itself.

        Args:
            cancelled: Event that another thread may set. If the event is set, the remaining changes are dropped.

        Returns:
            Lines that tell the approver and the model which refs were removed, and which changes were not kept and why.
        """
        lines = list(self.problems)
        # Do the slow part first, because it can be cancelled.
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
    """Create the layers for one command. At the end, delete the layers and all changes that were not kept.

    Args:
        extra: The extra access that an approver granted the command.
        profile: The profile of the command, including `extra`.
        backend: The backend that confines the command.

    Raises:
        OSSandboxError: A path of the profile cannot be resolved.
    """
    if (problem := layer_problem(backend)) is not None:
        yield Layer(backend, profile, (), (problem,))
        return
    parts: list[GitLayer | NamesLayer] = []
    problems: list[str] = []
    mounted = as_mounted(profile)
    with ExitStack() as stack:
        # Mount the names first: the mount of `.git` must be on top of the mount of its parent folder.
        for top in extra.names:
            held = plan_mounts(profile, top).frozen.get(top)
            if held is None:
                continue
            try:
                parts.append(NamesLayer(top, stack.enter_context(_staging(mounted, top)), mounted, held))
            except (LayerError, OSError) as error:
                problems.append(f'files cannot be added to or removed from {printable(top)}: {printable(str(error))}')
        for tree in extra.git:
            try:
                parts.append(GitLayer(tree, stack.enter_context(_staging(mounted)), mounted))
            except (LayerError, OSError, subprocess.SubprocessError) as error:
                problems.append(f'{printable(tree)}/.git cannot be written: {printable(str(error))}')
        yield Layer(backend, profile, parts, problems)


@contextmanager
def _staging(profile: OSProfile, near: str | None = None) -> Generator[str]:
    """Create an empty folder that no command can access.

    Args:
        profile: The profile of the command.
        near: Path to which files will be moved. The folder is created on the path's file system. `None` permits any.

    Raises:
        LayerError: Commands can access every folder in which the new folder could be created.
    """
    places = [tempfile.gettempdir(), os.path.expanduser('~/.cache'), os.path.expanduser('~')]
    for place in (os.path.realpath(place) for place in places):
        is_near = near is None or (os.path.isdir(place) and os.stat(place).st_dev == os.stat(near).st_dev)
        # A hidden folder is suitable, too: a command cannot access anything below it.
        if is_near and profile.access(place) is Access.NONE and os.access(place, os.W_OK):
            break
    else:
        raise LayerError('temporary files need a folder that is hidden from commands')
    _sweep(place)
    folder = tempfile.mkdtemp(prefix=_NEW, dir=place)
    try:
        with open(os.path.join(folder, _LOCK), 'xb') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Rename after locking: a folder with the final name and without a lock belongs to a dead process.
            named = os.path.join(place, _NAME + os.path.basename(folder).removeprefix(_NEW))
            os.rename(folder, named)
            folder = named
            yield folder
    finally:
        _remove(folder)


def _sweep(place: str) -> None:
    """Remove the layers of killed processes. Do nothing if the folder cannot be listed."""
    with suppress(PermissionError), os.scandir(place) as found:
        paths = [entry.path for entry in islice(found, _MOST_LOOKED_AT) if entry.name.startswith(_NAME)]
        for path in islice(filter(_is_left, paths), _MOST_SWEPT):
            _remove(path)


def _is_left(folder: str) -> bool:
    """Whether the folder was created by a process of this user, and that process has ended."""
    with suppress(OSError):
        status = os.lstat(folder)
        if (status.st_mode & ~stat.S_ISGID, status.st_uid) != (stat.S_IFDIR | stat.S_IRWXU, os.geteuid()):
            return False
        with suppress(FileNotFoundError):  # its removal was interrupted
            lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(lock)
        return True
    return False


def _remove(folder: str) -> None:
    """Remove a folder, even if a command took away permissions or made a tree that is too deep for `shutil.rmtree`."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        for command in (['chmod', '-R', 'u+rwX'], ['rm', '-rf']):
            # Attack: `PATH` of this process may contain a `chmod` that a command wrote.
            subprocess.run([*command, '--', folder], env={'PATH': os.defpath}, stderr=subprocess.DEVNULL, check=False)
