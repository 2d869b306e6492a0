"""Write a layer's kept changes to the repository while holding git's locks. The repository is valid at all times."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from .git_files import LayerError, without_refs

Kept = Mapping[str, bytes]
"""Content of each file that a layer can write back, by path below `.git`. Packed refs are included. Objects are not."""


class PartlyWritten(Exception):
    """Raised if an error occurs after some of the changes were written."""


_PATIENCE_S: Final = 1.0
"""Seconds to wait for a lock. A shell prompt or an editor releases its git locks within this time."""
_FIRST: Final = ('shallow',)
_LAST: Final = ('COMMIT_EDITMSG', 'index')


def write_back(
    git: str,
    changes: Mapping[str, bytes | None],
    before: Kept,
    *,
    read: Callable[[], tuple[Kept, bytes]],
    objects: str,
    index_time_ns: int,
) -> None:
    """Write objects, then refs, then the index, unless another program has changed the repository.

    Args:
        git: The `.git` folder.
        changes: The new content of each changed file by name; `None` for a removed file.
        before: The content at the time when the layer was created.
        read: Function that returns a pair: a mapping from names to current content, and the content of `packed-refs`.
        objects: A folder with the verified new objects and packs.
        index_time_ns: The time at which the command wrote the index. Git compares a file with the index again if the
            file changed at this time or later.

    Raises:
        LayerError: Another program changed the repository or holds a lock. No change was written.
        PartlyWritten: Writing failed. Changes that were written before the error are not undone.
    """
    gone = frozenset(name for name, data in changes.items() if data is None and name.startswith('refs/'))
    locked = {name for name in changes if not name.startswith('logs/')} | {'HEAD'}
    with _locks(git, sorted(locked | ({'packed-refs'} if gone else set[str]()))) as write:
        now, packed = read()
        if any(now.get(name) != before.get(name) for name in {*changes, 'HEAD'}):
            raise LayerError('another program changed the repository in the meantime')
        try:
            _add_objects(objects, os.path.join(git, 'objects'))
            left = without_refs(packed, gone)
            if left != packed:
                write('packed-refs', left)
            for name, data in sorted(changes.items(), key=_order):
                path = os.path.join(git, name)
                if data is None:
                    with suppress(FileNotFoundError):
                        os.unlink(path)
                elif name.startswith('logs/'):
                    _log(path, before.get(name, b''), data)
                else:
                    write(name, data, index_time_ns if name == 'index' else None)
        except OSError as error:
            raise PartlyWritten(str(error)) from error


def _order(change: tuple[str, bytes | None]) -> tuple[int, bool, str]:
    name, data = change
    place = 1 if name.startswith('refs/') else 2 if name.startswith('logs/') else 3
    place = 0 if name in _FIRST else 4 + _LAST.index(name) if name in _LAST else place
    return place, data is not None, name


@contextmanager
def _locks(git: str, names: list[str]) -> Generator[Callable[..., None]]:
    """Create a lock file next to each file, as git does, and yield a function that writes to a locked file."""
    held: set[str] = set()

    def write(name: str, data: bytes, time_ns: int | None = None) -> None:
        lock = f'{git}/{name}.lock'
        with open(lock, 'wb') as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        if time_ns is not None:
            os.utime(lock, ns=(time_ns, time_ns))
        os.rename(lock, f'{git}/{name}')
        held.discard(name)

    try:
        until = time.monotonic() + _PATIENCE_S
        for name in names:
            _lock(f'{git}/{name}', until)
            held.add(name)
        yield write
    finally:
        for name in held:
            # A missing lock is ignored, so that it hides no other error and the other locks are removed.
            with suppress(FileNotFoundError):
                os.unlink(f'{git}/{name}.lock')


def _lock(path: str, until: float) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Like git, remove empty folders of former branches, so that a branch can have the folder's name.
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)
    except OSError as error:
        raise LayerError(f'a name is both a ref and a folder of refs ({error.strerror})') from error
    while True:
        try:
            with open(f'{path}.lock', 'xb'):
                return
        except FileExistsError:
            if time.monotonic() > until:
                raise LayerError(f'`{os.path.basename(path)}.lock` exists: git is running or was killed') from None
            time.sleep(0.02)


def _log(path: str, before: bytes, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if data.startswith(before):
        with open(path, 'ab') as log:
            log.write(data[len(before) :])
        return
    with open(f'{path}.lock', 'xb') as log:
        log.write(data)
    os.rename(f'{path}.lock', path)


def _add_objects(source: str, destination: str) -> None:
    """Copy the missing objects. Each pack is copied before its index, because git uses a pack once its index exists."""
    mode = os.stat(destination).st_mode & 0o2777
    names = [
        os.path.relpath(os.path.join(folder, name), source)
        for folder, _, found in os.walk(source)
        for name in found
        if not folder.endswith('/info')
    ]
    for name in sorted(names, key=lambda name: (name.endswith('.idx'), name)):
        path = os.path.join(destination, name)
        if os.path.lexists(path):
            continue
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.mkdir(folder)
            os.chmod(folder, mode)
        # With this name, `git gc` removes the file later if this process ends now.
        temporary = os.path.join(folder, f'tmp_obj_{os.urandom(8).hex()}')
        with open(os.path.join(source, name), 'rb') as opened, open(temporary, 'xb') as copy:
            shutil.copyfileobj(opened, copy)
            os.fchmod(copy.fileno(), 0o444)
            if '/pack-' in f'/{name}':
                copy.flush()
                os.fsync(copy.fileno())
        os.rename(temporary, path)
