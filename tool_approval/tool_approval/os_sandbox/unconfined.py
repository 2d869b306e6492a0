"""No kernel enforcement: because somebody chose that, or because nothing may run without it."""

from __future__ import annotations

from collections.abc import Sequence

from .backend import Availability
from .errors import OSSandboxUnavailable
from .profile import OSProfile


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
