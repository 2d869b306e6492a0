"""Use server-sent events to notify open pages of changes.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import StreamingResponse

from tool_approval.inbox import Approver, Inbox

from .guard import Limits
from .refusals import HttpRefusal
from .visitors import Visitors

BEAT_S = 15.0
"""Seconds between keep-alive messages. Proxies close a connection that carries no data for about a minute."""


class Streams:
    """Event streams, one for each open page."""

    def __init__(self, inbox: Inbox, visitors: Visitors, limits: Limits, *, beat_s: float = BEAT_S) -> None:
        self._inbox = inbox
        self._visitors = visitors
        self._limits = limits
        self._beat_s = beat_s
        self._count = 0

    async def respond(self, request: Request) -> StreamingResponse:
        """Respond with a stream of `changed` events. Each event contains the ids of changed requests, or `null` if the
        ids are unknown.

        Raises:
            HttpRefusal: The visitor is not logged in, or too many event streams are open.
        """
        visitor = await self._visitors.visitor(request)
        if self._count >= self._limits.max_streams:
            headers = {'Retry-After': '30'}
            raise HttpRefusal(
                503, 'too_many_streams', 'too many pages are open; close some and reload this one', headers=headers
            )
        headers = {'X-Accel-Buffering': 'no'}  # otherwise nginx delays events
        return StreamingResponse(self._follow(request, visitor), media_type='text/event-stream', headers=headers)

    async def _follow(self, request: Request, visitor: Approver) -> AsyncGenerator[str]:
        changes = self._inbox.changes()
        following = asyncio.ensure_future(anext(changes))
        self._count += 1
        try:
            yield 'retry: 2000\n\n'
            while True:
                await asyncio.wait({following}, timeout=self._beat_s)
                # Attack: a page stays open after its session has ended, and still gets events
                # (test_attacks.py: test_a_stream_ends_with_its_session).
                if not await self._is_still(request, visitor):
                    return
                if not following.done():
                    yield ': still here\n\n'
                    continue
                ids = following.result()
                following = asyncio.ensure_future(anext(changes))
                yield f'event: changed\ndata: {json.dumps(None if ids is None else sorted(ids))}\n\n'
        finally:
            self._count -= 1
            following.cancel()
            await asyncio.wait({following})
            await changes.aclose()

    async def _is_still(self, request: Request, visitor: Approver) -> bool:
        try:
            return await self._visitors.visitor(request) == visitor
        except HttpRefusal:
            return False
