"""Call Slack's Web API: post, update and find the messages of the bot in one channel."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any, Literal, cast

from aiohttp import ClientError
from pydantic import AliasPath, BaseModel, Field, ValidationError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient

from tool_approval.inbox import InboxEntry
from tool_approval.inbox.chats import ChatRefused, ChatUnavailable, Sleep

from .blocks import View, message_of

_PER_LOOK = 200
"""Number of messages in a page of `conversations.history`. Slack recommends at most 200."""

_NEVER = frozenset(
    {
        'block_mismatch',
        'cant_update_message',
        'edit_window_closed',
        'invalid_blocks',
        'invalid_blocks_format',
        'message_not_found',
        'msg_blocks_too_long',
        'msg_too_long',
        'no_text',
    }
)
"""Slack's error codes for a permanent problem with one message. Other errors are temporary or affect the whole app."""

_WORD = re.compile(r'[a-z0-9_]{1,60}')


class _Posted(BaseModel):
    """A message in Slack's history that shows an open request."""

    ts: str
    bot_id: str
    event_type: Literal['tool_approval_open'] = Field(validation_alias=AliasPath('metadata', 'event_type'))
    request_id: str = Field(validation_alias=AliasPath('metadata', 'event_payload', 'request_id'))
    others: int = Field(default=0, validation_alias=AliasPath('metadata', 'event_payload', 'others'))


class SlackChannel:
    """Posts, updates and finds the messages of the bot in one channel."""

    chat = 'Slack'

    def __init__(self, client: AsyncWebClient, channel: str) -> None:
        """Use the channel with the id `channel`, through a client that has the bot's token."""
        self.id = channel
        # The library's types are incomplete.
        self._client: Any = client
        self._bot_id: str | None = None

    async def post(self, entry: InboxEntry, others: int) -> str:
        """Post a request, and return the timestamp that identifies the message.

        Args:
            entry: The request.
            others: How many of `entry.others_at` have passed.

        Raises:
            ChatRefused: Slack permanently refuses this message.
            ChatUnavailable: The message may or may not have been posted.
        """
        # In a thread: a request may have several megabytes.
        shown = await asyncio.to_thread(_shown, entry, others)
        answer = await self._write('chat.postMessage', **shown, unfurl_links=False, unfurl_media=False)
        timestamp = answer.get('ts')
        if not isinstance(timestamp, str):
            # The posted message is found by its metadata later.
            raise ChatUnavailable('Slack', 'chat.postMessage', 'the response has no timestamp')
        return timestamp

    async def update(self, message_id: str, entry: InboxEntry) -> None:
        """Update a message to show the current state of the request.

        Raises:
            ChatRefused: The message was deleted, or can no longer be edited.
            ChatUnavailable: The message may or may not have been updated.
        """
        await self._write('chat.update', **await asyncio.to_thread(_shown, entry), ts=message_id)

    async def whisper(self, user_id: str, text: str) -> None:
        """Show a text in Slack's markup to only one person.

        Raises:
            ChatRefused: Slack permanently refuses this message.
            ChatUnavailable: The text may or may not have been shown.
        """
        await self._write('chat.postEphemeral', user=user_id, text=text, parse='none', link_names=False)

    async def show_view(self, view: View, *, trigger_id: str, view_id: str | None = None) -> None:
        """Open a view for the person who pressed a button, or replace the view that has the id `view_id`.

        Raises:
            ChatUnavailable: The view did not open, for example because the button was pressed over three seconds ago.
        """
        if view_id is None:
            await self._asked('views.open', json={'trigger_id': trigger_id, 'view': dict(view)})
        else:
            await self._asked('views.update', json={'view_id': view_id, 'view': dict(view)})

    async def members(self, group_id: str) -> frozenset[str]:
        """Return the ids of the members of a user group.

        Raises:
            ChatUnavailable: The members cannot be looked up.
        """
        answer = await self._asked('usergroups.users.list', http_verb='GET', params={'usergroup': group_id})
        return frozenset(map(str, _list(answer.get('users'))))

    async def open_messages(self, since: datetime) -> AsyncGenerator[tuple[str, str, int]]:
        """Yield the request id, the timestamp and `others` of each of the bot's messages that show an open request.

        Raises:
            ChatUnavailable: The messages cannot be listed.
        """
        if self._bot_id is None:
            self._bot_id = str((await self._asked('auth.test')).get('bot_id'))
        page: dict[str, Any] = {
            'channel': self.id,
            'oldest': f'{since.timestamp():.6f}',
            'include_all_metadata': True,
            'limit': _PER_LOOK,
        }
        while True:
            answer = await self._asked('conversations.history', http_verb='GET', params=page)
            for message in _list(answer.get('messages')):
                try:
                    found = _Posted.model_validate(message)
                except ValidationError:
                    continue  # settled, or a message of someone else
                # Attack: another app posts a message with the same metadata, to have it filled with requests
                # (test_sync.py: test_messages_of_others_are_not_taken_for_its_own).
                if found.bot_id == self._bot_id:
                    yield found.request_id, found.ts, found.others
            match answer.get('response_metadata'):
                case {'next_cursor': str(cursor)} if cursor:
                    page['cursor'] = cursor
                case _:
                    return

    async def _write(self, method: str, **values: Any) -> Mapping[str, Any]:
        return await self._asked(method, json={'channel': self.id, **values})

    async def _asked(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        """Call a Web API method, and return Slack's response."""
        try:
            answer = (await self._client.api_call(method, **arguments)).data
        except SlackApiError as error:
            problem = _word(cast('Any', error).response)
            raise (ChatRefused if problem in _NEVER else ChatUnavailable)('Slack', method, problem) from None
        # Other errors of the library: broken connections, timeouts, responses that are not JSON, and `AttributeError`
        # for JSON that is not an object.
        except (SlackClientError, ClientError, TimeoutError, OSError, ValueError, AttributeError) as error:
            raise ChatUnavailable('Slack', method, type(error).__name__) from None
        if not isinstance(answer, dict):
            raise ChatUnavailable('Slack', method, 'the response is not an object')
        return cast('Mapping[str, Any]', answer)


def _shown(entry: InboxEntry, others: int = 0) -> dict[str, Any]:
    """Return the arguments of `chat.postMessage` and `chat.update`. Slack shows names and links in the request as plain
    text.
    """
    message = message_of(entry, others=others)
    kind = 'tool_approval_open' if entry.state == 'pending' else 'tool_approval_settled'
    return {
        'text': message.text,
        'blocks': list(message.blocks),
        'metadata': {'event_type': kind, 'event_payload': {'request_id': entry.id, 'others': others}},
        'parse': 'none',
        'link_names': False,
    }


def _list(value: object) -> list[object]:
    return cast('list[object]', value) if isinstance(value, list) else []


def _word(response: Any) -> str:
    """Return Slack's error code alone, because other text, such as a proxy's error page, must not be logged."""
    # Untyped in the library: either its own response or that of aiohttp.
    match getattr(response, 'data', None):
        case {'error': str(word)} if _WORD.fullmatch(word):
            return word
        case _:
            return 'unexpected response'


MOST_RETRIES = 5
"""Maximum number of retries after a rate limit."""

LONGEST_WAIT_S = 120
"""Maximum seconds to wait before a retry. Slack normally asks clients to wait at most a minute. If Slack asks
for a wait longer than the maximum, the call fails."""

_UNTOLD_S = 5
"""Seconds to wait if Slack's response has no `Retry-After` header."""


class RateLimits(AsyncRetryHandler):
    """Retries calls that failed with status 429. Slack did not execute these calls, so a retry repeats no action."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        """Wait by calling `sleep` with a number of seconds."""
        super().__init__(max_retry_count=MOST_RETRIES)
        self._sleep = sleep

    async def _can_retry_async(self, *, response: HttpResponse | None = None, **_: Any) -> bool:
        return response is not None and response.status_code == 429 and _wait_s(response) <= LONGEST_WAIT_S

    async def prepare_for_next_attempt_async(
        self, *, state: RetryState, response: HttpResponse | None = None, **_: Any
    ) -> None:
        """Wait, then let the library retry."""
        assert response is not None, 'only responses are retried'
        state.next_attempt_requested = True
        await self._sleep(_wait_s(response))
        state.increment_current_attempt()


def _wait_s(response: HttpResponse) -> int:
    for name, values in response.headers.items():
        value = values[0] if values else ''
        if name.lower() == 'retry-after' and value.isascii() and value.isdigit():
            return int(value[:9])
    return _UNTOLD_S
