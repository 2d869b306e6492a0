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
    """The first candidate whose probe succeeds. It starts programs; call it once.

    Args:
        require: Whether commands may run only if one confines them.
        fallback: What to do if they may not, and none does.
        candidates: Backends to try in order, by default the one for this platform.

    Returns:
        A backend that works; a `RefusingBackend` if none does and the fallback is `refuse_tools`; an
        `UnconfinedBackend` if none does and none is required.

    Raises:
        OSSandboxUnavailable: One is required, none works, and the fallback is not `refuse_tools`. It says what to
            install.
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
        '. '.join(problems) or f'There is none for {sys.platform}'
    )
    if fallback == 'refuse_tools':
        return RefusingBackend(reason)
    raise OSSandboxUnavailable(reason)


def platform_backends(platform: str = sys.platform) -> tuple[OSSandboxBackend, ...]:
    """The backends that can be there on a platform, best first. None for Windows."""
    if platform == 'darwin':
        return (SeatbeltBackend(),)
    return (BubblewrapBackend(),) if platform == 'linux' else ()
