"""Call Slack's Web API: post, update and find the messages of the bot in one channel."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Literal, cast

from aiohttp import ClientError
from pydantic import AliasPath, BaseModel, Field, ValidationError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient

from tool_approval.core.errors import ApprovalError
from tool_approval.inbox import InboxEntry

from .blocks import View, message_of

_PER_LOOK = 200
"""Source: Slack recommends no more than 200 messages for a page of `conversations.history`."""

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
"""Errors that are about one message, and the same the next time. All others are about the app or the moment."""

_WORD = re.compile(r'[a-z0-9_]{1,60}')


class SlackUnavailable(ApprovalError):
    """Slack cannot be reached, is too busy, or does not let the bot in. What was asked may have been done or not."""

    def __init__(self, method: str, problem: str) -> None:
        """Name the method of Slack's Web API, and what was wrong: Slack's word for it, where it said one."""
        self.method = method
        self.problem = problem
        super().__init__(f'Slack could not be asked for {method}: {problem}')


class SlackRefused(ApprovalError):
    """Slack does not take this message, and never will. Nothing was done."""

    def __init__(self, method: str, problem: str) -> None:
        """Name the method of Slack's Web API, and Slack's word for what was wrong."""
        self.method = method
        self.problem = problem
        super().__init__(f'Slack has refused {method}: {problem}')


class _Posted(BaseModel):
    """A message that shows a request, as Slack lists it."""

    ts: str
    bot_id: str
    event_type: Literal['tool_approval_open'] = Field(validation_alias=AliasPath('metadata', 'event_type'))
    request_id: str = Field(validation_alias=AliasPath('metadata', 'event_payload', 'request_id'))


class SlackChannel:
    """Posts, updates and finds the messages of the bot in one channel."""

    def __init__(self, client: AsyncWebClient, channel: str) -> None:
        """Use a client that holds the bot's token, and the channel of that id."""
        self.id = channel
        # The library's own types leave much open.
        self._client: Any = client
        self._bot_id: str | None = None

    async def post(self, entry: InboxEntry) -> str:
        """Post a request; the timestamp of the message, which is its id.

        Raises:
            SlackRefused: Slack never takes this message.
            SlackUnavailable: It may have been posted or not.
        """
        # In a thread: a request may have megabytes.
        shown = await asyncio.to_thread(_shown, entry)
        answer = await self._write('chat.postMessage', **shown, unfurl_links=False, unfurl_media=False)
        timestamp = answer.get('ts')
        if not isinstance(timestamp, str):
            # It is found again by its metadata.
            raise SlackUnavailable('chat.postMessage', 'the answer names no message')
        return timestamp

    async def update(self, timestamp: str, entry: InboxEntry) -> None:
        """Let a message show the request as it is now.

        Raises:
            SlackRefused: The message is gone, or cannot be changed any more.
            SlackUnavailable: It may have been changed or not.
        """
        await self._write('chat.update', **await asyncio.to_thread(_shown, entry), ts=timestamp)

    async def whisper(self, user_id: str, text: str) -> None:
        """Show a text in Slack's markup to one person alone.

        Raises:
            SlackRefused: Slack never takes this message.
            SlackUnavailable: It may have been shown or not.
        """
        await self._write('chat.postEphemeral', user=user_id, text=text, parse='none', link_names=False)

    async def show_view(self, view: View, *, trigger_id: str, view_id: str | None = None) -> None:
        """Open a view for the person who has just pressed a button, or change the view that the button is in.

        Raises:
            SlackUnavailable: It did not open, such as when the press was more than three seconds ago.
        """
        if view_id is None:
            await self._asked('views.open', json={'trigger_id': trigger_id, 'view': dict(view)})
        else:
            await self._asked('views.update', json={'view_id': view_id, 'view': dict(view)})

    async def members(self, group_id: str) -> frozenset[str]:
        """Who is in a user group.

        Raises:
            SlackUnavailable: Slack does not say.
        """
        answer = await self._asked('usergroups.users.list', http_verb='GET', params={'usergroup': group_id})
        return frozenset(map(str, _list(answer.get('users'))))

    async def open_messages(self, since: datetime) -> AsyncGenerator[tuple[str, str]]:
        """The messages of this bot that show a request as open: the request's id, and the message's timestamp.

        Raises:
            SlackUnavailable: Slack does not say.
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
                    continue  # settled, or not of this bot, and then of any form
                # Attack: another app posts a message with our metadata, and has it filled with requests
                # (test_sync.py: test_messages_of_others_are_not_taken_for_its_own).
                if found.bot_id == self._bot_id:
                    yield found.request_id, found.ts
            match answer.get('response_metadata'):
                case {'next_cursor': str(cursor)} if cursor:
                    page['cursor'] = cursor
                case _:
                    return

    async def _write(self, method: str, **values: Any) -> Mapping[str, Any]:
        return await self._asked(method, json={'channel': self.id, **values})

    async def _asked(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        """What Slack has answered."""
        try:
            answer = (await self._client.api_call(method, **arguments)).data
        except SlackApiError as error:
            problem = _word(cast('Any', error).response)
            raise (SlackRefused if problem in _NEVER else SlackUnavailable)(method, problem) from None
        # What the library raises besides: connections that break, times that are up, answers that are no JSON, and
        # `AttributeError` for JSON that is no object.
        except (SlackClientError, ClientError, TimeoutError, OSError, ValueError, AttributeError) as error:
            raise SlackUnavailable(method, type(error).__name__) from None
        if not isinstance(answer, dict):
            raise SlackUnavailable(method, 'the answer is no object')
        return cast('Mapping[str, Any]', answer)


def _shown(entry: InboxEntry) -> dict[str, Any]:
    """A request as `chat.postMessage` and `chat.update` take it. Names and addresses in it stay plain text."""
    message = message_of(entry)
    kind = 'tool_approval_open' if entry.state == 'pending' else 'tool_approval_settled'
    return {
        'text': message.text,
        'blocks': list(message.blocks),
        'metadata': {'event_type': kind, 'event_payload': {'request_id': entry.id}},
        'parse': 'none',
        'link_names': False,
    }


def _list(value: object) -> list[object]:
    return cast('list[object]', value) if isinstance(value, list) else []


def _word(response: Any) -> str:
    """Slack's word for the error. What came instead may be the page of a proxy, which does not belong in a log."""
    # The library does not say its type: it is its own answer, or that of aiohttp.
    match getattr(response, 'data', None):
        case {'error': str(word)} if _WORD.fullmatch(word):
            return word
        case _:
            return 'an answer that is none of its own'


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

    async def _can_retry_async(self, *, response: HttpResponse | None = None, **_: Any) -> bool:
        return response is not None and response.status_code == 429 and _wait_s(response) <= LONGEST_WAIT_S

    async def prepare_for_next_attempt_async(
        self, *, state: RetryState, response: HttpResponse | None = None, **_: Any
    ) -> None:
        """Wait, and let the library try again."""
        assert response is not None, 'only what was answered is tried again'
        state.next_attempt_requested = True
        await self._sleep(_wait_s(response))
        state.increment_current_attempt()


def _wait_s(response: HttpResponse) -> int:
    for name, values in response.headers.items():
        value = values[0] if values else ''
        if name.lower() == 'retry-after' and value.isascii() and value.isdigit():
            return int(value[:9])
    return _UNTOLD_S
