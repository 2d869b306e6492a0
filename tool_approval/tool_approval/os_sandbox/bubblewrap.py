"""Linux: namespaces and mounts, set up by bubblewrap (`bwrap`)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence

from .backend import Availability, probed, run_probe
from .derive import system_profile
from .mounts import Change, Mount, plan_mounts
from .profile import OSProfile, OSSandboxError, passed_on
from .seccomp import filter_program

_BWRAP = ('/usr/bin/bwrap', '/usr/local/bin/bwrap', '/run/current-system/sw/bin/bwrap')
_BASH = ('/usr/bin/bash', '/bin/bash', '/usr/local/bin/bash', '/run/current-system/sw/bin/bash')
"""Fixed places: a folder of `PATH` may be one that the confined command can write to."""

_LAUNCHER = """\
exec 9< <(printf '%s') || exit 125
for each in /proc/self/fd/*; do
  each=${each##*/}
  if ((each > 2 && each != 9)); then eval "exec $each>&-"; fi
done
exec "$@"
"""
"""Closes what the command would inherit, which bubblewrap does not, and hands bubblewrap its filter. Builtins alone, in
bash, because other shells cannot name a descriptor above 9; `-p` keeps variables such as `BASH_ENV` from adding to it
(`test_no_descriptor_is_inherited`)."""

_CONFINE: tuple[str, ...] = (
    # `--unshare-all` only tries to make a user namespace; without one, root would keep its powers.
    *('--unshare-all', '--unshare-user'),
    # A command started by root has every capability in its namespace, and could undo the mounts
    # (`test_nothing_can_be_mounted_again`).
    *('--cap-drop', 'ALL'),
    # Otherwise a command could type into the terminal it was started from (`test_the_terminal_cannot_be_typed_into`).
    '--new-session',
    # Nothing stays when the process that started it is gone (`test_no_process_survives`).
    '--die-with-parent',
)
_INSTALL = (
    'install bubblewrap (Debian, Ubuntu, Fedora, Arch: the package `bubblewrap`) and bash; where it is installed, '
    'allow '
    'user namespaces (sysctl user.max_user_namespaces above 0; on Ubuntu 24.04 and newer an AppArmor profile for '
    'bwrap; '
    'in a container, a seccomp profile that permits them)'
)


class BubblewrapBackend:
    """Confines with `bwrap`, 0.6 or newer, found in fixed places."""

    name = 'bubblewrap'

    def __init__(self, *, bwrap: str | None = None, bash: str | None = None, machine: str | None = None) -> None:
        """Take other programs than those of the system.

        Args:
            bwrap: The absolute path of bubblewrap.
            bash: The absolute path of bash, which starts it.
            machine: The architecture to filter system calls for, as `platform.machine()` has it.
        """
        self._bwrap = bwrap or _first(_BWRAP)
        self._bash = bash or _first(_BASH)
        self._filter = filter_program(machine or platform.machine())

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str, *, change: Change | None = None) -> list[str]:
        """See `OSSandboxBackend.wrap`.

        Args:
            command: Likewise.
            profile: Likewise.
            cwd: Likewise.
            change: Puts layers into what is mounted.

        Raises:
            OSSandboxError: Likewise.
        """
        if self._filter is None:
            raise OSSandboxError(f'no filter of system calls is known for {platform.machine()!r}')
        if not command or any('\0' in part for part in command):
            raise OSSandboxError('a command is a program and its arguments, without NUL')
        octal = ''.join(f'\\{byte:03o}' for byte in self._filter)
        plan = plan_mounts(profile, cwd, change)
        arguments = list(_CONFINE)
        if profile.network:
            arguments.append('--share-net')
        arguments += _environment(passed_on(profile))
        for mount in plan.mounts:
            arguments += _argument(mount)
        arguments += ['--chdir', os.path.realpath(cwd), '--seccomp', '9', '--']
        return [self._bash, '-p', '-c', _LAUNCHER % octal, 'os-sandbox', self._bwrap, *arguments, *command]

    def notes(self, profile: OSProfile, cwd: str) -> tuple[str, ...]:
        """Where this backend is stricter than the profile, and what to do about it.

        Raises:
            OSSandboxError: As for `wrap`.
        """
        return plan_mounts(profile, cwd).notes

    def probe(self) -> Availability:
        """Start a program that reads its own status, and believe the kernel alone."""
        return probed(self._problem, install=_INSTALL)

    def _problem(self) -> str:
        done = run_probe(self.wrap(['/bin/cat', '/proc/self/status'], system_profile(), '/'))
        if done.returncode != 0:
            return f'bubblewrap does not start: {done.stderr.strip()[:500]}'
        wrong = _not_confined(done.stdout)
        return f'bubblewrap does not confine: {wrong}' if wrong else ''


def _first(places: Sequence[str]) -> str:
    """The first that exists, or the usual one, so that starting it says what is missing."""
    return next((place for place in places if os.path.isfile(place)), places[0])


def _environment(variables: Mapping[str, str]) -> list[str]:
    arguments = ['--clearenv']
    for name, value in variables.items():
        arguments += ['--setenv', name, value]
    # The host's own folder for temporary files is not there.
    return [*arguments, '--setenv', 'TMPDIR', '/tmp']


def _argument(mount: Mount) -> list[str]:
    match mount.kind:
        case 'write':
            return ['--bind', mount.source or mount.path, mount.path]
        case 'read':
            return ['--ro-bind', mount.source or mount.path, mount.path]
        case 'empty' | 'temporary':
            return ['--tmpfs', mount.path]
        case 'mask':
            # A device on a mount without devices: opening it is refused, where an empty file would look real.
            return ['--ro-bind', '/dev/null', mount.path]
        case 'proc':
            return ['--proc', mount.path]
        case 'dev':
            return ['--dev', mount.path]
        case 'folder':
            return ['--dir', mount.path]
        case 'lock':
            return ['--remount-ro', mount.path]
        case _:
            return ['--symlink', mount.target, mount.path]


def _not_confined(status: str) -> str:
    """What is missing in the text of `/proc/self/status`; empty if nothing is."""
    lines = dict(line.split(':\t', 1) for line in status.splitlines() if ':\t' in line)
    expected = {'CapEff': '0' * 16, 'CapPrm': '0' * 16, 'NoNewPrivs': '1', 'Seccomp': '2'}
    return ', '.join(
        f'{name} is {lines.get(name)!r} and not {value!r}'
        for name, value in expected.items()
        if lines.get(name) != value
    )
