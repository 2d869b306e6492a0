"""Perform the eight file operations on paths that were checked, and whose directories are still open."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Any

from tool_approval.core.errors import printable
from tool_approval.core.presentation import truncate_for_display

from .commit import CHANGED, FileToolError, carry, put, replace, take_away
from .content import MISSING, read_file, state_of_bytes
from .paths import names_in
from .rules import PathTarget
from .sandbox import FileAccess, FileSandbox

LISTED = 1000
"""Maximum number of names in the list for the model."""

SAME = '`old_text` and `new_text` are the same'
"""Error message if the old and new text of an edit are the same."""

Expected = Mapping[str, str]
"""Required state of each file. Each key is a `PathTarget.key`. A file without an entry may have any state."""


def perform(
    sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected | None = None
) -> str:
    """Perform an operation that was checked, and return the text for the model.

    Args:
        sandbox: The sandbox whose size limits apply.
        access: The operation, which `FileSandbox.open` has checked.
        arguments: The arguments of the call, such as `content` or `old_text`.
        expected: The states that the files must have.

    Raises:
        FileToolError: The operation is permitted but failed.
    """
    target = access.targets[0]
    try:
        return _OPERATIONS[access.operation](sandbox, access, arguments, expected or {})
    except FileNotFoundError:
        raise FileToolError(target.shown, 'it does not exist') from None
    except UnicodeEncodeError:
        raise FileToolError(target.shown, 'the text contains surrogates, which UTF-8 cannot encode') from None
    except OSError as error:
        # Not the error's own text, which may name a path on the host.
        raise FileToolError(target.shown, f'the system refused: {os.strerror(error.errno or 0).lower()}') from None


def read_text(target: PathTarget, max_bytes: int) -> tuple[bytes, str | None]:
    """Return the content of a file as bytes and as text; the text is `None` for a binary file.

    Raises:
        FileToolError: The file is too long.
        OSError: The file cannot be read.
    """
    if target.place.is_missing or target.place.is_folder:
        raise FileNotFoundError
    content = read_file(target.place.parent, target.place.name, max_bytes)
    if content is None:
        size = target.place.status.st_size if target.place.status is not None else 0
        raise FileToolError(target.shown, f'the file has {size} bytes; at most {max_bytes} can be read')
    return content, as_text(content)


def as_text(content: bytes) -> str | None:
    """Decode UTF-8; return `None` for binary content."""
    if b'\0' in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def edited(text: str, arguments: Mapping[str, Any], max_bytes: int) -> str:
    """Return the changed text.

    Raises:
        ValueError: `old_text` does not occur, occurs more than once, or equals `new_text`, or the result is too long.
    """
    old, new, is_everywhere = arguments['old_text'], arguments['new_text'], arguments.get('replace_all', False)
    if old == new:
        raise ValueError(SAME)
    count = text.count(old) if old else 0
    if count == 0:
        raise ValueError('`old_text` does not occur in the file; it must match exactly, including blanks and line ends')
    if count > 1 and not is_everywhere:
        raise ValueError(
            f'`old_text` occurs {count} times; add lines around it until it is unique, or set `replace_all`'
        )
    if len(text) + count * (len(new) - len(old)) > max_bytes:
        # Attack: a single letter, replaced a million times by a long text, fills the memory (test_operations.py).
        raise ValueError(f'the text would be longer than {max_bytes} bytes')
    return text.replace(old, new)


def unchanged(target: PathTarget, arguments: Mapping[str, Any], max_bytes: int) -> FileToolError | None:
    """Return an error if an edit would change nothing, else `None`. The error reveals whether `old_text` occurs."""
    try:
        _edited(target, read_text(target, max_bytes)[1], arguments, max_bytes)
    except FileNotFoundError:
        return FileToolError(target.shown, 'it does not exist')
    except FileToolError as error:
        return error
    return None


def _edited(target: PathTarget, text: str | None, arguments: Mapping[str, Any], max_bytes: int) -> str:
    if text is None:
        raise FileToolError(target.shown, 'the file is not text, so it cannot be edited')
    try:
        return edited(text, arguments, max_bytes)
    except ValueError as error:
        raise FileToolError(target.shown, f'nothing was changed: {error}') from None


def _read_file(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    [target] = access.targets
    content, text = read_text(target, sandbox.max_bytes)
    return f'{target.shown}: {truncate_for_display(content)}' if text is None else text


def _list_files(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    [target] = access.targets
    if not target.place.is_folder:
        raise FileNotFoundError
    folder = target.place.folders[-1]
    names = names_in(folder)
    lines = [_line(folder, name) for name in names[:LISTED]]
    more = [f'... [{len(names) - LISTED} more]'] if len(names) > LISTED else []
    heading = target.shown if target.is_root else f'{target.shown}:'
    return '\n'.join([heading, *lines, *more] if lines else [f'{target.shown} is empty.'])


def _line(folder: int, name: str) -> str:
    shown = printable(name, 255)
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return shown
    if stat.S_ISDIR(status.st_mode):
        return f'{shown}/'
    if stat.S_ISREG(status.st_mode):
        return f'{shown} ({status.st_size} bytes)'
    return f'{shown} (link)' if stat.S_ISLNK(status.st_mode) else f'{shown} (special)'


def _write_file(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    [target] = access.targets
    return _write(sandbox, target, arguments['content'].encode(), _expected(target, expected))


def _edit_file(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    [target] = access.targets
    content, text = read_text(target, sandbox.max_bytes)
    seen = expected.get(target.key, state_of_bytes(content))
    if seen != state_of_bytes(content):
        raise FileToolError(target.shown, CHANGED)
    new = _edited(target, text, arguments, sandbox.max_bytes).encode()
    told = _write(sandbox, target, new, seen)
    sandbox.own_edits.add(target.key, seen, state_of_bytes(new), text or '', arguments)
    return told


def _make_directory(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    [target] = access.targets
    if target.place.is_folder:
        return f'{target.shown}/ already exists.'
    _make_parents(target)
    os.mkdir(target.place.name, dir_fd=target.place.parent)
    return f'Created {target.shown}/.'


def _delete(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    [target] = access.targets
    seen = _expected(target, expected, is_there=True)
    take_away(target.place.parent, target.place.name, expected=seen, shown=target.shown)
    return f'Deleted {target.shown}.'


def _move(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    source, dest = access.targets
    moved, displaced = _expected(source, expected, is_there=True), _expected(dest, expected)
    _make_parents(dest)
    place = source.place
    ends = (place.parent, place.name, dest.place.parent, dest.place.name)
    try:
        if displaced == MISSING:
            carry(*ends, expected=moved, shown=source.shown)
        else:
            replace(*ends, expected=displaced, shown=dest.shown, source_state=moved)
    except FileExistsError:
        raise FileToolError(dest.shown, CHANGED) from None
    return f'Moved {source.shown} to {dest.shown}.'


def _copy(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any], expected: Expected) -> str:
    source, dest = access.targets
    content, _ = read_text(source, sandbox.max_bytes)
    if state_of_bytes(content) != expected.get(source.key, state_of_bytes(content)):
        raise FileToolError(source.shown, CHANGED)
    _write(sandbox, dest, content, _expected(dest, expected))
    return f'Copied {source.shown} to {dest.shown} ({len(content)} bytes).'


def _write(sandbox: FileSandbox, target: PathTarget, content: bytes, seen: str) -> str:
    if len(content) > sandbox.max_bytes:
        raise FileToolError(
            target.shown, f'the text has {len(content)} bytes; at most {sandbox.max_bytes} can be written'
        )
    _make_parents(target)
    put(target.place.parent, target.place.name, content, expected=seen, shown=target.shown)
    return f'{"Wrote" if seen == MISSING else "Replaced"} {target.shown} ({len(content)} bytes).'


def _expected(target: PathTarget, expected: Expected, *, is_there: bool = False) -> str:
    seen = expected.get(target.key)
    state = target.state() if seen is None else seen
    if is_there and state == MISSING:
        raise FileNotFoundError
    return state


def _make_parents(target: PathTarget) -> None:
    # A missing root is not created, because tools create nothing outside of the roots.
    if len(target.place.folders) - 1 < len(target.root.names):
        raise FileToolError(target.shown, f'the directory {target.root.name} does not exist; the user has to create it')
    target.place.make_parents()


_OPERATIONS: dict[str, Callable[[FileSandbox, FileAccess, Mapping[str, Any], Expected], str]] = {
    'read_file': _read_file,
    'list_files': _list_files,
    'write_file': _write_file,
    'edit_file': _edit_file,
    'make_directory': _make_directory,
    'delete': _delete,
    'move': _move,
    'copy': _copy,
}
