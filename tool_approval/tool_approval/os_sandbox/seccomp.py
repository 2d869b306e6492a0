"""Filter system calls that are restricted neither by mounts nor by namespaces.

Mounts do not block Unix sockets. A program can connect to a socket file on a read-only mount, and to abstract sockets
if the network is shared. Therefore, the filter lets no confined program create a Unix socket. The filter has the format
of `seccomp(2)` and `linux/filter.h`. Bubblewrap loads the filter from a descriptor.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

_LOAD, _JUMP_EQUAL, _JUMP_NOT_LESS, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NEW_USER_NAMESPACE = 0x10000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FAMILIES = (2, 10, 16)
"""Allowed socket families: AF_INET, AF_INET6 and AF_NETLINK. A network namespace confines their sockets."""


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """The kernel's number for an architecture, and the numbers of its system calls."""

    architecture: int
    socket: int
    ioctl: int
    clone: int
    unshare: int
    ptrace: int
    other_memory: tuple[int, int]
    """process_vm_readv and process_vm_writev."""
    refused: tuple[int, ...]
    """Blocked system calls: setns, bpf, perf_event_open, userfaultfd, add_key, request_key and keyctl. Each call is
    blocked because namespaces do not confine the call, or because commands do not need it."""


_GENERIC = (268, 280, 241, 282, 217, 218, 219)
_MACHINES: Mapping[str, _Machine] = {
    'x86_64': _Machine(
        architecture=0xC000003E,
        socket=41,
        ioctl=16,
        clone=56,
        unshare=272,
        ptrace=101,
        other_memory=(310, 311),
        refused=(308, 321, 298, 323, 248, 249, 250),
    ),
    'aarch64': _Machine(
        architecture=0xC00000B7,
        socket=198,
        ioctl=29,
        clone=220,
        unshare=97,
        ptrace=117,
        other_memory=(270, 271),
        refused=_GENERIC,
    ),
    'riscv64': _Machine(
        architecture=0xC00000F3,
        socket=198,
        ioctl=29,
        clone=220,
        unshare=97,
        ptrace=117,
        other_memory=(270, 271),
        refused=_GENERIC,
    ),
}
_CLONE3, _IO_URING_SETUP = 435, 425
"""System calls that have the same numbers on every architecture. The arguments of these calls are in memory, which a
filter cannot read. Therefore, the filter reports that these calls do not exist, so that libraries use older calls."""
_PIDFD_GETFD = 438
"""Takes a descriptor of another process. It has this number on every architecture."""


def filter_program(machine: str) -> bytes | None:
    """Return the filter for an architecture.

    Args:
        machine: The architecture, in the form that `platform.machine()` returns.

    Returns:
        The instructions of the filter, or `None` for an unknown architecture.
    """
    known = _MACHINES.get(machine)
    if known is None:
        return None
    steps = [
        # On another architecture the same numbers mean other calls (32-bit programs on a 64-bit kernel).
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, known.architecture),
        _REFUSE,
        (_LOAD, 0, 0, _NUMBER),
        # The x32 calls of x86-64. No other architecture has numbers this high.
        (_JUMP_NOT_LESS, 0, 1, 0x40000000),
        _REFUSE,
    ]
    for number in (*known.refused, _PIDFD_GETFD):
        steps += _case(number, [_REFUSE])
    for number in (_CLONE3, _IO_URING_SETUP):
        steps += _case(number, [_MISSING])
    steps += _case(known.socket, _SOCKET)
    steps += _case(known.ioctl, _IOCTL)
    for number in (known.clone, known.unshare):
        steps += _case(number, _NAMESPACE)
    steps += _case(known.ptrace, [(_LOAD, 0, 0, _SECOND_ARGUMENT), *_FIRST_PROCESS])
    for number in known.other_memory:
        steps += _case(number, [(_LOAD, 0, 0, _FIRST_ARGUMENT), *_FIRST_PROCESS])
    steps.append(_PERMIT)
    # `struct sock_filter` in native byte order: code, jump if true, jump if false, value.
    return b''.join(struct.pack('=HBBI', *step) for step in steps)


_Step: TypeAlias = tuple[int, int, int, int]
_REFUSE: _Step = (_RETURN, 0, 0, _ERROR | errno.EPERM)
_MISSING: _Step = (_RETURN, 0, 0, _ERROR | errno.ENOSYS)
_PERMIT: _Step = (_RETURN, 0, 0, _ALLOW)
_SOCKET: list[_Step] = [
    (_LOAD, 0, 0, _FIRST_ARGUMENT),
    (_JUMP_EQUAL, 3, 0, _FAMILIES[0]),
    (_JUMP_EQUAL, 2, 0, _FAMILIES[1]),
    (_JUMP_EQUAL, 1, 0, _FAMILIES[2]),
    (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
    _PERMIT,
]
_IOCTL: list[_Step] = [
    # Compare only the low half: the kernel ignores the high half, so a check of both could be evaded.
    (_LOAD, 0, 0, _SECOND_ARGUMENT),
    (_JUMP_EQUAL, 1, 0, _TIOCSTI),
    (_JUMP_EQUAL, 0, 1, _TIOCLINUX),
    _REFUSE,
    _PERMIT,
]
_NAMESPACE: list[_Step] = [
    (_LOAD, 0, 0, _FIRST_ARGUMENT),
    (_JUMP_ANY_BIT, 0, 1, _NEW_USER_NAMESPACE),
    _REFUSE,
    _PERMIT,
]
# Attack: process 1, bubblewrap's, ends the others. A command traces it, so that it reports the end and lives on
# (`test_no_process_traces_the_one_that_ends_all`).
_FIRST_PROCESS: list[_Step] = [(_JUMP_EQUAL, 0, 1, 1), _REFUSE, _PERMIT]


def _case(number: int, body: list[_Step]) -> list[_Step]:
    """Return instructions that run `body` only for the given system call."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]
