"""Chain the lines of an audit log: each line has a keyed hash of itself and of the line before it.

If a line is changed, removed or added by someone without the key, `verify` reports the position. A truncated log is
still an intact chain. To detect truncation, compare the log with a `head` that you recorded elsewhere.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tool_approval.core.canonical import canonical_json

START = '0' * 64
"""Hash that the first line is chained to."""


class Head(NamedTuple):
    """Length and last hash of a log. Record this value elsewhere, to detect whether the log is truncated later."""

    lines: int
    """Number of lines."""
    mac: str
    """Hash of the last line, 64 hexadecimal digits; zeros for an empty log."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of `verify`."""

    is_intact: bool
    """Whether every line is unchanged and in its place. A recorded head, if given, must also be in the log."""
    head: Head
    """The log's head after the last intact line."""
    broken_line: int | None = None
    """1-based number of the first line that is not intact; `None` for an intact log. For a truncated log, the number of
    the first missing line."""
    problem: str | None = None
    """The problem with the broken line."""
    unfinished: tuple[int, ...] = ()
    """Line numbers of approvals, and of calls that ran unasked, without an outcome. The call is still running, or its
    process ended too early."""


def chained(entry: Mapping[str, Any], *, previous: Head, key: bytes) -> tuple[bytes, Head]:
    """Return the log line for `entry`, chained to the head `previous`.

    Returns:
        The line with its newline, and the new head.

    Raises:
        NotCanonicalError: The entry has no canonical form.
    """
    body = {**entry, 'line': previous.lines + 1, 'previous': previous.mac}
    body.pop('mac', None)
    text = canonical_json(body).encode()
    mac = _mac(text, key)
    # The hash comes last, so that it covers every byte before it, and not only the parsed values.
    return b'%s,"mac":"%s"}\n' % (text[:-1], mac.encode()), Head(lines=previous.lines + 1, mac=mac)


def read_head(line: bytes, *, key: bytes) -> Head:
    """Return the `Head` of a log whose last line is `line`.

    Raises:
        ValueError: The line is not intact.
    """
    entry, mac = _read(line, key)
    return Head(lines=entry['line'], mac=mac)


def verify(path: Path | str, *, key: bytes, head: str | None = None) -> Finding:
    """Check a whole log; see `verify_text`.

    Raises:
        OSError: The file cannot be read.
    """
    return verify_text(Path(path).read_bytes(), key=key, head=head)


def verify_text(text: bytes, *, key: bytes, head: str | None = None) -> Finding:
    """Check every line of a log.

    Args:
        text: The log.
        key: Key with which the log was written.
        head: Previously recorded hash (`mac`) of a line. If no line has this hash, the log was truncated.
    """
    last = Head(lines=0, mac=START)
    has_head = head is None or head == START
    open_approvals: dict[tuple[object, ...], list[int]] = {}
    lines = text.split(b'\n')
    tail = lines.pop()

    def broken(problem: str) -> Finding:
        return Finding(is_intact=False, head=last, broken_line=last.lines + 1, problem=problem)

    for number, line in enumerate(lines, start=1):
        try:
            entry, mac = _read(line, key)
        except ValueError as error:
            return broken(str(error))
        if entry['previous'] != last.mac or entry['line'] != number:
            return broken('the line does not follow the previous line: lines were removed, added or moved')
        last = Head(lines=number, mac=mac)
        has_head = has_head or mac == head
        _pair(entry, number, open_approvals)
    if tail:
        return broken('the line is incomplete')
    if not has_head:
        return broken('the head that you recorded is not in the log: lines are missing at its end')
    unfinished = sorted(number for numbers in open_approvals.values() for number in numbers)
    return Finding(is_intact=True, head=last, unfinished=tuple(unfinished))


def _pair(entry: Mapping[str, Any], number: int, open_approvals: dict[tuple[object, ...], list[int]]) -> None:
    # Other programs with the key may have written values of any type.
    call = tuple([repr(entry.get(name)) for name in ('tool_name', 'tool_call_id', 'digest')])
    run_id = repr(entry.get('run_id'))
    if entry.get('event') == 'unasked' or (entry.get('event') == 'decision' and entry.get('approved') is True):
        open_approvals.setdefault((*call, run_id), []).append(number)
    elif entry.get('event') == 'outcome' and entry.get('outcome') != 'responded':
        # A decision between two runs has no run id; its outcome has the id of the resumed run.
        decisions = open_approvals.get((*call, run_id)) or open_approvals.get((*call, repr(None)))
        if decisions:
            decisions.pop()  # the newest; an older decision on the same call was left by a crash


_LINE = re.compile(rb'(\{.+),"mac":"([0-9a-f]{64})"\}', re.DOTALL)


def _read(line: bytes, key: bytes) -> tuple[dict[str, Any], str]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError('the line does not end in a hash')
    body, mac = found[1] + b'}', found[2].decode()
    if not hmac.compare_digest(mac, _mac(body, key)):
        raise ValueError('the line was changed, or written with another key')
    return json.loads(body), mac


def _mac(body: bytes, key: bytes) -> str:
    mac = _started(key).copy()
    mac.update(body)
    return mac.hexdigest()


@lru_cache(maxsize=8)
def _started(key: bytes) -> hmac.HMAC:
    # Setting up an HMAC takes longer than hashing a line, and a process has one key.
    return hmac.new(key, digestmod='sha256')
