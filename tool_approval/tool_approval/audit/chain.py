"""The chain of an audit log: each line carries a keyed hash of itself and of the one before.

Whoever has no key can neither change a line, nor take one out, nor add one, without `verify` naming the place. Only a
cut tail leaves a whole chain; `head`, noted elsewhere, tells that too.
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
"""What the first line is chained to."""


class Head(NamedTuple):
    """The end of a log: note it elsewhere, and a tail that is cut off later is noticed."""

    lines: int
    """How many lines there are."""
    mac: str
    """The hash of the last one, 64 hexadecimal digits; zeros for an empty log."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What `verify` found."""

    is_intact: bool
    """Whether every line is as it was written, in its place, and the noted head is among them."""
    head: Head
    """The last line that is intact."""
    broken_line: int | None = None
    """The first line that is not, from 1; one past the end where lines are missing."""
    problem: str | None = None
    """What is wrong with it."""
    unfinished: tuple[int, ...] = ()
    """The lines of approvals that no outcome follows: the process ended in between, or the call still runs."""


def chained(entry: Mapping[str, Any], *, previous: Head, key: bytes) -> tuple[bytes, Head]:
    """The line of `entry`, after `previous`.

    Returns:
        The line with its line end, and the new head.

    Raises:
        NotCanonicalError: The entry has no canonical form.
    """
    body = {**entry, 'line': previous.lines + 1, 'previous': previous.mac}
    body.pop('mac', None)
    text = canonical_json(body).encode()
    mac = _mac(text, key)
    # The hash comes last, so that it covers every byte before it, and not just what they mean.
    return b'%s,"mac":"%s"}\n' % (text[:-1], mac.encode()), Head(lines=previous.lines + 1, mac=mac)


def read_head(line: bytes, *, key: bytes) -> Head:
    """The head that the last line of a log makes.

    Raises:
        ValueError: It is no intact line.
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
        key: The key it was written with.
        head: The hash of a line that is known to have been written: without it in the log, the tail was cut off.
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
            return broken('it does not follow the line before it: lines were taken out, added or moved')
        last = Head(lines=number, mac=mac)
        has_head = has_head or mac == head
        _pair(entry, number, open_approvals)
    if tail:
        return broken('it was not written to its end')
    if not has_head:
        return broken('the noted head is not in the log: lines are missing at its end')
    unfinished = sorted(number for numbers in open_approvals.values() for number in numbers)
    return Finding(is_intact=True, head=last, unfinished=tuple(unfinished))


def _pair(entry: Mapping[str, Any], number: int, open_approvals: dict[tuple[object, ...], list[int]]) -> None:
    call, run_id = (entry.get('tool_name'), entry.get('tool_call_id'), entry.get('digest')), entry.get('run_id')
    if entry.get('event') == 'decision' and entry.get('approved') is True:
        open_approvals.setdefault((*call, run_id), []).append(number)
    elif entry.get('event') == 'outcome':
        # A decision between two runs names none, and its outcome names the run that was resumed.
        decisions = open_approvals.get((*call, run_id)) or open_approvals.get((*call, None))
        if decisions:
            decisions.pop()  # the newest: an older one of the same call is what a crash left


_LINE = re.compile(rb'(\{.+),"mac":"([0-9a-f]{64})"\}', re.DOTALL)


def _read(line: bytes, key: bytes) -> tuple[dict[str, Any], str]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError('it does not end in a hash')
    body, mac = found[1] + b'}', found[2].decode()
    if not hmac.compare_digest(mac, _mac(body, key)):
        raise ValueError('it was changed, or written with another key')
    return json.loads(body), mac


def _mac(body: bytes, key: bytes) -> str:
    mac = _started(key).copy()
    mac.update(body)
    return mac.hexdigest()


@lru_cache(maxsize=8)
def _started(key: bytes) -> hmac.HMAC:
    # Setting one up costs more than hashing a line does, `hmac.digest` does it anew, and a process has one key.
    return hmac.new(key, digestmod='sha256')
