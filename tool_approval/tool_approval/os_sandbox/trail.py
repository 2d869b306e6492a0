"""The way to a path, step by step: whoever can replace a step changes what the path leads to."""

from __future__ import annotations

import os
import posixpath
import stat
from dataclasses import dataclass
from typing import Literal

from .errors import OSSandboxError

_MOST_LINKS = 40
"""As many as the kernel follows (`path_resolution(7)`)."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One name that is looked up on the way."""

    path: str
    """The folder it is in, without symbolic links, and the name."""
    kind: Literal['folder', 'file', 'link', 'missing']
    """What is there. `file` is anything that is no folder, devices and sockets too."""


def trail(path: str) -> tuple[list[Step], str]:
    """Follow an absolute path, symbolic links too, as far as it exists.

    Returns:
        Every step from `/` on, in order, and where it ends: the path without links. What is missing is taken as it
        is written; what would lie below a file ends at the file.

    Raises:
        OSSandboxError: Links lead in a circle, or a folder cannot be searched.
    """
    steps: list[Step] = []
    links = 0
    here = '/'
    ahead = path.split('/')[::-1]
    while ahead:
        name = ahead.pop()
        if name in ('', '.', '..'):
            here = posixpath.dirname(here) if name == '..' else here
            continue
        entry = posixpath.join(here, name)
        kind = _kind(entry)
        steps.append(Step(path=entry, kind=kind))
        if kind == 'link':
            links += 1
            if links > _MOST_LINKS:
                raise OSSandboxError('symbolic links lead in a circle', path=path)
            target = os.readlink(entry)
            here = '/' if target.startswith('/') else here
            ahead += target.split('/')[::-1]
        elif kind == 'missing':
            return steps, posixpath.normpath(posixpath.join(entry, *ahead[::-1]))
        else:
            here = entry
            if kind == 'file':
                break
    return steps, here


def _kind(entry: str) -> Literal['folder', 'file', 'link', 'missing']:
    try:
        mode = os.lstat(entry).st_mode
    except FileNotFoundError:
        return 'missing'
    except OSError as error:
        raise OSSandboxError(f'it cannot be looked at: {error.strerror}', path=entry) from error
    if stat.S_ISLNK(mode):
        return 'link'
    return 'folder' if stat.S_ISDIR(mode) else 'file'
