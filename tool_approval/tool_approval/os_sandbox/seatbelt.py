"""Confine commands on macOS with `sandbox-exec`. The rules are tested only on Linux, by test code that evaluates them.
Apple does not document the profile language. This module uses only a small part of the language. The last matching rule
decides. `subpath` matches a folder with everything in it, and `literal` matches one path. `param` takes a path from the
command line, so that the profile text contains no paths.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from .backend import ENV, Availability, probed, run_probe
from .derive import system_profile
from .profile import Access, OSProfile, OSSandboxError, Root, passed_on, trail, way_to_root

_SANDBOX_EXEC = '/usr/bin/sandbox-exec'
"""The path is absolute, because `PATH` may contain another program of this name."""

_START = """\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* (literal "/") (literal "/dev/random") (literal "/dev/urandom"))
"""
"""Rules that every program needs. Programs can see the name and size of every file, but not the content."""

_NETWORK = """\
(allow network-outbound (remote ip))
(allow network-inbound (local ip))
(allow network-bind (local ip))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow system-socket)
"""
"""Rules for the internet, and for the Unix socket of the DNS resolver."""

_PLAIN_SUFFIX = re.compile(r'\.[A-Za-z0-9_-]+')
"""Matches a suffix that contains no special characters of regular expressions. Commands cannot use files with any other
suffix."""

_INSTALL = 'macOS has sandbox-exec in /usr/bin, but it does not start in a program that already runs in a sandbox'


class SeatbeltBackend:
    """Confines commands with `sandbox-exec`. The backend was not tested on macOS."""

    name = 'seatbelt'

    def __init__(self, *, sandbox_exec: str = _SANDBOX_EXEC) -> None:
        """Set the path of `sandbox-exec`. Tests set the path of a substitute program."""
        self._sandbox_exec = sandbox_exec

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Return the confined command line; see `OSSandboxBackend.wrap`.

        Raises:
            OSSandboxError: The backend cannot enforce the profile. No command has run.
        """
        if not command or any('\0' in part for part in command):
            raise OSSandboxError('a command must name a program, and must not contain NUL')
        if not os.path.isdir(cwd):
            raise OSSandboxError('the working directory is not a folder', path=cwd)
        text, parameters = seatbelt_rules(profile)
        defined = [part for name, value in parameters.items() for part in ('-D', f'{name}={value}')]
        variables = [f'{name}={value}' for name, value in passed_on(profile).items()]
        return [self._sandbox_exec, *defined, '-p', text, ENV, '-i', *variables, *command]

    def probe(self) -> Availability:
        """Check that a confined program can read an allowed file and cannot read a hidden file."""
        return probed(self._problem, install=_INSTALL)

    def _problem(self) -> str:
        allowed, file = system_profile(platform='darwin'), '/private/etc/hosts'
        closed = replace(allowed, hidden=(file,))
        reads, reads_more = (
            run_probe(self.wrap(['/bin/cat', file], each, '/')).returncode for each in (allowed, closed)
        )
        if reads != 0:
            return 'sandbox-exec does not start'
        return 'sandbox-exec does not confine' if reads_more == 0 else ''


def seatbelt_rules(profile: OSProfile) -> tuple[str, dict[str, str]]:
    """Translate a profile into the language of `sandbox-exec`.

    Returns:
        The text of the profile, and the paths by parameter name.

    Raises:
        OSSandboxError: A root now resolves to a different path than in the profile, symbolic links form a loop, or a
            folder cannot be searched.
    """
    rules = _Rules()
    for root in sorted(profile.roots, key=lambda each: 0 if each.path == '/' else each.path.count('/')):
        way_to_root(root)
        rules.root(root)
    for root in profile.roots:
        if root.access < Access.WRITE or root.suffixes is not None:
            rules.hold(root.path)
    for path in profile.protected:
        for each in _names(path):
            rules.deny('file-write*', each)
    for path in (*profile.hidden, *(path for path, _ in profile.copies)):
        for each in _names(path):
            rules.deny('file-read* file-write*', each)
    for path in profile.held:
        for each in _names(path):
            rules.hold(each)
    return _START + (_NETWORK if profile.network else '') + ''.join(rules.lines), {
        name: path for path, name in rules.names.items()
    }


def _names(path: str) -> list[str]:
    """Return the given path, each symbolic link on the way, and the resolved path."""
    way, end = trail(path)
    return [*dict.fromkeys([*(step.path for step in way if step.kind == 'link'), path, end])]


class _Rules:
    """Collects the lines of a profile and the paths in these lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.held: set[str] = set()
        self.names: dict[str, str] = {}

    def root(self, root: Root) -> None:
        place = f'(subpath {self._parameter(root.path)})'
        # Close everything that an outer root opens.
        self.lines.append(f'(deny file-read-data file-read-xattr file-write* {place})\n')
        if root.access is Access.NONE:
            return
        if root.suffixes is not None:
            endings = sorted(suffix for suffix in root.suffixes if _PLAIN_SUFFIX.fullmatch(suffix))
            if not endings:
                return
            # At least one character before the dot: `.txt` is a hidden file without a suffix.
            tail = '|'.join(ending.replace('.', '\\.') for ending in endings)
            place = f'(require-all {place} (regex #"[^/]({tail})$"))'
        self.lines.append(f'(allow file-read* {place})\n')
        if root.access is Access.WRITE:
            self.lines.append(f'(allow file-write* {place})\n')

    def deny(self, operations: str, path: str) -> None:
        self.lines.append(f'(deny {operations} (subpath {self._parameter(path)}))\n')
        self.hold(path)

    def hold(self, path: str) -> None:
        """Prevent a path and the folders above it from being renamed, deleted or replaced."""
        while path != '/' and path not in self.held:
            self.held.add(path)
            self.lines.append(f'(deny file-write-create file-write-unlink (literal {self._parameter(path)}))\n')
            path = posixpath.dirname(path)

    def _parameter(self, path: str) -> str:
        return f'(param "{self.names.setdefault(path, f"P{len(self.names)}")}")'
