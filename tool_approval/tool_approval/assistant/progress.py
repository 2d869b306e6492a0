"""A line that tells, while something takes long, what it is and for how long it has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .calls import Calls
from .screen import Screen

EVERY_S = 0.5
"""Chosen: seconds between two looks."""


async def show_progress(
    screen: Screen, calls: Calls, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Show it until cancelled. Where nobody looks, or a question is open, nothing is shown.

    Args:
        screen: Where it is shown.
        calls: What runs.
        sleep: Waits so many seconds.

    Raises:
        OSError: The screen cannot be written to.
    """
    while True:
        await sleep(EVERY_S)
        told = calls.progress()
        if told is not None:
            screen.pass_by(f'  ... {screen.escaped(told)}')
