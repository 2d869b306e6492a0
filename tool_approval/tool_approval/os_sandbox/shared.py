"""Namespaces that the commands of one conversation share: a network with only a loopback, and a private `/tmp`."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import weakref
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from .profile import OSSandboxError, covers

_NSENTER: Final = ('/usr/bin/nsenter', '/bin/nsenter', '/run/current-system/sw/bin/nsenter')
_CAT: Final = ('/usr/bin/cat', '/bin/cat', '/run/current-system/sw/bin/cat')
_KINDS: Final = {'user': 'user', 'mount': 'mnt', 'net': 'net'}
"""Namespaces to enter, in this order: options of nsenter, and names in `/proc/PID/ns`."""
_ESCAPED: Final = re.compile(r'\\([0-7]{3})')
"""A character as the kernel writes it in the path of a mount; proc(5)."""
_PATIENCE_S: Final = 10
_ANSWER_BYTES: Final = 4096
"""More than bubblewrap writes about the process that it has started."""

PLACE: Final = '/sys'
"""Where the shared `/tmp` is mounted in the shared namespaces. No command sees the `/sys` of the host, so nothing that
commands use is covered."""


class SharedNamespaces:
    """Namespaces that commands enter before bubblewrap confines them.

    No process stays in them. This object has them open, so that they, and all files in their `/tmp`, are gone as soon
    as the object and the commands are, also if this process is killed.
    """

    def __init__(self, descriptors: Sequence[int]) -> None:
        """Take over open descriptors of the user, mount and network namespace, in this order."""
        self.descriptors = tuple(descriptors)
        """Descriptors that the command line must inherit."""
        weakref.finalize(self, _close, self.descriptors)

    @classmethod
    def open(cls, bwrap: str, *, size: int) -> SharedNamespaces:
        """Make the namespaces.

        Args:
            bwrap: The absolute path of bubblewrap.
            size: Maximum bytes of all files in `/tmp`, which are in memory.

        Raises:
            OSSandboxError: The namespaces cannot be made.
        """
        found: list[int] = []
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        try:
            process = subprocess.Popen(
                making(bwrap, size=size, info=theirs),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd='/',
                env={},
                pass_fds=[theirs],
            )
            with process:
                try:
                    answer_of(process)
                    pid = json.loads(os.read(ours, _ANSWER_BYTES))['child-pid']
                    for kind in _KINDS.values():
                        found.append(os.open(f'/proc/{pid}/ns/{kind}', os.O_RDONLY | os.O_CLOEXEC))
                finally:
                    process.kill()
        except (OSError, ValueError, KeyError) as error:
            _close(found)
            raise OSSandboxError(f'namespaces cannot be shared: {error}') from error
        finally:
            os.close(ours)
            os.close(theirs)
        return cls(found)

    def entering(self, *, network: bool) -> list[str]:
        """Return the beginning of a command line, which enters the namespaces.

        Args:
            network: Whether the command stays in the network of the machine.
        """
        pairs = [*zip(_KINDS, self.descriptors, strict=True)][: -1 if network else None]
        options = [f'--{kind}=/proc/self/fd/{descriptor}' for kind, descriptor in pairs]
        return [first_of(_NSENTER), '--preserve-credentials', *options, '--']


def making(bwrap: str, *, size: int, info: int) -> list[str]:
    """Return a command line that makes the namespaces, writes about them to the descriptor `info`, and then copies its
    input to its output, in them.
    """
    return [
        *(bwrap, '--unshare-user', '--unshare-net', '--cap-drop', 'ALL', '--die-with-parent'),
        # Not `--bind`: commands get devices of the host.
        *('--dev-bind', '/', '/', '--size', str(size), '--tmpfs', PLACE, '--info-fd', str(info), '--', first_of(_CAT)),
    ]


def mounts_at(paths: Collection[str]) -> tuple[str, ...]:
    """Return the lines of the kernel's list of mounts that concern some paths, what is in them and what is above.

    Shared namespaces have the mounts of the time when they were made, and new ones only where the system shares them.

    Attack: the user unmounts a volume with secrets, so they are no longer found, but commands still see them
    (`test_a_volume_that_is_unmounted_is_not_seen`).
    """
    with open('/proc/self/mountinfo', encoding='utf-8', errors='surrogateescape') as file:
        lines = file.readlines()
    points = ((line, _ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split()[4])) for line in lines)
    return tuple(
        line for line, point in points if covers(paths, point) or any(covers((point,), path) for path in paths)
    )


def answer_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process that makes the namespaces is in them.

    Raises:
        OSError: It does not answer.
    """
    assert process.stdin is not None and process.stdout is not None, 'both are pipes'
    with suppress(BrokenPipeError):
        process.stdin.write(b'.')
    ready, _, _ = select.select([process.stdout], [], [], _PATIENCE_S)
    if not ready or process.stdout.read(1) != b'.':
        raise OSError('bubblewrap does not start')


def first_of(places: Sequence[str]) -> str:
    """Return the first path that exists. If no path exists, return `places[0]`, so that the error message about the
    missing program contains a path.
    """
    return next((place for place in places if os.path.isfile(place)), places[0])


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
