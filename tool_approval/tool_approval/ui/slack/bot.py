"""Create the Slack bot from its parts, and run it with Slack's library."""

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
from tool_approval.inbox.chats import MessageSync, Sleep, check_people
from tool_approval.ui.replays import Replays

from .actions import ButtonActions, People
from .blocks import (
    APPROVE,
    BOUNDED,
    DENY,
    DENY_SESSION,
    EDIT,
    FULL,
    NEXT,
    NOTE,
    NOTE_FORM,
    PREVIOUS,
    RESPOND,
    RESPONSE_FORM,
    SESSION,
)
from .channel import RateLimits, SlackChannel
from .edit_views import CHANGED_FORM, EDIT_FORM
from .endpoint import SlackEndpoint

_CHANNEL = re.compile(r'[CGD][A-Z0-9]{2,40}')

_SLACK = 'https://slack.com/api/'

_log = logging.getLogger('tool_approval.slack')


class SlackBot:
    """Posts the open requests of an inbox to a Slack channel, and records the approvers' answers.

    Run only one bot for a channel and inbox, because two bots would post every request twice.
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
        """Configure the bot, without sending anything yet.

        Args:
            inbox: Inbox with the requests. The bot does not close the inbox.
            token: Bot token, which begins with `xoxb-`.
            channel: Id of the channel, such as `C024BE91L`, not the channel's name.
            approvers: Slack's ids of users (`U...`) and user groups (`S...`) that may answer. The rules of
                `InboxUI(approvers=)` apply as well.
            signing_secret: The Slack app's signing secret if it uses HTTP; `None` for Socket Mode.
            people: Maps Slack's user ids to the approver ids used in other UIs and in `InboxUI(requester=)`. Users
                without an entry may not answer. `None` uses Slack's user ids as approver ids.
            api: URL of Slack's Web API.
            now: Function that returns the current time.
            clock: Clock that returns monotonic seconds.
            sleep: Function that waits for a number of seconds.

        Raises:
            TypeError: `inbox` is not an `Inbox`, or `approvers` is not an `ApproverRule`.
            ValueError: An argument is invalid, or environment variables would make Slack's library ignore the token.
        """
        check_people(inbox, approvers, people)
        if not token.startswith('xoxb-'):
            raise ValueError("`token` must be a bot token, which begins with 'xoxb-'")
        if _CHANNEL.fullmatch(channel) is None:
            raise ValueError(f"{channel!r} is not a channel id such as 'C024BE91L'; see the channel's details in Slack")
        if signing_secret is not None and not signing_secret.strip():
            raise ValueError('`signing_secret` is empty; leave it out for Socket Mode')
        client = AsyncWebClient(token=token, base_url=api, retry_handlers=[RateLimits(sleep)], logger=_log)
        self._has_secret = signing_secret is not None
        self._app = AsyncApp(
            client=client,
            # Without a secret no request may be valid, even if the environment has a secret.
            signing_secret=signing_secret or secrets.token_hex(32),
            logger=_log,
        )
        if self._app.oauth_flow is not None:
            raise ValueError(
                "unset SLACK_CLIENT_ID and SLACK_CLIENT_SECRET: while they are set, Slack's library ignores `token`"
            )
        slack = SlackChannel(client, channel)
        self._messages = MessageSync(inbox, slack, now=now, sleep=sleep)
        self._replays = Replays(clock)
        take = ButtonActions(inbox, slack, self._messages, People(slack, approvers, people, clock)).take
        # The library's decorators are untyped.
        listening: Any = self._app
        listening.use(self._refuse_replays)
        for name in (APPROVE, SESSION, *BOUNDED, DENY, DENY_SESSION, NOTE, FULL, PREVIOUS, NEXT, EDIT, RESPOND):
            listening.action(name)(take)
        for name in (NOTE_FORM, RESPONSE_FORM, EDIT_FORM, CHANGED_FORM):
            listening.view(name)(take)

    @property
    def http(self) -> SlackEndpoint:
        """ASGI application with a single route that receives button presses from Slack.

        Raises:
            ValueError: The bot has no `signing_secret`, so requests from Slack cannot be verified.
        """
        if not self._has_secret:
            raise ValueError('`http` requires `signing_secret`')
        return SlackEndpoint(self._app)

    async def run(self, app_token: str | None = None) -> None:
        """Post and update messages until cancelled. If an app token is given, also receive button presses over Socket
        Mode.

        Args:
            app_token: App-level token, which begins with `xapp-`. `None` if Slack sends button presses to the ASGI
                application `http`.

        Raises:
            ValueError: The app token is invalid.
            InboxError: The inbox is closed or cannot be trusted.
        """
        if app_token is None:
            return await self._messages.follow()
        if not app_token.startswith('xapp-'):
            raise ValueError("`app_token` must be an app-level token, which begins with 'xapp-'")
        socket = AsyncSocketModeHandler(self._app, app_token, logger=_log)
        # Connecting is retried in the background, while requests are posted.
        connecting = asyncio.ensure_future(socket.connect_async())
        try:
            await self._messages.follow()
        finally:
            connecting.cancel()
            await socket.close_async()

    async def _refuse_replays(self, req: AsyncBoltRequest, next: Callable[[], Awaitable[BoltResponse]]) -> BoltResponse:
        # Slack's library has already checked the signature and its age. Socket Mode has no signatures.
        if req.mode == 'http' and not self._replays.is_new(req.headers['x-slack-signature'][0]):
            return BoltResponse(status=401, body='')
        return await next()
