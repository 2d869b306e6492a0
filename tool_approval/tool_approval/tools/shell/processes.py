"""End all processes that a command started, as far as this is possible without privileges."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

MARKER: Final = 'TOOL_APPROVAL_COMMAND'
"""Environment variable whose random value identifies a command's processes, even outside of its process group."""
STATUS: Final = 'TOOL_APPROVAL_STATUS'
"""Environment variable with the number of a descriptor, to which the OS sandbox writes the id of process 1 of its PID
namespace."""
GO: Final = 'TOOL_APPROVAL_GO'
"""Environment variable with the number of a descriptor. The OS sandbox starts the command once it reads a line there.
"""
_ROUNDS: Final = 20
"""Maximum number of rounds in which processes are killed. If a command forks faster than processes are killed,
only a PID namespace can end it."""
_PATIENCE_S: Final = 0.5
"""Maximum seconds to wait until processes have ended or have loaded their program."""
_LOOK_AGAIN_S: Final = 0.001
_MOST_PATIENCE_S: Final = 10
"""Maximum seconds to wait until a PID namespace has ended. Only a process in a call that cannot be interrupted, such as
to a file server that does not answer, takes longer than some milliseconds."""


def kill_group(group: int, number: signal.Signals) -> None:
    """Send a signal to every process of a group, if the group has any processes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def descendants(above: int) -> dict[int, str]:
    """Return the descendants of a process and their start times, which distinguish processes with the same id."""
    return {pid: process.began for pid, process in _below({above}, _table()).items()}


def kill_strays(marker: str, *, below: int, seen: Mapping[int, str]) -> int:
    """Kill processes that left the process group, and wait until they have ended.

    A process is found if it has the marker, is a descendant of `below`, or is in `seen`. A process that cleared its
    environment is not found if its parents ended before the first search. Only the PID namespace of an OS sandbox ends
    such a process. Without `/proc`, no process is found.

    Args:
        marker: Value of `MARKER`.
        below: Id of the command's first process, the leader of the group.
        seen: Result of `descendants` from before SIGTERM was sent.

    Returns:
        Number of processes that had left the process group and were killed.
    """
    killed: dict[int, _Process] = {}
    top = _process(below)
    deadline = time.monotonic() + _PATIENCE_S
    rounds = 0
    while rounds < _ROUNDS:
        table = _table()
        known = {pid for pid, began in seen.items() if pid in table and table[pid].began == began}
        marked, is_loading = _marked(marker, table, since=int(top.began) if top is not None else 0)
        # The id of a dead process may belong to another process by now.
        ended = {pid for pid, process in killed.items() if pid not in table or table[pid].began == process.began}
        found = known | _below({below, *known, *ended}, table).keys() | marked
        found -= {below, os.getpid(), *killed}
        if found:
            rounds += 1
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                killed[pid] = table[pid]
        is_dying = any(pid in table and table[pid].began == process.began for pid, process in killed.items())
        if not found:
            if not (is_dying or is_loading) or time.monotonic() > deadline:
                break
            time.sleep(_LOOK_AGAIN_S)
    return sum(process.group != below for process in killed.values())


def end_namespace(first: int) -> bool:
    """Kill all processes of a PID namespace, and wait until they have ended. Return whether they have.

    The kernel ends them with process 1. A command can make process 1 wait: it gives it the lowest priority, and keeps
    the processors busy (`test_nothing_is_written_after_the_end_however_busy_the_processors_are`).

    Args:
        first: The id of process 1 of the namespace, as seen from outside.
    """
    namespace, top = _namespace(first), _process(first)
    if top is None or namespace is None or namespace == _namespace(os.getpid()):
        return True
    until = time.monotonic() + _MOST_PATIENCE_S
    found = {first}
    while (now := _process(first)) is not None and now.began == top.began and now.state not in 'ZX':
        if time.monotonic() > until:
            return False
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_AGAIN_S)
        found = {pid for pid in _table() if _namespace(pid) == namespace}
    return True


def waits(first: int, parent: int) -> bool:
    """Whether process 1 of a PID namespace, a child of `parent`, has become what ends the namespace with its parent.

    bubblewrap's process 1 filters its system calls right after it has asked the kernel to end it with its parent.
    """
    with contextlib.suppress(OSError):
        is_filtered = b'\nSeccomp:\t2\n' in _read(first, 'status')
        process = _process(first)
        return is_filtered and process is not None and process.parent == parent
    return False


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f'/proc/{pid}/ns/pid')
    except OSError:
        return None


def usage(above: int) -> tuple[int, int]:
    """Return the number of processes and threads below a process, and the bytes of memory that they alone use.

    Memory that a process shares with others, such as programs and libraries, is not counted. Without `/proc`, both
    numbers are 0.
    """
    found = _below({above}, _table())
    memory = 0
    for pid in found:
        with contextlib.suppress(OSError, ValueError):
            resident, shared = _read(pid, 'statm').split()[1:3]
            memory += (int(resident) - int(shared)) * _PAGE_BYTES
    return sum(process.threads for process in found.values()), memory


def shared_memory() -> int:
    """Return the bytes of memory of this machine that belong to no process alone: files in memory, and what processes
    share. Without `/proc`, 0.
    """
    try:
        found = re.search(r'^Shmem: +(\d+) kB$', Path('/proc/meminfo').read_text(), re.MULTILINE)
    except OSError:
        return 0
    return 0 if found is None else int(found[1]) << 10


_PAGE_BYTES: Final = os.sysconf('SC_PAGE_SIZE')


class _Process(NamedTuple):
    """A process that has not been reaped."""

    state: str
    parent: int
    group: int
    flags: int
    threads: int
    began: str


_Table = dict[int, _Process]
"""Living processes by id."""


def _table() -> _Table:
    table: _Table = {}
    try:
        pids = [int(name) for name in os.listdir('/proc') if name.isdecimal()]
    except OSError:
        return table
    for pid in pids:
        process = _process(pid)
        if process is not None and process.state != 'Z' and not process.flags & _KERNEL_THREAD:
            table[pid] = process
    return table


def _process(pid: int) -> _Process | None:
    try:
        # The program's name is in parentheses and may contain anything.
        fields = _read(pid, 'stat').rpartition(b')')[2].decode().split()
        return _Process(fields[0], int(fields[1]), int(fields[2]), int(fields[6]), int(fields[17]), fields[19])
    except (OSError, ValueError, IndexError):
        return None


_KERNEL_THREAD: Final = 0x0020_0000
"""`PF_KTHREAD`, a flag of kernel threads."""


def _marked(marker: str, table: _Table, *, since: int) -> tuple[set[int], bool]:
    """Return the marked processes, and whether any process that began at or after `since` is loading its program."""
    wanted = f'{MARKER}={marker}'.encode()
    found: set[int] = set()
    is_loading = False
    for pid, process in table.items():
        with contextlib.suppress(OSError):
            environment = _read(pid, 'environ')
            if not environment and int(process.began) >= since:
                # While a program is being loaded, its process has neither arguments nor environment. Once it has
                # arguments, an empty environment is final.
                is_loading = is_loading or not _read(pid, 'cmdline')
                environment = _read(pid, 'environ')
            if wanted in environment.split(b'\0'):
                found.add(pid)
    return found, is_loading


def _read(pid: int, name: str) -> bytes:
    return Path(f'/proc/{pid}/{name}').read_bytes()


def _below(above: set[int], table: _Table) -> _Table:
    found: _Table = {}
    grown = True
    while grown:
        more = {
            pid: process
            for pid, process in table.items()
            if pid not in found and (process.parent in above or process.parent in found)
        }
        found |= more
        grown = bool(more)
    return found
