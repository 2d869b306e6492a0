"""Waits as long as Slack says when it is asked too often."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .library import AsyncRetryHandler, HttpRequest, HttpResponse, RetryState

MOST_RETRIES = 5
"""Chosen: who is put off so often in a row does not go on, and others get their turn."""

LONGEST_WAIT_S = 120
"""Chosen: Slack asks for seconds, at most for a minute. A call that would take longer fails."""

_UNTOLD_S = 5
"""Chosen: seconds to wait where Slack does not say for how long."""

Sleep = Callable[[float], Awaitable[None]]


class RateLimits(AsyncRetryHandler):
    """Tries again what was answered with status 429. Such a request was not carried out, so nothing is done twice."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        """Wait by `sleep`, which takes seconds."""
        super().__init__(max_retry_count=MOST_RETRIES)
        self._sleep = sleep

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        return response is not None and response.status_code == 429 and _wait_s(response) <= LONGEST_WAIT_S

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> None:
        """Wait, and let the library try again."""
        assert response is not None, 'only what was answered is tried again'
        state.next_attempt_requested = True
        await self._sleep(_wait_s(response))
        state.increment_current_attempt()


def _wait_s(response: HttpResponse) -> int:
    for name, values in response.headers.items():
        told = values[0] if values else ''
        if name.lower() == 'retry-after' and told.isascii() and told.isdigit():
            return int(told[:9])
    return _UNTOLD_S
