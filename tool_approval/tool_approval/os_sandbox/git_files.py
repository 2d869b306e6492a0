"""Read a `.git` folder that a command could write to, and accept only content that git itself would have written.

Formats: gitrepository-layout(5), git-check-ref-format(1), gitformat-pack(5).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
import stat
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tool_approval.core.errors import printable

MOST_BYTES: Final = 1 << 29
"""Maximum number of bytes to read from one `.git` folder. The unpacked size of new objects has the same limit."""
_MOST_PACKED_REFS: Final = 1 << 24
"""Maximum size of `packed-refs` in bytes. A file of this size has 250,000 refs and takes a second to parse."""
MOST_FILES: Final = 50_000
"""Maximum number of files to read. The limit is high enough for a command that adds a large folder."""
_DEEPEST: Final = 64
"""Maximum depth of folders. A branch name such as `a/b/c` creates one folder for each part."""
_CHUNK: Final = 1 << 16
_MOST_NAMED: Final = 10
"""Maximum number of names to list in one line."""

ID: Final = re.compile(rb'[0-9a-f]{40}')
"""Name of an object. Repositories with SHA-256 are not supported."""
_OBJECT: Final = re.compile(rb'(?:blob|tree|commit|tag) (\d{1,15})\0')
_HEADS: Final = re.compile(r'[A-Z][A-Z_]*_HEAD')
_HEAD_LINES: Final = re.compile(rb'(?:[0-9a-f]{40}(?:\t[^\n]*)?\n)*')
_LOG_LINES: Final = re.compile(rb'(?:[0-9a-f]{40} [0-9a-f]{40} [^\n]*\n)*')
_SHALLOW_LINES: Final = re.compile(rb'(?:[0-9a-f]{40}\n)*')
_WRONG_REF: Final = re.compile(r'[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/[.-]|\.lock(?:/|\Z)|\./|[./]\Z')
_MESSAGE_BYTES: Final = 1 << 20


class LayerError(Exception):
    """Raised if a layer cannot be created or written back. The message is for the user and the model."""


def listed(names: Sequence[str]) -> str:
    """Join at most ten names with commas, and add the number of the remaining names."""
    more = len(names) - _MOST_NAMED
    return ', '.join(printable(name) for name in names[:_MOST_NAMED]) + (f' and {more} more' if more > 0 else '')


@dataclass(frozen=True)
class File:
    """A file or symbolic link, as read from disk."""

    data: bytes | None
    """Content; `None` if the path is not a regular file."""
    mode: int = 0o644
    """Permission bits."""
    target: str = ''
    """Target of a symbolic link; empty for other files."""


class Reader:
    """Reads files, with a limit on their number and total size."""

    def __init__(self) -> None:
        """Start counting at zero."""
        self._files = 0
        self._bytes = 0

    def count(self, size: int) -> None:
        """Add `size` to the number of bytes that were read.

        Raises:
            LayerError: The limit is exceeded.
        """
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise LayerError(f'the repository has more than {MOST_BYTES >> 20} MiB to read')

    def below(self, folder: str) -> Iterator[str]:
        """Yield the relative path of each file below a folder, without following links.

        Raises:
            LayerError: There are too many files, or folders are nested too deep.
        """
        todo = ['']
        while todo:
            above = todo.pop()
            if above.count('/') > _DEEPEST:
                raise LayerError(f'the repository has folders nested more than {_DEEPEST} deep')
            with os.scandir(os.path.join(folder, above)) as found:
                for each in found:
                    self._files += 1
                    if self._files > MOST_FILES:
                        raise LayerError(f'the repository has more than {MOST_FILES} files to read')
                    name = os.path.join(above, each.name)
                    if each.is_dir(follow_symlinks=False):
                        todo.append(name)
                    else:
                        yield name

    def file(self, path: str) -> File:
        """Read a file or link.

        Raises:
            LayerError: The file is too large.
        """
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return File(None, target=os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return File(None)
        if os.path.basename(path) == 'packed-refs' and status.st_size > _MOST_PACKED_REFS:
            raise LayerError(f'the repository has packed refs of more than {_MOST_PACKED_REFS >> 20} MiB')
        self.count(status.st_size)
        with open(_open(path), 'rb') as opened:
            # Cut off a file that is still growing; git would not read it either.
            return File(opened.read(status.st_size), mode=stat.S_IMODE(status.st_mode) & 0o777)

    def object_id(self, source: str, destination: str) -> str:
        """Copy a loose object, and return the hash of its content, or an empty string if the object is invalid.

        Raises:
            LayerError: The object is too large.
        """
        unpack = zlib.decompressobj()
        digest = hashlib.sha1(usedforsecurity=False)
        head = b''
        length = 0
        with open(_open(source), 'rb') as opened, open(destination, 'xb') as copy:
            while not unpack.eof:
                data = unpack.unconsumed_tail or opened.read(_CHUNK)
                try:
                    plain = unpack.decompress(data, _CHUNK)
                except zlib.error:
                    return ''
                if not data and not plain:
                    return ''
                self.count(len(plain))
                digest.update(plain)
                head += plain[: 32 - len(head)]
                length += len(plain)
            if unpack.unused_data or opened.read(1):
                return ''
            opened.seek(0)
            shutil.copyfileobj(opened, copy)
        kind = _OBJECT.match(head)
        return digest.hexdigest() if kind is not None and length == kind.end() + int(kind[1]) else ''


class Packed:
    """Looks up objects in the pack indexes of a repository. Only version 2 of the format is supported."""

    def __init__(self, objects: str) -> None:
        """Map the pack indexes in the folder `objects` into memory."""
        self._indexes: list[mmap.mmap] = []
        folder = os.path.join(objects, 'pack')
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.endswith('.idx'):
                with open(_open(os.path.join(folder, name)), 'rb') as opened:
                    if opened.read(8) == b'\xfftOc\0\0\0\2':
                        self._indexes.append(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))

    def __contains__(self, name: str) -> bool:
        """Whether a pack contains the object with this hexadecimal name."""
        wanted = bytes.fromhex(name)
        for index in self._indexes:
            first = 8 + 4 * wanted[0]
            start = int.from_bytes(index[first - 4 : first]) if wanted[0] else 0
            found = range(start, int.from_bytes(index[first : first + 4]))
            place = bisect_left(found, wanted, key=lambda each, index=index: _name(index, each))
            if place < len(found) and _name(index, found[place]) == wanted:
                return True
        return False


def _name(index: mmap.mmap, number: int) -> bytes:
    return index[1032 + 20 * number : 1052 + 20 * number]


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def is_ref(name: str) -> bool:
    """Whether git accepts the name as a ref. Refs below `refs/replace` are excluded, because they make git show one
    object in place of another.
    """
    return (
        (name == 'refs/stash' or (name.startswith('refs/') and name.count('/') > 1))
        and not name.startswith('refs/replace/')
        and _WRONG_REF.search(name) is None
        and name.isprintable()
    )


def is_head(name: str) -> bool:
    """Whether a file directly in `.git` is `HEAD` or a similar file, such as `ORIG_HEAD`."""
    return name == 'HEAD' or _HEADS.fullmatch(name) is not None


def _is_pointer(name: str, data: bytes) -> bool:
    """Whether the data is valid content of a ref: an object name or, for `HEAD`, the name of another ref."""
    if data.startswith(b'ref: refs/') and data.endswith(b'\n'):
        return (name == 'HEAD' or re.fullmatch('refs/remotes/.+/HEAD', name) is not None) and is_ref(
            os.fsdecode(data[5:-1])
        )
    return len(data) == 41 and data.endswith(b'\n') and ID.match(data) is not None


def is_kept(name: str, data: bytes) -> bool:
    """Whether a layer writes a changed file back to `.git`. The file must have a known name, and content that git could
    have written. The function does not check objects and refs.
    """
    if name == 'HEAD':
        return _is_pointer(name, data)
    if name == 'shallow':
        return _SHALLOW_LINES.fullmatch(data) is not None
    if name == 'COMMIT_EDITMSG':
        return len(data) <= _MESSAGE_BYTES
    if name.startswith('logs/'):
        ref = name.removeprefix('logs/')
        return (ref == 'HEAD' or is_ref(ref)) and _LOG_LINES.fullmatch(data) is not None
    return is_head(name) and _HEAD_LINES.fullmatch(data) is not None


def refs_of(files: Mapping[str, File]) -> dict[str, bytes]:
    """Return each valid ref with its content. Refs are in `packed-refs` and in separate files."""
    refs: dict[str, bytes] = {}
    for line in (files['packed-refs'].data or b'').split(b'\n') if 'packed-refs' in files else []:
        value, _, name = line.partition(b' ')
        if ID.fullmatch(value):
            refs[os.fsdecode(name)] = value + b'\n'
    refs |= {name: file.data for name, file in files.items() if name.startswith('refs/') and file.data is not None}
    return {name: value for name, value in refs.items() if is_ref(name) and _is_pointer(name, value)}


def lines_of(data: bytes) -> list[bytes]:
    """Split the content of a git file at line feeds. Each line keeps its line feed."""
    return [line + b'\n' for line in data.removesuffix(b'\n').split(b'\n')] if data else []


def without_refs(packed: bytes, gone: frozenset[str]) -> bytes:
    """Return the content of `packed-refs` without the given refs. The peeled tags of these refs are left out, too."""
    lines: list[bytes] = []
    is_left = True
    for line in lines_of(packed):
        if not line.startswith(b'^'):
            name = os.fsdecode(line.rstrip(b'\n').partition(b' ')[2])
            is_left = line.startswith(b'#') or name not in gone
        if is_left:
            lines.append(line)
    return b''.join(lines)
