"""Choose the backend that confines commands on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .backend import OSSandboxBackend, OSSandboxFallback, RefusingBackend, UnconfinedBackend
from .bubblewrap import BubblewrapBackend
from .profile import OSSandboxUnavailable
from .seatbelt import SeatbeltBackend


def choose_backend(
    *,
    require: bool = True,
    fallback: OSSandboxFallback = 'fail_fast',
    candidates: Sequence[OSSandboxBackend] | None = None,
) -> OSSandboxBackend:
    """Return the first backend whose probe succeeds. Each call starts programs, so call this function only once.

    Args:
        require: Whether commands may run only if a backend confines them.
        fallback: Action if a backend is required and none works.
        candidates: Backends to try in order; by default those for this platform.

    Returns:
        A backend that works. If no backend works, `require` decides: the result is an `UnconfinedBackend` if `require`
        is false, and a `RefusingBackend` if `require` is true.

    Raises:
        OSSandboxUnavailable: A backend is required, none works, and the fallback is `fail_fast`. The message says what
            to install.
    """
    problems: list[str] = []
    for candidate in platform_backends() if candidates is None else candidates:
        found = candidate.probe()
        if found.is_available:
            return candidate
        problems.append(f'{candidate.name}: {found.reason}' + (f'; {found.install}' if found.install else ''))
    if not require:
        return UnconfinedBackend()
    reason = 'no OS sandbox works here, and the configuration requires one. ' + (
        '. '.join(problems) or f'There is no OS sandbox for {sys.platform}'
    )
    if fallback == 'refuse_tools':
        return RefusingBackend(reason)
    raise OSSandboxUnavailable(reason)


def platform_backends(platform: str = sys.platform) -> tuple[OSSandboxBackend, ...]:
    """Return the backends for a platform, the preferred one first. Windows has no backend."""
    if platform == 'darwin':
        return (SeatbeltBackend(),)
    return (BubblewrapBackend(),) if platform == 'linux' else ()
