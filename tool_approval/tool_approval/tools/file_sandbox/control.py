"""Where control files lead that are links, and what lies on the way to a path: whoever changes that changes the path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .names import CONTROL_NAMES, components
from .walk import MAX_LINKS

_LONGEST_POINTER = 10_000
"""Bytes; a path has fewer (PATH_MAX), and `gitdir: ` stands before it."""


def places(path: Path) -> list[Path]:
    """Every link on the way to an absolute path, and where it leads, none of them with a link or `..` before its name.

    Attack: the policy is `conf/policy.yaml`, and `conf` a link; it is deleted, and a directory put in its place.
    """
    found: list[list[str]] = []
    names: list[str] = []
    todo = components(str(path))[::-1]
    while todo and len(found) < MAX_LINKS:
        name = todo.pop()
        if name == '..':
            del names[-1:]
            continue
        names.append(name)
        try:
            target = os.readlink('/' + '/'.join(names))
        except (OSError, ValueError):  # no link, or nothing
            continue
        found.append(list(names))
        names = [] if target.startswith('/') else names[:-1]
        todo += components(target)[::-1]
    return [Path('/', *each) for each in (*found, names)]


def control_links(folder: Path) -> Iterator[Path]:
    """The control files of a directory that are links, and where its `.git` leads git. For `places`."""
    for name in CONTROL_NAMES:
        if os.path.islink(folder / name):  # unlike `Path.is_symlink`, it raises nothing for what cannot be looked at
            yield folder / name
    yield from git_led_to(folder / '.git')


def git_led_to(git: Path) -> Iterator[Path]:
    """Where the `.git` of a worktree or a submodule leads, and the folder that it shares with others. For `places`.

    The paths have `..` as git was given them: behind a link that is not what their text says. The format is described
    in gitrepository-layout(5).
    """
    folder = git
    pointer = _first_line(git)
    if pointer.startswith('gitdir: '):
        folder = git.parent / pointer.removeprefix('gitdir: ')
        yield folder
    shared = _first_line(folder / 'commondir')
    if shared:
        yield folder / shared


def _first_line(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ''
    try:
        line = os.read(descriptor, _LONGEST_POINTER).partition(b'\n')[0]
    except OSError:  # a folder
        return ''
    finally:
        os.close(descriptor)
    return '' if b'\0' in line else os.fsdecode(line.rstrip(b'\r'))
