"""Read the entries of a log, without checking that they are unchanged, and put them in words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.errors import AuditError, NotCanonicalError

from .chain import verify_text
from .jsonl import LONGEST_LINE

_CHUNK = 1 << 16


def read_entries(path: str | os.PathLike[str]) -> Iterator[Mapping[str, Any] | None]:
    """Yield the entries of a log, one for each line, without holding the whole log in memory.

    Yields:
        An entry, or `None` for a line that is not a JSON object.

    Raises:
        OSError: The file cannot be read.
        AuditError: A line is too long for a log. The lines before it have been yielded.
    """
    with open(path, 'rb') as log:
        number = 0
        while (line := log.readline(LONGEST_LINE + 1)) != b'':
            number += 1
            if len(line) > LONGEST_LINE:
                raise AuditError(str(path), f'line {number} is too long for an audit log; the rest was not read')
            yield _decoded(line)


def read_verified(path: str | os.PathLike[str], *, key: bytes) -> Iterator[Mapping[str, Any] | None]:
    """Return the entries of a log, after all of it has been verified. A change in between is not read.

    Args:
        path: The log, which is read into memory.
        key: Key with which the log was written.

    Returns:
        An iterator over the entries; `None` for a line that has no valid JSON.

    Raises:
        OSError: The file cannot be read.
        AuditError: A line was changed, removed or added.
    """
    with open(path, 'rb') as log:
        text = log.read()
    finding = verify_text(text, key=key)
    if not finding.is_intact:
        raise AuditError(str(path), f'line {finding.broken_line} is not intact: {finding.problem}')
    return map(_decoded, text.split(b'\n')[:-1])


def read_newest(
    path: str | os.PathLike[str], before: int | None = None
) -> Iterator[tuple[int, Mapping[str, Any] | None]]:
    """Yield the entries of a log, newest first, reading no more of the file than is needed.

    Args:
        path: The log.
        before: Byte position of a line, as yielded before; older lines follow. `None` begins at the end of the log.

    Yields:
        The byte position of a line, and its entry, or `None` for a line that is not a JSON object.

    Raises:
        OSError: The file cannot be read.
        AuditError: A line is too long for a log. The lines after it have been yielded.
    """
    with open(path, 'rb') as log:
        at = log.seek(0, os.SEEK_END)
        at, rest = at if before is None else min(at, before), b''
        while at > 0:
            size = min(_CHUNK, at)
            at = log.seek(at - size)
            rest = log.read(size) + rest
            # The first of these lines may begin further up.
            first, *lines = rest.split(b'\n')
            end = at + len(rest)
            for line in reversed(lines):
                end -= len(line) + 1
                if line:
                    yield end + 1, _decoded(line)
            rest = first
            if len(rest) > LONGEST_LINE:
                raise AuditError(str(path), 'a line is too long for an audit log; what is above was not read')
        if rest:
            yield 0, _decoded(rest)


def _decoded(line: bytes) -> Mapping[str, Any] | None:
    try:
        return decode_arguments(line.decode())
    except (NotCanonicalError, UnicodeDecodeError):
        return None


def what_of(entry: Mapping[str, Any] | None) -> str:
    """Return in a few words what an entry says happened to its call. The text is untrusted, and must be escaped."""
    if entry is None:
        return 'this is not a line of an audit log'
    match entry.get('event'):
        case 'question':
            return f'asked {_names(entry, "asked") or text_in(entry, "ui")}'
        case 'decision':
            word = 'approved' if entry.get('approved') is True else 'denied'
            word = word if entry.get('response') is None else 'answered in place of the tool'
            remembered = ' before' if entry.get('how') == 'memory' else ''
            return f'{word} by {_names(entry, "decided_by") or "-"}{remembered}'
        case 'unasked':
            return f'runs unasked by {_names(entry, "decided_by") or "-"}'
        case 'blocked':
            return f'blocked by {_names(entry, "decided_by") or "-"}'
        case 'outcome':
            error = '' if entry.get('error') is None else f' ({entry.get("error")})'
            return f'{text_in(entry, "outcome")}{error}'
        case event:
            return str(event)


def call_in(entry: Mapping[str, Any] | None) -> str:
    """Return the call of an entry with the note about it. The text is untrusted, and must be escaped."""
    event = None if entry is None else entry.get('event')
    if entry is None or event not in ('question', 'decision', 'outcome', 'unasked', 'blocked'):
        return ''
    tool = text_in(entry, 'tool_name')
    if event == 'outcome':
        return tool
    note = '' if entry.get('note') is None else f': {entry.get("note")}'
    try:
        payload = canonical_json(entry.get('payload'))
    except NotCanonicalError:  # no log has such a payload
        payload = '-'
    return f'{tool} {payload}{note}'


def text_in(entry: Mapping[str, Any], key: str) -> str:
    """Return a text of an entry, or `-` if it has none."""
    value: object = entry.get(key)
    return value if isinstance(value, str) else '-'


def _names(entry: Mapping[str, Any], key: str) -> str:
    names: object = entry.get(key)
    return ', '.join(map(str, cast('list[object]', names))) if isinstance(names, list) else ''
