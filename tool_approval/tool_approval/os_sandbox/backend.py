"""Define the backend protocol, and two backends that confine nothing: one runs commands as given, and the other refuses
them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from .profile import OSProfile, OSSandboxError, OSSandboxUnavailable

ENV: Final = '/usr/bin/env'
"""Program that sets environment variables for another program. The path is fixed because a command may be able to write
to a folder of `PATH`."""

OSSandboxFallback = Literal['fail_fast', 'refuse_tools']
"""Reaction if a backend is required and none works. `fail_fast` starts nothing, and `refuse_tools` makes the file and
shell tools refuse every call."""


@dataclass(frozen=True, kw_only=True)
class Availability:
    """Result of a probe."""

    is_available: bool
    """Whether the probe started a command and the kernel confined it."""
    reason: str = ''
    """Reason for the user why the backend does not work; empty if it works."""
    install: str = ''
    """Advice for the user how to make the backend work; empty if it works or nothing helps."""


class OSSandboxBackend(Protocol):
    """Turns a command into a confined command.

    A backend keeps no state between calls, and several threads may use it. Only `probe` runs a command.
    """

    @property
    def name(self) -> str:
        """Name of the backend in settings, messages and logs."""
        ...

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Return the command line that runs `command` under `profile`.

        Run the command line soon, because it describes the files as they are now. The command line contains the values
        of the variables in `profile.environment`, taken from this process, and other users of the host can read them.

        Args:
            command: The program and its arguments. The program is an absolute path, or is found through `PATH` inside
                the sandbox.
            profile: The access that the command gets.
            cwd: The absolute path of an existing folder in which the command starts.

        Raises:
            OSSandboxError: The backend cannot enforce the profile. No command has run.
        """
        ...

    def probe(self) -> Availability:
        """Start a harmless program, and check that the kernel confined it. The probe takes some milliseconds.

        The method never raises. Any failure becomes the `reason` of the result.
        """
        ...


def run_probe(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a confined command that should end at once, and return its status and output."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, errors='replace', timeout=10, check=False, cwd='/'
    )


def probed(find_problem: Callable[[], str], *, install: str) -> Availability:
    """Run a check and return its result as an `Availability`.

    Args:
        find_problem: Function that starts a program and returns the problem with its confinement, or an empty string.
        install: How the user can solve a problem.
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
        """Return the command itself. Nothing of the profile applies, not even its environment."""
        return list(command)

    def probe(self) -> Availability:
        """Report that the backend works."""
        return Availability(is_available=True)


class RefusingBackend:
    """Makes every file and shell tool refuse its calls, if a backend is required and none works. Other tools still
    run.
    """

    name = 'refusing'

    def __init__(self, reason: str) -> None:
        """Keep the reason, which says what the user has to do."""
        self.reason = reason

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Refuse.

        Raises:
            OSSandboxUnavailable: Raised on every call.
        """
        raise OSSandboxUnavailable(self.reason)

    def check(self) -> None:
        """Refuse on behalf of a tool that wraps no command, such as a file tool.

        Raises:
            OSSandboxUnavailable: Raised on every call.
        """
        raise OSSandboxUnavailable(self.reason)

    def probe(self) -> Availability:
        """Report that no backend works, with the reason."""
        return Availability(is_available=False, reason=self.reason)
