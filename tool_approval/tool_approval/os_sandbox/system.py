"""What every command needs of the system: programs, libraries, and the few files that name things."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from .profile import Access, OSProfile, Root

_LINUX = (
    '/usr',
    '/bin',
    '/sbin',
    '/lib',
    '/lib32',
    '/lib64',
    '/libx32',
    '/nix/store',
    '/gnu/store',
    '/etc/alternatives',
    '/etc/group',
    '/etc/hosts',
    '/etc/ld.so.cache',
    '/etc/localtime',
    '/etc/nsswitch.conf',
    '/etc/os-release',
    '/etc/passwd',
    '/etc/pki/tls/certs',
    '/etc/resolv.conf',
    '/etc/ssl/certs',
    '/etc/ssl/openssl.cnf',
)
"""Chosen file by file: all of `/etc` would show what only root may read to a command that runs as root. And few of
them, since each is a mount, which costs a command a quarter of a millisecond."""

_MACOS = (
    '/System',
    '/usr',
    '/bin',
    '/sbin',
    '/opt/homebrew',
    '/Library/Apple',
    '/Library/Developer/CommandLineTools',
    '/Library/Frameworks',
    '/private/etc/hosts',
    '/private/etc/localtime',
    '/private/etc/passwd',
    '/private/etc/protocols',
    '/private/etc/resolv.conf',
    '/private/etc/services',
    '/private/etc/ssl',
    '/private/var/db/timezone',
    '/private/var/select',
)


def system_profile(readable: Iterable[str] = (), *, platform: str = sys.platform) -> OSProfile:
    """The system for reading alone, without home folders, temporary files and what runs.

    Args:
        readable: More folders and files that commands need, such as where a toolchain is installed.
        platform: As `sys.platform` has it.

    Returns:
        A profile with the real paths of what exists.
    """
    wanted = _MACOS if platform == 'darwin' else _LINUX
    found = {os.path.realpath(path) for path in (*wanted, *readable) if os.path.exists(path)}
    return OSProfile(roots=tuple(Root(path=path, access=Access.READ) for path in found))
