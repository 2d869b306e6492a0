"""Define what a backend is, and the two that confine nothing: one runs commands as they are, one refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from .profile import OSProfile, OSSandboxError, OSSandboxUnavailable

ENV: Final = '/usr/bin/env'
"""Sets variables for a program; a fixed place, as a folder of `PATH` may be one that a command can write to."""

OSSandboxFallback = Literal['fail_fast', 'refuse_tools']
"""What happens where a backend is required and none works: nothing starts, or file and shell tools refuse."""


@dataclass(frozen=True, kw_only=True)
class Availability:
    """What a probe found."""

    is_available: bool
    """Whether a command was really started and found itself confined."""
    reason: str = ''
    """Why not, in words for a person; empty if it is."""
    install: str = ''
    """What to do about it; empty if nothing helps."""


class OSSandboxBackend(Protocol):
    """Turns a command into one that is confined. It keeps no state between calls and may be used by several threads.

    A backend never runs a command by itself, except in `probe`.
    """

    @property
    def name(self) -> str:
        """The word for it in configuration, messages and logs."""
        ...

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """The command line that runs `command` under `profile`.

        Run it soon: it describes the files as they are now. Values of the variables in `profile.environment` are
        taken from this process and stand in the command line, where other users of the machine can read them.

        Args:
            command: The program and its arguments; the program by absolute path, or found through `PATH` inside.
            profile: What it may touch.
            cwd: Where it starts: the absolute path of a folder that exists.

        Raises:
            OSSandboxError: It cannot be confined as the profile says. Nothing has run.
        """
        ...

    def probe(self) -> Availability:
        """Start something harmless for real, and see whether it was confined. Takes some milliseconds.

        It raises nothing: whatever goes wrong is a reason.
        """
        ...


def run_probe(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a confined command that should end at once, and keep its output."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, errors='replace', timeout=10, check=False, cwd='/'
    )


def probed(find_problem: Callable[[], str], *, install: str) -> Availability:
    """What a probe found.

    Args:
        find_problem: Starts a program, and says what is wrong with its confinement; empty if nothing is.
        install: What to do about a problem.
    """
    try:
        problem = find_problem()
    except (OSError, OSSandboxError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    return Availability(is_available=not problem, reason=problem, install=install if problem else '')


class UnconfinedBackend:
    """Runs commands as they are. Only ever used where the configuration does not require an OS sandbox."""

    name = 'unconfined'

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """The command itself: nothing of the profile holds, its environment included."""
        return list(command)

    def probe(self) -> Availability:
        """Always there."""
        return Availability(is_available=True)


class RefusingBackend:
    """Stands where a backend is required and none works: every file and shell tool refuses, the rest goes on."""

    name = 'refusing'

    def __init__(self, reason: str) -> None:
        """Keep what a person has to do about it."""
        self.reason = reason

    def wrap(self, command: Sequence[str], profile: OSProfile, cwd: str) -> list[str]:
        """Refuse.

        Raises:
            OSSandboxUnavailable: Always.
        """
        raise OSSandboxUnavailable(self.reason)

    def check(self) -> None:
        """Refuse; for tools that wrap no command, such as those for files.

        Raises:
            OSSandboxUnavailable: Always.
        """
        raise OSSandboxUnavailable(self.reason)

    def probe(self) -> Availability:
        """Never there."""
        return Availability(is_available=False, reason=self.reason)
