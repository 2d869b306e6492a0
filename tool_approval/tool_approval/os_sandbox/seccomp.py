"""The system calls that mounts and namespaces leave open, refused by a filter in the kernel.

A mount hides no socket: even one below a read-only mount can be connected to, and the ones without a name are reached
wherever the network is shared. So a confined program makes no socket at all that could lead to another program of this
machine. The format is that of `seccomp(2)` and `linux/filter.h`; bubblewrap loads it from a descriptor.
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
"""AF_INET, AF_INET6 and AF_NETLINK: the ones that a network namespace confines. Not AF_UNIX, AF_VSOCK, AF_ALG."""


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """What the kernel calls an architecture, and the numbers of its system calls."""

    architecture: int
    socket: int
    ioctl: int
    clone: int
    unshare: int
    refused: tuple[int, ...]
    """setns, bpf, perf_event_open, userfaultfd, add_key, request_key, keyctl: none of them knows of a namespace, or
    all of them open the kernel wider than a command needs."""


_GENERIC = (268, 280, 241, 282, 217, 218, 219)
_MACHINES: Mapping[str, _Machine] = {
    'x86_64': _Machine(
        architecture=0xC000003E,
        socket=41,
        ioctl=16,
        clone=56,
        unshare=272,
        refused=(308, 321, 298, 323, 248, 249, 250),
    ),
    'aarch64': _Machine(architecture=0xC00000B7, socket=198, ioctl=29, clone=220, unshare=97, refused=_GENERIC),
    'riscv64': _Machine(architecture=0xC00000F3, socket=198, ioctl=29, clone=220, unshare=97, refused=_GENERIC),
}
_CLONE3, _IO_URING_SETUP = 435, 425
"""The same everywhere. What they do is described in memory that a filter cannot read, so they are said to be missing;
libraries then take the older calls, which it can read."""


def filter_program(machine: str) -> bytes | None:
    """The filter for an architecture.

    Args:
        machine: As `platform.machine()` has it.

    Returns:
        Its instructions, or `None` for an architecture whose numbers are not known.
    """
    known = _MACHINES.get(machine)
    if known is None:
        return None
    steps = [
        # Another architecture's numbers mean other calls (32-bit programs on a 64-bit kernel).
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, known.architecture),
        _REFUSE,
        (_LOAD, 0, 0, _NUMBER),
        # The x32 variant of x86-64; no other architecture has numbers that high.
        (_JUMP_NOT_LESS, 0, 1, 0x40000000),
        _REFUSE,
    ]
    for number in known.refused:
        steps += _case(number, [_REFUSE])
    for number in (_CLONE3, _IO_URING_SETUP):
        steps += _case(number, [_MISSING])
    steps += _case(known.socket, _SOCKET)
    steps += _case(known.ioctl, _IOCTL)
    for number in (known.clone, known.unshare):
        steps += _case(number, _NAMESPACE)
    steps.append(_PERMIT)
    # `struct sock_filter`: code, how far to jump if true, if false, and a value; in the machine's own byte order.
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
    # The low half alone: the kernel ignores the high one, so a comparison of both could be passed by.
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


def _case(number: int, body: list[_Step]) -> list[_Step]:
    """What happens to one system call; any other passes by."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]
