"""Confine commands on Linux with namespaces and mounts that bubblewrap (`bwrap`) sets up."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence

from .backend import Availability, probed, run_probe
from .derive import system_profile
from .mounts import TEMPORARY, Mount, plan_mounts
from .profile import OSProfile, OSSandboxError, passed_on
from .seccomp import filter_program
from .shared import PLACE, SharedNamespaces, first_of

_BWRAP = ('/usr/bin/bwrap', '/usr/local/bin/bwrap', '/run/current-system/sw/bin/bwrap')
_BASH = ('/usr/bin/bash', '/bin/bash', '/usr/local/bin/bash', '/run/current-system/sw/bin/bash')
"""The paths are fixed, because the confined command may be able to write to a folder of `PATH`."""

_LAUNCHER = """\
ulimit -c 0 -f %d || exit 125
echo 1000 2> /dev/null > /proc/self/oom_score_adj
status=9 go=9 options=() guard=() own=$1
if [[ $TOOL_APPROVAL_STATUS =~ ^[1-9][0-9]{0,5}$ ]]; then
  exec {status}>&"$TOOL_APPROVAL_STATUS" || exit 125
  options=(--json-status-fd "$status")
fi
if [[ $TOOL_APPROVAL_GO =~ ^[1-9][0-9]{0,5}$ ]]; then
  exec {go}<&"$TOOL_APPROVAL_GO" || exit 125
  begin='read -r -u "$1" || exit 125; eval "exec $1<&-"; unset PWD OLDPWD SHLVL; exec "${@:2}"'
  guard=("$BASH" -p -c "$begin" "$0" "$go")
fi
exec 9< <(printf '%s') || exit 125
for each in /proc/self/fd/*; do
  each=${each##*/}
  if ((each > 2 && each != 9 && each != status && each != go)); then eval "exec $each>&-"; fi
done
exec -c "$2" "${options[@]}" "${@:3:own}" "${guard[@]}" "${@:3+own}"
"""
"""Bash script that closes inherited descriptors and then starts bubblewrap with its seccomp filter on descriptor 9.

bubblewrap itself gets no variables, because commands can read them in `/proc/1/environ`
(`test_the_variables_of_the_caller_cannot_be_read`).

To the descriptor that `TOOL_APPROVAL_STATUS` names, bubblewrap writes the id of process 1 of the PID namespace.

The command begins once a line can be read from the descriptor that `TOOL_APPROVAL_GO` names. Process 1 ends with the
process that starts the command only once process 1 waits for its children. Attack: if the starting process is killed
before, the command runs on without end (`test_no_command_begins_after_the_end_of_the_process_that_started_it`).

A file may have at most `_MOST_FILE_BYTES`, and if memory runs out, the kernel ends the command first.

The script needs bash, because other shells cannot name a descriptor above 9. The option `-p` is required, because
variables such as `BASH_ENV` could add code to the script (`test_no_descriptor_is_inherited`).
"""

_MOST_FILE_BYTES = 16 << 30
"""Maximum bytes of a file that a command writes, far above what builds write."""
_MOST_TEMPORARY_BYTES = 2 << 30
"""Maximum bytes in the private `/tmp`, and in `/dev/shm`. Both are in memory. A shared `/tmp` has less on machines with
little memory."""

_CONFINE: tuple[str, ...] = (
    # `--unshare-all` continues without a user namespace if it cannot make one; root would then keep its powers.
    *('--unshare-all', '--unshare-user'),
    # A command started by root has every capability in its namespace, and could undo the mounts
    # (`test_nothing_can_be_mounted_again`).
    *('--cap-drop', 'ALL'),
    # Otherwise a command could type into the terminal that started it (`test_the_terminal_cannot_be_typed_into`).
    '--new-session',
    # No process may outlive the one that started it (`test_no_process_survives_the_one_that_started_it`).
    '--die-with-parent',
)
_INSTALL = (
    'install bubblewrap (package `bubblewrap` on Debian, Ubuntu, Fedora and Arch) and bash; if both are installed, '
    'set sysctl user.max_user_namespaces above 0 to allow user namespaces; on Ubuntu 24.04 or newer, also add an '
    'AppArmor profile for bwrap; in a container, also use a seccomp profile that permits user namespaces'
)


class BubblewrapBackend:
    """Confines commands with `bwrap` 0.7 or newer."""

    name = 'bubblewrap'

    def __init__(self, *, bwrap: str | None = None, bash: str | None = None, machine: str | None = None) -> None:
        """Set the paths of the programs; by default, search fixed folders of the system.

        Args:
            bwrap: The absolute path of bubblewrap.
            bash: The absolute path of bash, which starts bubblewrap.
            machine: Architecture for the filter of system calls, in the form that `platform.machine()` returns.
        """
        self._bwrap = bwrap or first_of(_BWRAP)
        self._bash = bash or first_of(_BASH)
        self._filter = filter_program(machine or platform.machine())

    def wrap(
        self,
        command: Sequence[str],
        profile: OSProfile,
        cwd: str,
        shared: SharedNamespaces | None = None,
        *,
        own_tmp: bool = False,
    ) -> list[str]:
        """Return the confined command line; see `OSSandboxBackend.wrap`.

        Args:
            command: The program and its arguments.
            profile: The access that the command gets.
            cwd: The absolute path of an existing folder in which the command starts.
            shared: Namespaces of the conversation, whose `descriptors` the command line must inherit; `None` for a
                network and a `/tmp` of the command's own.
            own_tmp: Whether the command gets a `/tmp` of its own, and shares only the network.

        Raises:
            OSSandboxError: The backend cannot enforce the profile. No command has run.
        """
        if self._filter is None:
            raise OSSandboxError(f'system calls cannot be filtered on {platform.machine()!r}')
        if not command or any('\0' in part for part in command):
            raise OSSandboxError('a command must name a program, and must not contain NUL')
        octal = ''.join(f'\\{byte:03o}' for byte in self._filter)
        plan = plan_mounts(profile, cwd)
        arguments = list(_CONFINE)
        # With `shared`, this is the network that `entering` enters.
        if profile.network or shared is not None:
            arguments.append('--share-net')
        arguments += _environment(passed_on(profile))
        for mount in plan.mounts:
            is_shared = shared is not None and mount.path == TEMPORARY and plan.has_own_tmp and not own_tmp
            arguments += ['--bind', PLACE, TEMPORARY] if is_shared else _argument(mount)
        arguments += ['--chdir', os.path.realpath(cwd), '--seccomp', '9', '--']
        return [
            *([] if shared is None else shared.entering(network=profile.network)),
            self._bash,
            '-p',
            '-c',
            _LAUNCHER % (_MOST_FILE_BYTES >> 10, octal),
            'os-sandbox',
            str(len(arguments)),
            self._bwrap,
            *arguments,
            *command,
        ]

    def notes(self, profile: OSProfile, cwd: str) -> tuple[str, ...]:
        """Return a note for each path where this backend gives less access than the profile.

        Raises:
            OSSandboxError: The backend cannot enforce the profile.
        """
        return plan_mounts(profile, cwd).notes

    def share(self) -> SharedNamespaces:
        """Make namespaces for the commands of a conversation, and check that a command in them is confined.

        Raises:
            OSSandboxError: The namespaces cannot be made, or do not confine commands.
        """
        memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        # No end of a command frees this memory.
        shared = SharedNamespaces.open(self._bwrap, size=min(_MOST_TEMPORARY_BYTES, memory // 4))
        found = probed(lambda: self._problem(shared), install='')
        if not found.is_available:
            raise OSSandboxError(f'namespaces cannot be shared: {found.reason}')
        return shared

    def probe(self) -> Availability:
        """Start a confined program that prints what the kernel says about it, and check the output."""
        return probed(self._problem, install=_INSTALL)

    def _problem(self, shared: SharedNamespaces | None = None) -> str:
        command = ['/bin/cat', '/proc/self/status', '/proc/self/limits']
        inherited = () if shared is None else shared.descriptors
        done = run_probe(self.wrap(command, system_profile(), '/', shared), inherited)
        if done.returncode != 0:
            return f'bubblewrap does not start: {done.stderr.strip()[:500]}'
        wrong = _not_confined(done.stdout)
        return f'bubblewrap does not confine commands: {wrong}' if wrong else ''


def _environment(variables: Mapping[str, str]) -> list[str]:
    arguments = ['--clearenv']
    for name, value in variables.items():
        arguments += ['--setenv', name, value]
    # The host's folder for temporary files does not exist inside the sandbox.
    return [*arguments, '--setenv', 'TMPDIR', '/tmp']


def _argument(mount: Mount) -> list[str]:
    match mount.kind:
        case 'write':
            return ['--bind', mount.path, mount.path]
        case 'read':
            return ['--ro-bind', mount.source or mount.path, mount.path]
        case 'temporary':
            return ['--size', str(_MOST_TEMPORARY_BYTES), '--tmpfs', mount.path]
        case 'empty':
            return ['--tmpfs', mount.path]
        case 'mask':
            # A device on a mount that forbids devices: opening it fails, while an empty file would look real.
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
    """Return what `/proc/self/status` and `/proc/self/limits` show of a lack of confinement; `''` if nothing."""
    lines = dict(line.split(':\t', 1) for line in status.splitlines() if ':\t' in line)
    # In a PID namespace, bubblewrap is process 1.
    expected = {'CapEff': '0' * 16, 'CapPrm': '0' * 16, 'NoNewPrivs': '1', 'Seccomp': '2', 'Pid': '2'}
    wrong = [
        f'{name} is {lines.get(name)!r} instead of {value!r}'
        for name, value in expected.items()
        if lines.get(name) != value
    ]
    if re.search(rf'^Max file size +{_MOST_FILE_BYTES} ', status, re.MULTILINE) is None:
        wrong.append('the size of files is not limited')
    return ', '.join(wrong)
