"""Judge names of files as text, and find the files that decide on approvals or on what git runs."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_PATH_BYTES = 4096
"""Linux's PATH_MAX."""

MAX_LINKS = 40
"""Linux's own limit."""

_HIDDEN = frozenset({'Cc', 'Cf', 'Cn', 'Co', 'Cs', 'Zl', 'Zp'})
"""Unicode's general categories of what a person does not see, or not as it is: controls, formats (direction, zero
width), unassigned and private ones, half characters, separators of lines and paragraphs. Blanks of other widths are
seen, and systems write them into names."""

_SHAPELESS = re.compile(
    '[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc'
    '\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]'
)
"""Joiners, fillers, the empty Braille pattern and variation selectors, which are in other categories."""

CONTROL_NAMES = frozenset(
    {'.git', 'git~1', '.approvals', '.tool-approval', '.tool_approval'}
    | {f'{name}.{kind}' for name in ('approvals', 'tool_approval') for kind in ('yaml', 'yml', 'toml', 'json')}
)
"""Names, folded, of what decides on approvals or makes git run programs. `git~1` is NTFS's short name of `.git`."""


def check_text(path: str) -> None:
    """Refuse a path that a person could not be shown as it is, or that no system call takes.

    Raises:
        PermissionError: It is empty, too long, or has characters that nobody sees.
    """
    if not path:
        raise PermissionError('The path is empty.')
    if len(path) > MAX_PATH_BYTES or len(path.encode(errors='replace')) > MAX_PATH_BYTES:
        raise PermissionError(f'The path is longer than {MAX_PATH_BYTES} bytes.')
    # Attack: a name that forges a second line in a prompt or log, or reads backwards (test_names.py).
    hidden = next(filter(_is_hidden, path if path.isascii() else _without_joiners(path)), None)
    if hidden is not None:
        raise PermissionError(f'The path contains the invisible character U+{ord(hidden):04X}.')


def _without_joiners(path: str) -> str:
    from tool_approval.display.escape import without_ordinary  # few names need it, and starting is to be quick

    return without_ordinary(path)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or _SHAPELESS.match(character) is not None


def components(path: str) -> list[str]:
    """The names of a path in order, `..` among them; nothing for `.` and for doubled slashes."""
    return [name for name in path.split('/') if name not in ('', '.')]


def asks_for_folder(path: str) -> bool:
    """Whether a path can only mean a directory, as `a/` and `a/.` do."""
    return path.endswith(('/', '/.', '/..')) or path in ('.', '..')


def fold(name: str) -> str:
    """What a name may be taken for by a file system that is lenient about case, accents, width or trailing dots."""
    composed = unicodedata.normalize('NFKC', name)
    visible = ''.join(character for character in composed if unicodedata.category(character) != 'Cf')
    return unicodedata.normalize('NFKC', visible.casefold()).rstrip(' .')


def is_control(names: Sequence[str]) -> bool:
    """Whether a path leads to, or into, what must never be written."""
    return any(fold(name) in CONTROL_NAMES for name in names)


def has_suffix(name: str, suffixes: Sequence[str] | None) -> bool:
    """Whether the name of a file is allowed. `.txt` alone has no suffix: it is a hidden file of that name."""
    if suffixes is None:
        return True
    return any(name.endswith(suffix) and name[: -len(suffix)].strip('.') for suffix in suffixes)


def starts_with(names: Sequence[str], beginning: Sequence[str]) -> bool:
    """Whether a path is at or below another, name by name."""
    return tuple(names[: len(beginning)]) == tuple(beginning)


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
