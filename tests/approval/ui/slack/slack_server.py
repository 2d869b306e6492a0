"""The part of Slack that the bot uses: its Web API and Socket Mode on loopback, as its reference describes them.

What Slack would refuse is refused here too: missing tokens, too many blocks, texts that are too long.
"""

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from urllib.parse import urlencode

from aiohttp import WSMsgType, web

BOT_TOKEN, APP_TOKEN, SECRET = 'xoxb-test', 'xapp-test', 'a signing secret'
CHANNEL, BOT_ID = 'C0APPROVE', 'B0BOT'

TRIGGERS = count()


class SlackServer:
    """Messages, views and whispers as people in the channel would see them."""

    def __init__(self) -> None:
        self.api = ''
        self.messages: dict[str, dict[str, Any]] = {}
        self.whispers: list[tuple[str, str]] = []
        self.views: list[dict[str, Any]] = []
        self.groups: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, list[Any]] = {}
        self.page_size = 200
        self.acknowledged: list[str] = []
        self.connections = 0
        self._sockets: list[web.WebSocketResponse] = []
        self._stamps = count(1)
        self._changed = asyncio.Condition()

    def fail(self, method: str, *faults: Any) -> None:
        """Let the next calls fail: an error's word, a status, 'drop', or 'done-drop', which drops what was done."""
        self.faults.setdefault(method, []).extend(faults)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that was asked for makes it true."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(condition)

    @asynccontextmanager
    async def running(self):
        app = web.Application()
        app.router.add_route('*', '/api/{method}', self._call)
        app.router.add_get('/link', self._socket)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, '127.0.0.1', 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.api = f'http://{host}:{port}/api/'
        self._link = f'ws://{host}:{port}/link'
        try:
            yield self
        finally:
            for socket in self._sockets:
                await socket.close()
            assert runner.server is not None
            serving = runner.server
            await _are_closed(serving)
            await runner.cleanup()
            await _are_closed(serving)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info['method']
        body = await request.json() if request.content_type == 'application/json' else dict(await request.post())
        params = {**request.query, **body}
        faults = self.faults.get(method) or [None]
        fault = faults.pop(0)
        try:
            answer = self._refusal(request, method, fault) or self._done(method, params)
        finally:
            async with self._changed:
                self.calls.append(method)
                self.asked.append((method, params))
                self._changed.notify_all()
        if fault in ('drop', 'done-drop'):
            assert request.transport is not None
            request.transport.close()
        return answer

    def _refusal(self, request: web.Request, method: str, fault: Any) -> web.Response | None:
        token = APP_TOKEN if method == 'apps.connections.open' else BOT_TOKEN
        if request.headers.get('Authorization') != f'Bearer {token}':
            return web.json_response({'ok': False, 'error': 'invalid_auth'})
        match fault:
            case None | 'done-drop':
                return None
            case 'drop':
                return web.Response()
            case 429:
                return web.json_response(
                    {'ok': False, 'error': 'ratelimited'}, status=429, headers={'Retry-After': '7'}
                )
            case web.Response():
                return fault
            case _:
                return web.json_response({'ok': False, 'error': fault})

    def _done(self, method: str, params: dict[str, Any]) -> web.Response:
        done = getattr(self, '_' + method.replace('.', '_'))(params)
        return web.json_response({'ok': 'error' not in done, **done})

    def _auth_test(self, params):
        return {'bot_id': BOT_ID, 'user_id': 'U0BOT', 'team_id': 'T0', 'url': 'http://slack.invalid/', 'team': 't'}

    def _chat_postMessage(self, params):
        if problem := refused_blocks(params['blocks'], 50):
            return {'error': problem}
        stamp = f'{time.time():.0f}.{next(self._stamps):06}'
        self.messages[stamp] = {'ts': stamp, 'bot_id': BOT_ID, **params}
        return {'ts': stamp, 'channel': params['channel']}

    def _chat_update(self, params):
        if params['ts'] not in self.messages:
            return {'error': 'message_not_found'}
        if problem := refused_blocks(params['blocks'], 50):
            return {'error': problem}
        self.messages[params['ts']].update(params)
        return {'ts': params['ts']}

    def _chat_postEphemeral(self, params):
        self.whispers.append((params['user'], params['text']))
        return {'message_ts': '1.1'}

    def _views_open(self, params):
        view = params['view']
        if problem := refused_blocks(view['blocks'], 100) or len(view['title']['text']) > 24:
            return {'error': problem}
        self.views.append(view)
        return {'view': {'id': 'V1'}}

    def _views_update(self, params):
        return self._views_open(params)

    def _usergroups_users_list(self, params):
        if params['usergroup'] not in self.groups:
            return {'error': 'no_such_subteam'}
        return {'users': self.groups[params['usergroup']]}

    def _conversations_history(self, params):
        start = int(params.get('cursor') or 0)
        oldest = float(params['oldest'])
        newest_first = [each for stamp, each in sorted(self.messages.items(), reverse=True) if float(stamp) >= oldest]
        end = start + self.page_size
        further = str(end) if end < len(newest_first) else ''
        return {'messages': newest_first[start:end], 'response_metadata': {'next_cursor': further}}

    def _apps_connections_open(self, params):
        return {'url': self._link}

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({'type': 'hello', 'num_connections': 1})
        async with self._changed:
            self._sockets.append(socket)
            self.connections += 1
            self._changed.notify_all()
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                async with self._changed:
                    self.acknowledged.append(json.loads(message.data)['envelope_id'])
                    self._changed.notify_all()
        return socket

    async def send(self, envelope_id: str, payload: dict[str, Any]) -> None:
        """Send what a person did through the newest connection."""
        envelope = {'type': 'interactive', 'envelope_id': envelope_id, 'accepts_response_payload': True}
        await self._sockets[-1].send_json({**envelope, 'payload': payload})

    async def disconnect(self) -> None:
        """Ask the bot to connect anew, as Slack does every few hours."""
        await self._sockets[-1].send_json({'type': 'disconnect', 'reason': 'refresh_requested'})


def refused_blocks(blocks: list[dict[str, Any]], most: int) -> str | None:
    """The error of Slack for blocks that break its limits; `None` for others."""
    if not 1 <= len(blocks) <= most:
        return 'invalid_blocks'
    for block in blocks:
        texts = [block.get('text'), *(each for each in block.get('elements', []) if 'text' in each)]
        if any(not 1 <= utf16(text['text']) <= 3000 for text in texts if text and isinstance(text['text'], str)):
            return 'invalid_blocks'
        for each in block.get('elements', []):
            if each['type'] == 'button' and (len(each['text']['text']) > 75 or len(each['value']) > 2000):
                return 'invalid_blocks'
            if 'confirm' in each and utf16(each['confirm']['text']['text']) > 300:
                return 'invalid_blocks'
    return None


def utf16(text: str) -> int:
    return len(text.encode('utf-16-le')) // 2


def texts_of(blocks: list[dict[str, Any]]) -> list[str]:
    """All texts in Slack's markup, wherever in the blocks they are."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if value.get('type') == 'mrkdwn':
                assert value['verbatim'] is True, 'Slack would make links of what looks like one'
                found.append(value['text'])
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(list(blocks))
    return found


def shown(blocks: list[dict[str, Any]]) -> str:
    """What people read."""
    text = '\n'.join(texts_of(blocks))
    return text.replace('&lt;', '<').replace('&gt;', '>').replace('&amp;', '&')


def active(text: str) -> list[str]:
    """Mentions, links and dates in a text: all that Slack's markup makes of angle brackets."""
    return re.findall('[<>]', text)


def buttons_of(message: dict[str, Any]) -> dict[str, str]:
    """The values of the buttons of a message or a view, by name."""
    actions = [each for block in message['blocks'] if block['type'] == 'actions' for each in block['elements']]
    return {each['action_id']: each['value'] for each in actions}


def press_of(name: str, value: str, user: str = 'U0ADA', **more: Any) -> dict[str, Any]:
    """What Slack sends when somebody presses a button."""
    return {
        'type': 'block_actions',
        'user': {'id': user, 'username': user.lower(), 'team_id': 'T0'},
        'team': {'id': 'T0'},
        'api_app_id': 'A0',
        # Never the same twice, so that two presses are no replay.
        'trigger_id': f'trigger.{next(TRIGGERS)}',
        'container': {'type': 'message', 'message_ts': '1.000001', 'channel_id': CHANNEL},
        'actions': [{'type': 'button', 'action_id': name, 'block_id': 'b', 'value': value}],
        **more,
    }


def form_of(view: dict[str, Any], note: str | None, user: str = 'U0ADA') -> dict[str, Any]:
    """What Slack sends when somebody submits the form for a note."""
    state = {'values': {'note': {'text': {'type': 'plain_text_input', 'value': note}}}}
    return {
        'type': 'view_submission',
        'user': {'id': user, 'name': user.lower(), 'team_id': 'T0'},
        'team': {'id': 'T0'},
        'view': {'id': 'V1', 'type': 'modal', 'state': state, **view},
    }


def signed(payload: dict[str, Any], *, secret: str = SECRET, age_s: float = 0) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a request of Slack's."""
    body = urlencode({'payload': json.dumps(payload)})
    timestamp = f'{time.time() - age_s:.0f}'
    signature = hmac.new(secret.encode(), f'v0:{timestamp}:{body}'.encode(), hashlib.sha256).hexdigest()
    return body.encode(), {
        'Content-Type': 'application/x-www-form-urlencoded',
        'X-Slack-Request-Timestamp': timestamp,
        'X-Slack-Signature': f'v0={signature}',
    }


async def _are_closed(server: web.Server) -> None:
    """Wait until clients have read their answers and left: what the end of a loop meets open stays open.

    A connection that was on its way when the server was closed is one of them.
    """
    async with asyncio.timeout(20):
        await asyncio.sleep(0.01)
        while server.connections:
            await asyncio.sleep(0.01)
