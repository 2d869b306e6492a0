"""Check file names as text, and find files that control approvals or that make git run programs."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_PATH_BYTES = 4096
"""PATH_MAX of Linux."""

MAX_LINKS = 40
"""Maximum number of links that Linux follows in a path."""

_HIDDEN = frozenset({'Cc', 'Cf', 'Cn', 'Co', 'Cs', 'Zl', 'Zp'})
"""Unicode categories of invisible or misleading characters: control, format, unassigned, private-use and surrogate
characters, and line and paragraph separators. Spaces of any width are allowed, because they are visible and some
systems use them in file names."""

_SHAPELESS = re.compile(
    '[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc'
    '\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]'
)
"""Invisible characters outside of `_HIDDEN`: joiners, fillers, the blank Braille pattern and variation selectors."""

CONTROL_NAMES = frozenset(
    {'.git', 'git~1', '.approvals', '.tool-approval', '.tool_approval'}
    | {f'{name}.{kind}' for name in ('approvals', 'tool_approval') for kind in ('yaml', 'yml', 'toml', 'json')}
)
"""Case-folded names of files that control approvals or make git run programs. NTFS shortens `.git` to `git~1`."""


def check_text(path: str) -> None:
    """Refuse a path that cannot be displayed exactly or that is invalid for system calls.

    Raises:
        PermissionError: The path is empty, too long, or contains invisible characters.
    """
    if not path:
        raise PermissionError('The path is empty.')
    if len(path) > MAX_PATH_BYTES or len(path.encode(errors='replace')) > MAX_PATH_BYTES:
        raise PermissionError(f'The path is longer than {MAX_PATH_BYTES} bytes.')
    # Attack: a name that forges a second line in a prompt or log, or is displayed backwards (test_names.py).
    hidden = next(filter(_is_hidden, path if path.isascii() else _without_joiners(path)), None)
    if hidden is not None:
        raise PermissionError(f'The path contains the invisible character U+{ord(hidden):04X}.')


def _without_joiners(path: str) -> str:
    from tool_approval.display.escape import without_ordinary  # imported late: rarely needed, and slows the start

    return without_ordinary(path)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or _SHAPELESS.match(character) is not None


def components(path: str) -> list[str]:
    """Split a path at slashes. Keep `..`, but drop `.` and empty parts."""
    return [name for name in path.split('/') if name not in ('', '.')]


def asks_for_folder(path: str) -> bool:
    """Return whether the ending of a path requires a directory, as in `a/` or `a/.`."""
    return path.endswith(('/', '/.', '/..')) or path in ('.', '..')


def fold(name: str) -> str:
    """Fold a name: remove differences that some file systems ignore, such as case, Unicode form and trailing dots."""
    composed = unicodedata.normalize('NFKC', name)
    visible = ''.join(character for character in composed if unicodedata.category(character) != 'Cf')
    return unicodedata.normalize('NFKC', visible.casefold()).rstrip(' .')


def is_control(names: Sequence[str]) -> bool:
    """Return whether a path is a control file or is in a control folder. Tools never change these files."""
    return any(fold(name) in CONTROL_NAMES for name in names)


def has_suffix(name: str, suffixes: Sequence[str] | None) -> bool:
    """Return whether a file name has an allowed suffix. A hidden file named `.txt` has no suffix."""
    if suffixes is None:
        return True
    return any(name.endswith(suffix) and name[: -len(suffix)].strip('.') for suffix in suffixes)


def starts_with(names: Sequence[str], beginning: Sequence[str]) -> bool:
    """Return whether a path is equal to another path or below it."""
    return tuple(names[: len(beginning)]) == tuple(beginning)


_LONGEST_POINTER = 10_000
"""Maximum number of bytes to read from a `.git` file, enough for `gitdir: ` and the longest path (PATH_MAX)."""


def places(path: Path) -> list[Path]:
    """Return every symbolic link on the way to an absolute path, and the resolved path.

    The links also need protection. For example, if the policy is `conf/policy.yaml` and `conf` is a link, an agent
    could replace the link with a directory.
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
        except (OSError, ValueError):  # not a link, or missing
            continue
        found.append(list(names))
        names = [] if target.startswith('/') else names[:-1]
        todo += components(target)[::-1]
    return [Path('/', *each) for each in (*found, names)]


def control_links(folder: Path) -> Iterator[Path]:
    """Yield a directory's control files that are symbolic links, and the folders to which its file `.git` points."""
    for name in CONTROL_NAMES:
        if os.path.islink(folder / name):  # unlike `Path.is_symlink`, never raises
            yield folder / name
    yield from git_led_to(folder / '.git')


def git_led_to(git: Path) -> Iterator[Path]:
    """Yield the git folder that the `.git` file of a worktree or submodule points to, and the shared git folder.

    The paths may contain `..`. Removing `..` after a symbolic link would change the meaning of the path.
    gitrepository-layout(5) describes the format.
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
    except OSError:  # a directory
        return ''
    finally:
        os.close(descriptor)
    return '' if b'\0' in line else os.fsdecode(line.rstrip(b'\r'))
