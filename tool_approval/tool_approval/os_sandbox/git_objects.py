"""Verify the new objects of a layer: each name matches the content, and no referenced object is missing."""

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
"""Reflog that lists the stashes."""
_CHECK_S: Final = 120
_LOOK_S: Final = 0.1
"""Seconds between checks for a cancellation."""

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
"""Script that a confined shell runs in a temporary repository to verify the objects.

Git creates a new index for each pack, because the existing index may be forged. Like `git fetch`, the script fails if
the new refs or the index need an object that is missing. A new shallow boundary must not hide commits that existed
before. The last command prints the difference between the old and the new commit of `HEAD`."""
_NO_FILES: Final = b'4b825dc642cb6eb9a060e54bf8d69288fbee4904'
"""Hash of the empty tree, which exists in every repository."""


class NewObjects:
    """The objects that a command wrote to a layer."""

    def __init__(self, source: str, before: str, staging: str) -> None:
        """Create the temporary repository in which the objects are verified.

        Args:
            source: The folder `objects` of the layer, which may contain anything.
            before: The folder `objects` of the repository.
            staging: The path of the folder to create.
        """
        self._source = source
        self._before = before
        self._staging = staging
        self.folder = os.path.join(staging, 'objects')
        """Folder to which the verified objects are copied: loose objects by `take`, and packs by `check`."""
        for name in ('objects/pack', 'objects/info', 'refs'):
            os.makedirs(os.path.join(staging, name))

    def take(self, alternates: bytes) -> Iterator[str]:
        """Copy each new loose object whose name matches its content.

        Args:
            alternates: The original content of the layer's `info/alternates`.

        Returns:
            The names of files that are not valid objects, and `info/alternates` if it was changed.

        Raises:
            LayerError: The objects are too many or too large, or the folder is a link.
            OSError: An object cannot be read.
        """
        # Attack: the folder is a link to the objects of a repository that the command cannot read.
        if not all(stat.S_ISDIR(os.lstat(path).st_mode) for path in (self._source, f'{self._source}/pack')):
            raise LayerError('`objects` is not a folder')
        reader = Reader()
        # Git writes an object again if it cannot set the time of the existing one.
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
        """Check that no object is missing, and copy the packs. A confined git does this work.

        Returns:
            The paths that are submodules in the commit of `HEAD` but were not submodules before.

        Raises:
            LayerError: An object is missing, or the check takes too long or is cancelled.
            OSError: A file cannot be read.
            OSSandboxError: The backend cannot confine git.
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
            raise LayerError('a new shallow boundary would hide commits')
        if status not in (0, _TOO_DIFFERENT):
            raise LayerError('objects that the repository needs are missing or broken')
        differing = Reader().file(os.path.join(self._staging, 'differing')).data if old != new else b''
        if status != 0 or differing is None or len(differing) == MOST_INDEX_BYTES:
            raise LayerError('the commit changes too many files')
        return _submodules_in(differing)


def _commit(kept: Mapping[str, bytes | None]) -> bytes:
    """Return the hash of the commit that `HEAD` points to, or of the empty tree if there is no commit."""
    head = kept.get('HEAD') or b''
    return ((kept.get(os.fsdecode(head[5:-1])) if head.startswith(b'ref: ') else head) or _NO_FILES)[:40]


def _submodules_in(differing: bytes) -> frozenset[str]:
    """Return the paths that became submodules, given the output of `git diff-tree -r -z`."""
    fields = iter(differing.split(b'\0'))
    return frozenset(
        os.fsdecode(path) for line, path in zip(fields, fields, strict=False) if line[8:14] == b'160000' != line[1:7]
    )


def _ended(argv: Sequence[str], cancelled: threading.Event) -> int:
    """Run a command, wait until it ends, and return its exit status.

    Raises:
        LayerError: The command takes too long or is cancelled. The command was killed.
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
    raise LayerError('the check was cancelled' if cancelled.is_set() else f'the check took more than {_CHECK_S} s')


def ids_of(kept: Mapping[str, bytes | None]) -> set[bytes]:
    """Return the names of the objects that refs, heads and stashes point to."""
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
    """Yield the object folders in other repositories that `info/alternates` lists, directly or indirectly."""
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
