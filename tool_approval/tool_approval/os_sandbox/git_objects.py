"""The new objects of a layer: each is what its name says, and what needs them finds all it needs."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from .backend import ENV, OSSandboxBackend
from .derive import system_profile
from .git_files import ID, LayerError, Packed, Reader, is_head, lines_of
from .git_index import MOST_INDEX_BYTES
from .profile import Access, OSProfile, Root

STASH: Final = 'logs/refs/stash'
"""The log that holds every stash but the last."""
_CHECK_S: Final = 120
_LOOK_S: Final = 0.1
"""Chosen: how late a cancellation may be noticed."""

_SHALLOW: Final = 4
_TOO_DIFFERENT: Final = 5
_CHECK: Final = """\
for each in "$1"/*.pack; do
  [ ! -f "$each" ] || "$0" index-pack --stdin <"$each" || exit 3
done
GIT_OBJECT_DIRECTORY="$2" "$0" cat-file --batch-check <shallow-added | while read -r _ kind; do
  [ "$kind" = missing ] || exit 4
done || exit 4
"$0" rev-list --objects --quiet --indexed-objects --stdin --not --all <tips || exit 3
set -o pipefail
[ "$3" = "$4" ] || "$0" diff-tree -r -z "$3" "$4" | head -c $5 >differing || exit 5
"""
"""Runs confined, on a repository of ours. A pack's own index is not believed: git makes one, by what the pack holds.
Then everything that the new refs and the index need has to be there, as after `git fetch`. A shallow boundary may not
hide a commit that was there before. The last line writes what the commit of `HEAD` has that it had not."""
_NO_FILES: Final = b'4b825dc642cb6eb9a060e54bf8d69288fbee4904'
"""The tree without a file, which git knows in every repository."""


class NewObjects:
    """What a command wrote to the objects of a layer."""

    def __init__(self, source: str, before: str, staging: str) -> None:
        """Make the repository in which they are verified.

        Args:
            source: The layer's objects, which may hold anything.
            before: Those of the repository.
            staging: The place of a folder of ours that is not there yet.
        """
        self._source = source
        self._before = before
        self._staging = staging
        self.folder = os.path.join(staging, 'objects')
        """Where the verified ones are, once `check` has ended."""
        for name in ('objects/pack', 'objects/info', 'refs'):
            os.makedirs(os.path.join(staging, name))

    def take(self, alternates: bytes) -> Iterator[str]:
        """Copy each new loose object whose name is that of its content.

        Args:
            alternates: What the layer had in `info/alternates`.

        Returns:
            The names of what is none, or was changed.

        Raises:
            LayerError: They are too many or too large, or elsewhere.
            OSError: They cannot be read.
        """
        # Attack: the folder is a link to the objects of a repository that the command could not read.
        if not all(stat.S_ISDIR(os.lstat(path).st_mode) for path in (self._source, f'{self._source}/pack')):
            raise LayerError('its `objects` is not a folder')
        reader = Reader()
        # Git writes an object anew if it cannot set the time of the one that is there.
        packed = Packed(self._before)
        for name in reader.below(self._source):
            path = os.path.join(self._source, name)
            status = os.lstat(path)
            if re.fullmatch(r'pack/[^/]+\.pack', name):
                reader.count(status.st_size)
            elif name == 'info/alternates' and reader.file(path).data != alternates:
                yield name
            if not re.fullmatch('[0-9a-f]{2}/[0-9a-f]{38}', name):
                continue
            identity = name.replace('/', '')
            if identity in packed or os.path.lexists(os.path.join(self._before, name)):
                continue
            copy = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            if not stat.S_ISREG(status.st_mode):
                yield name
            elif reader.object_id(path, copy) != identity:
                os.unlink(copy)
                yield name

    def check(
        self,
        backend: OSSandboxBackend,
        git: str,
        before: Mapping[str, bytes],
        changes: Mapping[str, bytes | None],
        cancelled: threading.Event,
    ) -> frozenset[str]:
        """Let git look whether all is there, in a repository of ours, confined, and take over the packs.

        Returns:
            The paths that the commit of `HEAD` gives to submodules, and did not before.

        Raises:
            LayerError: Something is missing, it takes too long, or is cancelled.
            OSError: It cannot be looked at.
            OSSandboxError: It cannot be confined.
        """
        packs = os.path.join(self._source, 'pack')
        refs = [b'%s refs/before/%d' % (each, number) for number, each in enumerate(sorted(ids_of(before)))]
        added = set((changes.get('shallow') or b'').split()) - set(before.get('shallow', b'').split())
        files = {
            'HEAD': b'ref: refs/heads/none\n',
            'config': b'[core]\n\trepositoryformatversion = 0\n\tbare = true\n',
            'packed-refs': b'\n'.join([*refs, b'']),
            'objects/info/alternates': os.fsencode(self._before) + b'\n',
            'tips': b'\n'.join([*sorted(ids_of(changes)), b'']),
            'shallow-added': b'\n'.join([*sorted(added), b'']),
            'shallow': changes.get('shallow', before.get('shallow')) or b'',
        }
        if index := changes.get('index'):
            files['index'] = index
        for name, data in files.items():
            with open(os.path.join(self._staging, name), 'xb') as opened:
                opened.write(data)
        profile = system_profile([self._before, packs, *_alternates(self._before)])
        writable = Root(path=self._staging, access=Access.WRITE)
        profile = OSProfile(roots=(*profile.roots, writable), environment=frozenset())
        variables = [f'GIT_DIR={self._staging}', 'GIT_CONFIG_NOSYSTEM=1', 'GIT_CONFIG_GLOBAL=/dev/null']
        old, new = (_commit(kept) for kept in (before, {**before, **changes}))
        values = [packs, self._before, old.decode(), new.decode(), str(MOST_INDEX_BYTES)]
        command = [ENV, *variables, '/bin/bash', '-p', '-c', _CHECK, git, *values]
        argv = backend.wrap(command, profile, self._staging)
        status = _ended(argv, cancelled)
        if status == _SHALLOW:
            raise LayerError('a shallow boundary would hide commits')
        if status not in (0, _TOO_DIFFERENT):
            raise LayerError('objects that it needs are missing or broken')
        differing = Reader().file(os.path.join(self._staging, 'differing')).data if old != new else b''
        if status != 0 or differing is None or len(differing) == MOST_INDEX_BYTES:
            raise LayerError('its commit differs in too many files from the one before')
        return _submodules_in(differing)


def _commit(kept: Mapping[str, bytes | None]) -> bytes:
    """The commit of `HEAD`; the empty tree before the first."""
    head = kept.get('HEAD') or b''
    return ((kept.get(os.fsdecode(head[5:-1])) if head.startswith(b'ref: ') else head) or _NO_FILES)[:40]


def _submodules_in(differing: bytes) -> frozenset[str]:
    """The paths that became submodules, by the output of `git diff-tree -r -z`."""
    fields = iter(differing.split(b'\0'))
    return frozenset(
        os.fsdecode(path) for line, path in zip(fields, fields, strict=False) if line[8:14] == b'160000' != line[1:7]
    )


def _ended(argv: Sequence[str], cancelled: threading.Event) -> int:
    """The status of a command, once it has ended by itself.

    Raises:
        LayerError: It takes too long, or is cancelled. It was killed.
    """
    until = time.monotonic() + _CHECK_S
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            while not cancelled.is_set() and time.monotonic() < until:
                with suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=_LOOK_S)
                    return process.returncode
        finally:
            process.kill()
    raise LayerError('its check was cancelled' if cancelled.is_set() else f'its check took more than {_CHECK_S} s')


def ids_of(kept: Mapping[str, bytes | None]) -> set[bytes]:
    """The objects that refs, heads and stashes name."""
    found: set[bytes] = set()
    for name, data in kept.items():
        if data is None:
            continue
        if name.startswith('refs/') or is_head(name):
            found |= {line[:40] for line in lines_of(data) if ID.match(line)}
        elif name == STASH:
            found |= {line[41:81] for line in lines_of(data)}
    return found - {b'0' * 40}


def _alternates(objects: str) -> Iterator[str]:
    """Where the objects of a repository are borrowed from."""
    todo = [objects]
    seen = set(todo)
    while todo:
        folder = todo.pop()
        with (
            # A path with a NUL is a `ValueError`.
            suppress(FileNotFoundError, NotADirectoryError, ValueError),
            open(os.path.join(folder, 'info/alternates'), 'rb') as lines,
        ):
            found = {os.path.normpath(os.path.join(folder, os.fsdecode(line.rstrip(b'\n')))) for line in lines}
            todo += found - seen
            seen |= found
            yield from found
