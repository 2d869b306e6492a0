"""What happens in the inbox, for one event loop to follow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from .keeper import Keeper


async def follow(keeper: Keeper) -> AsyncGenerator[frozenset[str] | None]:
    """See `Inbox.changes`. Who is slow gets all that has happened meanwhile at once."""
    loop = asyncio.get_running_loop()
    is_changed = asyncio.Event()
    is_all, ids = True, set[str]()

    def collect(changed: frozenset[str] | None) -> None:
        nonlocal is_all
        is_all = is_all or changed is None
        ids.update(changed or ())
        is_changed.set()

    def tell(changed: frozenset[str] | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody listens
            loop.call_soon_threadsafe(collect, changed)

    keeper.listen(tell)
    try:
        is_changed.set()
        while True:
            await is_changed.wait()
            is_changed.clear()
            told = None if is_all else frozenset(ids)
            is_all = False
            ids.clear()
            yield told
    finally:
        keeper.stop_listening(tell)
