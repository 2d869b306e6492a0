"""The bot, put together."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from tool_approval.inbox import ApproverRule, Inbox

from .actions import ButtonActions, People
from .blocks import APPROVE, DENY, FULL, NEXT, NOTE, NOTE_FORM, PREVIOUS, SESSION
from .channel import RateLimits, SlackChannel, Sleep
from .endpoint import Replays, SlackEndpoint
from .sync import MessageSync

_CHANNEL = re.compile(r'[CGD][A-Z0-9]{2,40}')

_SLACK = 'https://slack.com/api/'

_log = logging.getLogger('tool_approval.slack')


class SlackBot:
    """Posts what is open in an inbox into a channel, and takes the answers that people press there.

    Run one for a channel and an inbox, in the process of the agent or in its own; two would post everything twice.
    """

    def __init__(
        self,
        inbox: Inbox,
        *,
        token: str,
        channel: str,
        approvers: ApproverRule,
        signing_secret: str | None = None,
        people: Mapping[str, str] | None = None,
        api: str = _SLACK,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Put the bot together; nothing is sent yet.

        Args:
            inbox: What to show; the bot does not close it.
            token: The bot's, which begins with `xoxb-`.
            channel: The id of the channel, such as `C024BE91L`; not its name.
            approvers: Slack's ids of users (`U...`) and user groups (`S...`) who may press. What `InboxUI(approvers=)`
                says holds as well.
            signing_secret: Of the app, for HTTP. Socket Mode needs none.
            people: By Slack's user id, the id that the person has in other channels and in `InboxUI(requester=)`; who
                is not in it may not answer. `None`: Slack's user id is the person's id.
            api: Where Slack's Web API is.
            now: The time of day, for where in the history of the channel to begin.
            clock: Seconds that never go back.
            sleep: Waits for so many seconds.

        Raises:
            ValueError: The token, the channel or the approvers are invalid, or the environment holds settings
                for another way to use Slack's library.
        """
        if not token.startswith('xoxb-'):
            raise ValueError("`token` must be the bot's, which begins with 'xoxb-'")
        if _CHANNEL.fullmatch(channel) is None:
            raise ValueError(f"{channel!r} is not the id of a channel; its details in Slack show it ('C024BE91L')")
        if not approvers.users and not approvers.groups:
            raise ValueError('`approvers` lists nobody, so nobody could answer')
        if signing_secret is not None and not signing_secret.strip():
            raise ValueError('`signing_secret` is empty; leave it out for Socket Mode')
        client = AsyncWebClient(token=token, base_url=api, retry_handlers=[RateLimits(sleep)], logger=_log)
        self._has_secret = signing_secret is not None
        self._app = AsyncApp(
            client=client,
            # Without a secret no request can be signed, whatever the environment says.
            signing_secret=signing_secret or secrets.token_hex(32),
            logger=_log,
        )
        if self._app.oauth_flow is not None:
            raise ValueError(
                "unset SLACK_CLIENT_ID and SLACK_CLIENT_SECRET: with them, Slack's library ignores `token`"
            )
        slack = SlackChannel(client, channel)
        self._messages = MessageSync(inbox, slack, now=now, sleep=sleep)
        self._replays = Replays(clock)
        take = ButtonActions(inbox, slack, self._messages, People(slack, approvers, people, clock)).take
        # Its decorators take any function, and say nothing of their types.
        listening: Any = self._app
        listening.use(self._refuse_replays)
        for name in (APPROVE, SESSION, DENY, NOTE, FULL, PREVIOUS, NEXT):
            listening.action(name)(take)
        listening.view(NOTE_FORM)(take)

    @property
    def http(self) -> SlackEndpoint:
        """An ASGI application that takes what people press, for Slack to call. It needs no other route than its own.

        Raises:
            ValueError: The bot has no `signing_secret`, so it could not tell Slack from anybody else.
        """
        if not self._has_secret:
            raise ValueError('`signing_secret` is needed to be called by Slack over HTTP')
        return SlackEndpoint(self._app)

    async def run(self, app_token: str | None = None) -> None:
        """Post and update messages until cancelled; with an app token, take what people press by Socket Mode as well.

        Args:
            app_token: Begins with `xapp-`. `None` where `http` is served.

        Raises:
            ValueError: The app token is invalid.
            InboxError: The inbox is closed, or cannot be trusted.
        """
        if app_token is None:
            return await self._messages.follow()
        if not app_token.startswith('xapp-'):
            raise ValueError("`app_token` must be the app's, which begins with 'xapp-'")
        socket = AsyncSocketModeHandler(self._app, app_token, logger=_log)
        # It tries until it is connected, and requests are posted meanwhile.
        connecting = asyncio.ensure_future(socket.connect_async())
        try:
            await self._messages.follow()
        finally:
            connecting.cancel()
            await socket.close_async()

    async def _refuse_replays(self, req: AsyncBoltRequest, next: Callable[[], Awaitable[BoltResponse]]) -> BoltResponse:
        # After Slack's library has checked the signature and its age. What comes by Socket Mode has none.
        if req.mode == 'http' and not self._replays.is_new(req.headers['x-slack-signature'][0]):
            return BoltResponse(status=401, body='')
        return await next()
