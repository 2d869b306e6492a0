"""Define the backend protocol, a backend that does not confine commands, and a backend that refuses all commands."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from .profile import OSProfile, OSSandboxError, OSSandboxUnavailable

ENV: Final = '/usr/bin/env'
"""Program that sets environment variables for another program. The path is fixed because a command may be able to write
to a folder of `PATH`."""

OSSandboxFallback = Literal['fail_fast', 'refuse_tools']
"""Action if a backend is required and none works. With `fail_fast`, the application does not start. With
`refuse_tools`, the file and shell tools refuse every call."""


@dataclass(frozen=True, kw_only=True)
class Availability:
    """Result of a probe."""

    is_available: bool
    """Whether the probe started a command and the kernel confined it."""
    reason: str = ''
    """Message that explains to the user why the backend does not work; empty if the backend works."""
    install: str = ''
    """How the user can make the backend work; empty if the backend works or there is no remedy."""


class OSSandboxBackend(Protocol):
    """Turns a command into a confined command.

    A backend keeps no state between calls and is thread-safe. The method `wrap` does not run the command.
    """

    @property
    def name(self) -> str:
        """Name of the backend in settings, messages and logs."""
        ...

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Return the command line that runs `command` under `profile`.

        Run the command line immediately, because it was built for the files that exist now. Other users of this machine
        can read the command line, which contains the values of the variables in `profile.environment`.

        Args:
            command: The program and its arguments. A program without an absolute path is looked up in `PATH` inside the
                sandbox.
            profile: The access that the command gets.
            cwd: The absolute path of an existing folder in which the command starts.

        Raises:
            OSSandboxError: The backend cannot enforce the profile. No command has run.
        """
        ...

    def probe(self) -> Availability:
        """Start a harmless program, and check that the kernel confined it. The probe takes a few milliseconds.

        The method raises no exceptions. If the check fails, the `reason` in the result contains the error.
        """
        ...


def run_probe(command: Sequence[str], inherited: Collection[int] = ()) -> subprocess.CompletedProcess[str]:
    """Run a confined command with a timeout of 10 seconds, and return its exit status and output. It inherits the
    descriptors `inherited`.
    """
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        errors='replace',
        timeout=10,
        check=False,
        cwd='/',
        pass_fds=inherited,
    )


def probed(find_problem: Callable[[], str], *, install: str) -> Availability:
    """Run a check and return its result as an `Availability`.

    Args:
        find_problem: Function that starts a program, and returns an error text, or '' if the program is confined.
        install: How the user can make the backend work.
    """
    try:
        problem = find_problem()
    except (OSError, OSSandboxError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    return Availability(is_available=not problem, reason=problem, install=install if problem else '')


class UnconfinedBackend:
    """Runs commands as given, without an OS sandbox. This backend is used only if the settings do not require a
    sandbox.
    """

    name = 'unconfined'

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Return the command itself. The profile is ignored, even its environment."""
        return list(command)

    def probe(self) -> Availability:
        """Report that the backend works."""
        return Availability(is_available=True)


class RefusingBackend:
    """Makes file and shell tools refuse every call, because a backend is required and none works. Other tools still
    run.
    """

    name = 'refusing'

    def __init__(self, reason: str) -> None:
        """Set the error message. The message should say how to make a backend work."""
        self.reason = reason

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Refuse.

        Raises:
            OSSandboxUnavailable: Raised on every call.
        """
        raise OSSandboxUnavailable(self.reason)

    def check(self) -> None:
        """Refuse a call of a tool that runs no command, such as a file tool.

        Raises:
            OSSandboxUnavailable: Raised on every call.
        """
        raise OSSandboxUnavailable(self.reason)

    def probe(self) -> Availability:
        """Report that no backend works, with the reason."""
        return Availability(is_available=False, reason=self.reason)
