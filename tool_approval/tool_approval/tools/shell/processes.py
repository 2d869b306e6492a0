"""Ends all that a command started, as far as a parent without rights can."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

MARKER: Final = 'TOOL_APPROVAL_COMMAND'
"""A variable with a random value in a command's environment: what it starts has it too, in whatever group it is."""
_ROUNDS: Final = 20
"""Chosen: whoever forks faster than this ends processes needs a PID namespace around it."""


def kill_group(group: int, number: signal.Signals) -> None:
    """Signal every process of a group; none left is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def descendants(above: int) -> dict[int, str]:
    """What a process has started, and they in turn: when each began, by number, so that a number used again is not
    taken for it.
    """
    return {pid: began for pid, (_, began) in _below({above}, _table()).items()}


def kill_strays(marker: str, *, below: int, seen: Mapping[int, str]) -> int:
    """Kill what left the group: whose environment has the marker, what is below a process, and what was seen there.

    A process that clears its environment and whose parents ended before anybody looked is not found; only the PID
    namespace of an OS sandbox ends that one. Where there is no `/proc`, nothing is found.

    Args:
        marker: The value of `MARKER`.
        below: The process at the top.
        seen: What `descendants` said of it before it was ended.

    Returns:
        How many were killed.
    """
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        table = _table()
        known = {pid for pid, began in seen.items() if pid in table and table[pid][1] == began}
        found = (known | _below({below, *known, *killed}, table).keys() | _marked(marker, table)) - killed
        found -= {below, os.getpid()}
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
    return len(killed)


_Table = dict[int, tuple[int, str]]
"""The parent of each living process, and when it began."""


def _table() -> _Table:
    table: _Table = {}
    try:
        pids = [int(name) for name in os.listdir('/proc') if name.isdecimal()]
    except OSError:
        return table
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of a program, in brackets, may contain anything.
            fields = Path(f'/proc/{pid}/stat').read_text(errors='replace').rpartition(')')[2].split()
            if fields[0] != 'Z':
                table[pid] = (int(fields[1]), fields[19])
    return table


def _marked(marker: str, table: _Table) -> set[int]:
    wanted = f'{MARKER}={marker}'.encode()
    found: set[int] = set()
    for pid in table:
        with contextlib.suppress(OSError):
            if wanted in Path(f'/proc/{pid}/environ').read_bytes().split(b'\0'):
                found.add(pid)
    return found


def _below(above: set[int], table: _Table) -> _Table:
    found: _Table = {}
    grown = True
    while grown:
        more = {
            pid: entry for pid, entry in table.items() if pid not in found and (entry[0] in above or entry[0] in found)
        }
        found |= more
        grown = bool(more)
    return found
