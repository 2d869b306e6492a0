"""Read a git index that a command could write to, and keep only its entries.

The format is gitformat-index(5).
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from .git_files import LayerError

_HEADER: Final = struct.Struct('>4sLL')
_CHECKSUM: Final = 20
MOST_INDEX_BYTES: Final = 1 << 26
"""Maximum size of an index in bytes, enough for half a million files. A crafted file can take long to parse although it
is small."""
_LONGEST: Final = 4096
"""Linux's PATH_MAX."""
_ENTRY: Final = struct.Struct('>24xL12x20sH')
_STAGE: Final = 0x3000
_EXTENDED: Final = 0x4000
_LENGTH: Final = 0xFFF
_ANNOUNCED: Final = 0x2000
_FLAGS: Final = 0x6000
_REGULAR, _LINK, _SUBMODULE = 0b1000, 0b1010, 0b1110
_SUBMODULE_MODE: Final = (_SUBMODULE << 12).to_bytes(4)
_WRONG_PATH: Final = re.compile(rb'[/\\\0](?:|\.|\.\.|(?:\.git|git~1)[ .]*)[/\\:\0]', re.IGNORECASE)
"""Matches an invalid path in a NUL-separated list. As in git (`verify_path`), the NTFS short name of `.git` is
invalid."""


class _Entry(NamedTuple):
    """One entry of an index."""

    path: bytes
    mode: int
    name: bytes
    """SHA-1 of the object, 20 bytes."""
    is_in_tree: bool
    """Whether a commit would contain the entry. Conflicts and intent-to-add entries are not committed."""


def plain_index(data: bytes) -> bytes:
    """Check that git could have written each entry, and return the index without its extensions.

    The extension `TREE` is kept if its content is correct. This cache of tree objects makes the next commit faster.

    The check prevents two attacks. A forged entry for `.git/config` would make the next `git checkout` write that file.
    With a forged `TREE`, the next `git commit` would not commit what `git status` shows.

    Raises:
        LayerError: The data is not a valid index, or names a path that git would never write.
    """
    trees = b''
    try:
        entries, end = _entries(data)
        extension = end
        while extension < len(data) - _CHECKSUM:
            name = data[extension : extension + 4]
            if not name[:1].isupper():
                raise LayerError('the git index is split or sparse, which is not supported')
            start = extension + 8
            extension = start + int.from_bytes(data[start - 4 : start])
            if name == b'TREE' and _is_right(data[start:extension], entries):
                trees = data[start - 8 : extension]
    except (IndexError, ValueError, struct.error):
        raise LayerError('the git index cannot be read') from None
    if extension != len(data) - _CHECKSUM:
        raise LayerError('the git index cannot be read')
    if any(each.mode >> 12 not in (_REGULAR, _LINK, _SUBMODULE) for each in entries):
        raise LayerError('the git index is sparse, which is not supported')
    paths = [each.path for each in entries]
    if _WRONG_PATH.search(b'\0'.join([b'', *paths, b''])):
        raise LayerError('the git index contains a path that git would never write, such as a path in `.git`')
    # Attack: `a` is a link to a folder elsewhere, and a checkout would write `a/b` there.
    for link in (each.path + b'/' for each in entries if each.mode >> 12 != _REGULAR):
        inner = bisect_left(paths, link)
        if inner < len(paths) and paths[inner].startswith(link):
            raise LayerError('the git index has the same name for a link and for a folder')
    plain = data[:end] + trees
    return plain + hashlib.sha1(plain, usedforsecurity=False).digest()


def submodules(data: bytes) -> frozenset[str]:
    """Return the paths of the submodules in an index, or an empty set if the index cannot be read.

    Attack: `git status` runs git in each submodule, so the configuration of a submodule can start programs.
    """
    if _SUBMODULE_MODE not in data:
        return frozenset()
    try:
        entries, _ = _entries(data)
    except (IndexError, ValueError, struct.error):
        return frozenset()
    return frozenset(os.fsdecode(each.path) for each in entries if each.mode >> 12 == _SUBMODULE)


def _entries(data: bytes) -> tuple[list[_Entry], int]:
    """Return the entries of an index, and the offset at which they end.

    Raises:
        ValueError: The data is not a valid index.
        IndexError: The data ends too early.
        struct.error: The data ends too early.
    """
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b'DIRC' or version not in (2, 3, 4) or len(data) > MOST_INDEX_BYTES:
        raise ValueError('no index')
    place = _HEADER.size
    entries: list[_Entry] = []
    path = b''
    last = (path, 0)
    length = 0
    for _ in range(count):
        start = place
        mode, name, flags = _ENTRY.unpack_from(data, place)
        place += _ENTRY.size
        more = 0
        if flags & _EXTENDED:
            more = int.from_bytes(data[place : place + 2])
            place += 2
        if version == 4:
            strip, place = _offset(data, place)
            if strip > len(path):
                raise ValueError('no beginning')
            end = data.index(b'\0', place)
            path = path[: len(path) - strip] + data[place:end]
            place = end + 1
        else:
            end = data.index(b'\0', place)
            path = data[place:end]
            place = start + (end - start + 8) // 8 * 8
        # Later checks depend on git's order of the entries, in which no name occurs twice.
        length += len(path)
        this = (path, flags & _STAGE)
        if this <= last or len(path) > _LONGEST or length > MOST_INDEX_BYTES:
            raise ValueError('no order')
        # Attack: git finds the end of a name by this length, and other bits mean another format.
        if flags & _LENGTH != min(len(path), _LENGTH) or more & ~_FLAGS:
            raise ValueError('no entry')
        last = this
        entries.append(_Entry(path, mode, name, not (flags & _STAGE or more & _ANNOUNCED)))
    return entries, place


def _is_right(cache: bytes, entries: Sequence[_Entry]) -> bool:
    """Whether the tree objects in the extension `TREE` match the entries.

    Raises:
        IndexError: The extension ends too early.
        ValueError: The extension is malformed.
    """
    if not all(each.is_in_tree for each in entries):
        return False
    trees = _trees(entries)
    place = 0
    above = [b'']
    while above:
        folder = above.pop()
        end = cache.index(b'\0', place)
        line = cache.index(b'\n', end)
        if place:
            folder += cache[place:end] + b'/'
        count, inner = (int(each) for each in cache[end + 1 : line].split(b' '))
        place = line + 1
        if count >= 0:
            if trees.get(folder) != (count, cache[place : place + 20]):
                return False
            place += 20
        # The rest of the extension is too short for more folders, and no path is deeper.
        if not 0 <= inner <= len(cache) - len(above) or len(folder) > _LONGEST:
            return False
        above += [folder] * inner
    return place == len(cache)


def _trees(entries: Sequence[_Entry]) -> dict[bytes, tuple[int, bytes]]:
    """Return the entry count and tree hash of each folder, or an empty dict if the folder names are too long."""
    trees: dict[bytes, tuple[int, bytes]] = {}
    # Folders that are being filled: name, content, and number of the first entry.
    filled: list[tuple[bytes, list[bytes], int]] = [(b'', [], 0)]
    room = MOST_INDEX_BYTES

    def close(done: int) -> None:
        folder, parts, first = filled.pop()
        content = b''.join(parts)
        name = hashlib.sha1(b'tree %d\0%s' % (len(content), content), usedforsecurity=False).digest()
        trees[folder] = (done - first, name)
        if filled:
            filled[-1][1].append(b'40000 %s\0%s' % (folder[len(filled[-1][0]) : -1], name))

    for number, each in enumerate(entries):
        while not each.path.startswith(filled[-1][0]):
            close(number)
        top = filled[-1][0]
        *folders, name = each.path[len(top) :].split(b'/')
        for folder in folders:
            top += folder + b'/'
            room -= len(top)
            if room < 0:  # Attack: the folder names of a few deep paths exceed the memory.
                return {}
            filled.append((top, [], number))
        filled[-1][1].append(b'%o %s\0%s' % (each.mode, name, each.name))
    while filled:
        close(len(entries))
    return trees


def _offset(data: bytes, place: int) -> tuple[int, int]:
    """Decode an integer in git's variable-length encoding. Return the integer, and the offset after its last byte."""
    value = data[place] & 0x7F
    while data[place] & 0x80:
        place += 1
        value = ((value + 1) << 7) | (data[place] & 0x7F)
        if value > MOST_INDEX_BYTES:  # Attack: a number without an end takes quadratic time.
            raise ValueError('a number in the git index is too large')
    return value, place + 1
