"""The part of Discord that the bot uses: its REST API and its gateway on loopback, as its reference describes them.

What Discord would refuse is refused here too: wrong tokens, texts that are too long, second answers to a press.
"""

import asyncio
import json
import time
import zlib
from collections.abc import Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
import yarl
from aiohttp import WSMsgType, web
from discord.gateway import DiscordWebSocket
from discord.http import Route

TOKEN = 'a-bot-token.of-three.parts'
APP, GUILD, CHANNEL, OPS = 600, 700, 800, 900
ADA, BOB, EVE = 11, 12, 13
EPOCH_MS = 1_420_070_400_000
USERS = {
    each: {'id': str(each), 'username': name, 'discriminator': '0', 'avatar': None}
    for each, name in ((ADA, 'ada'), (BOB, 'bob'), (EVE, 'eve'))
}
BOT = {'id': str(APP), 'username': 'approvals', 'discriminator': '0', 'avatar': None, 'bot': True}


class DiscordServer:
    """Messages, forms and private messages as people in the channel would see them."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.whispers: list[dict[str, Any]] = []
        self.forms: list[dict[str, Any]] = []
        self.responses: dict[str, tuple[int, float]] = {}
        self.calls: list[str] = []
        self.faults: dict[str, list[Any]] = {}
        self.identified: list[dict[str, Any]] = []
        self.roles: dict[int, list[str]] = {}
        self.queries: list[dict[str, str]] = []
        self._pressed: dict[str, tuple[str, float]] = {}
        self._numbers = count(1)
        self._sockets: list[tuple[web.WebSocketResponse, Any]] = []
        self._changed = asyncio.Condition()

    def fail(self, call: str, *faults: Any) -> None:
        """Let the next calls fail: 'drop', 'done-drop', which drops what was done, or a status with a code."""
        self.faults.setdefault(call, []).extend(faults)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that was asked for makes it true."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(condition)

    @asynccontextmanager
    async def running(self, monkeypatch: pytest.MonkeyPatch):
        app = web.Application()
        routes: dict[tuple[str, str], tuple[str, Callable[..., Any]]] = {
            ('GET', '/users/@me'): ('me', lambda request, body: BOT),
            ('GET', '/oauth2/applications/@me'): ('application', lambda request, body: _APPLICATION),
            ('POST', '/channels/{channel}/messages'): ('send', self._send),
            ('PATCH', '/channels/{channel}/messages/{message}'): ('edit', self._edit),
            ('GET', '/channels/{channel}/messages'): ('history', self._history),
            ('POST', '/interactions/{id}/{token}/callback'): ('callback', self._callback),
            ('POST', '/webhooks/{id}/{token}'): ('followup', self._followup),
        }
        for (method, path), (name, done) in routes.items():
            app.router.add_route(method, f'/api/v10{path}', self._called(name, done))
        app.router.add_get('/gateway', self._gateway)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, '127.0.0.1', 0).start()
        host, port = runner.addresses[0][:2]
        self.link = f'ws://{host}:{port}/gateway'
        monkeypatch.setattr(Route, 'BASE', f'http://{host}:{port}/api/v10')
        monkeypatch.setattr(DiscordWebSocket, 'DEFAULT_GATEWAY', yarl.URL(self.link))
        try:
            yield self
        finally:
            for socket, _ in self._sockets:
                await socket.close()
            await runner.cleanup()

    def _called(self, name: str, done: Callable[..., Any]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json() if request.can_read_body else {}
            faults = self.faults.get(name) or [None]
            fault = faults.pop(0)
            try:
                # A press is answered with its own token.
                if name not in ('callback', 'followup') and request.headers.get('Authorization') != f'Bot {TOKEN}':
                    return _refused(401, 0)
                if isinstance(fault, tuple):
                    return _refused(*fault)
                if isinstance(fault, web.Response):
                    return fault
                answer = {} if fault == 'drop' else done(request, body)
                if isinstance(answer, web.Response):
                    return answer
                return _json(answer)
            finally:
                async with self._changed:
                    self.calls.append(name)
                    self._changed.notify_all()
                if fault in ('drop', 'done-drop'):
                    assert request.transport is not None
                    request.transport.close()

        return handle

    def new_id(self) -> str:
        return str((int(time.time() * 1000) - EPOCH_MS << 22) + next(self._numbers))

    def message(self, message_id: str, body: dict[str, Any], author: dict[str, Any] = BOT) -> dict[str, Any]:
        """Return a message as Discord describes it."""
        return {
            'id': message_id,
            'channel_id': str(CHANNEL),
            'author': author,
            'content': '',
            'timestamp': '2026-03-04T12:00:00.000000+00:00',
            'edited_timestamp': None,
            'tts': False,
            'mention_everyone': False,
            'mentions': [],
            'mention_roles': [],
            'attachments': [],
            'embeds': [],
            'components': [],
            'pinned': False,
            'type': 0,
            **{key: value for key, value in body.items() if value is not None},
        }

    def _send(self, request: web.Request, body: dict[str, Any]) -> Any:
        if request.match_info['channel'] != str(CHANNEL):
            return _refused(404, 10003)
        if problem := refused_message(body):
            return _refused(400, 50035, problem)
        message_id = self.new_id()
        self.messages[message_id] = self.message(message_id, body)
        return self.messages[message_id]

    def _edit(self, request: web.Request, body: dict[str, Any]) -> Any:
        message_id = request.match_info['message']
        if message_id not in self.messages:
            return _refused(404, 10008)
        if problem := refused_message(body):
            return _refused(400, 50035, problem)
        self.messages[message_id].update(body)
        return self.messages[message_id]

    def _history(self, request: web.Request, body: dict[str, Any]) -> Any:
        self.queries.append(dict(request.query))
        after = int(request.query.get('after', 0))
        if after < 0:
            return _refused(400, 50035)
        limit = min(int(request.query['limit']), 100)
        newer = sorted((each for each in self.messages.values() if int(each['id']) > after), key=lambda m: int(m['id']))
        return newer[:limit][::-1]

    def _callback(self, request: web.Request, body: dict[str, Any]) -> Any:
        press_id = request.match_info['id']
        token, at = self._pressed.get(press_id, ('', 0.0))
        if token != request.match_info['token'] or time.monotonic() - at > 3:
            return _refused(404, 10062)
        if press_id in self.responses:
            return _refused(400, 40060)
        if body['type'] == 9:
            if problem := refused_form(body['data']):
                return _refused(400, 50035, problem)
            self.forms.append(body['data'])
        self.responses[press_id] = (body['type'], time.monotonic() - at)
        return {'interaction': {'id': press_id, 'type': 3, 'response_message_loading': False}}

    def _followup(self, request: web.Request, body: dict[str, Any]) -> Any:
        tokens = {token: press_id for press_id, (token, _) in self._pressed.items()}
        if request.match_info['id'] != str(APP) or tokens.get(request.match_info['token']) not in self.responses:
            return _refused(404, 10015)
        if problem := refused_message(body):
            return _refused(400, 50035, problem)
        assert body['flags'] == 64, 'everybody would see it'
        self.whispers.append(body)
        return self.message(self.new_id(), {**body, 'webhook_id': str(APP)})

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        assert (request.query['v'], request.query['encoding']) == ('10', 'json')
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        deflating = _compressing(request.query['compress'])
        await _event(socket, deflating, 10, {'heartbeat_interval': 41_250})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            said = json.loads(message.data)
            if said['op'] == 1:
                await _event(socket, deflating, 11, None)
            elif said['op'] == 6:
                await _event(socket, deflating, 9, False)
            elif said['op'] == 2:
                if said['d']['token'] != TOKEN:
                    await socket.close(code=4004)
                    break
                await self._welcome(socket, deflating)
                async with self._changed:
                    self.identified.append(said['d'])
                    self._sockets.append((socket, deflating))
                    self._changed.notify_all()
        return socket

    async def _welcome(self, socket: web.WebSocketResponse, deflating: Any) -> None:
        ready = {
            'v': 10,
            'user': BOT,
            'guilds': [{'id': str(GUILD), 'unavailable': True}],
            'session_id': 'session',
            'resume_gateway_url': self.link,
            'application': {'id': str(APP), 'flags': 0},
        }
        await _event(socket, deflating, 0, ready, 'READY', 1)
        await _event(socket, deflating, 0, _GUILD, 'GUILD_CREATE', 2)

    async def press(self, custom_id: str, user: int = ADA, *, message: str = '', **more: Any) -> str:
        """Send what somebody pressed or submitted, as Discord would, through the newest connection."""
        press_id = self.new_id()
        token = f'secret-of-{press_id}'
        self._pressed[press_id] = (token, time.monotonic())
        shown = self.messages.get(message) or self.message('1', {})
        member = {'user': USERS[user], 'roles': self.roles.get(user, []), 'joined_at': '2026-01-01T00:00:00+00:00'}
        payload = {
            'id': press_id,
            'application_id': str(APP),
            'type': 3,
            'token': token,
            'version': 1,
            'guild_id': str(GUILD),
            'guild': {'id': str(GUILD), 'locale': 'en-US', 'features': []},
            'channel_id': str(CHANNEL),
            'channel': {'id': str(CHANNEL), 'type': 0, 'name': 'approvals', 'position': 0, 'permissions': '0'},
            'member': {**member, 'deaf': False, 'mute': False, 'flags': 0, 'permissions': '0'},
            'message': shown,
            'data': {'custom_id': custom_id, 'component_type': 2, 'id': 1},
            'attachment_size_limit': 10_485_760,
            'app_permissions': '0',
            'entitlements': [],
            'authorizing_integration_owners': {},
            'context': 0,
            'locale': 'en-US',
            **more,
        }
        await self.send(payload)
        return press_id

    async def submit(self, form: dict[str, Any], text: str, user: int = ADA, **more: Any) -> str:
        """Send what somebody wrote in a form."""
        field = {'type': 18, 'id': 1, 'component': {'type': 4, 'id': 2, 'custom_id': 'x', 'value': text}}
        data = {'custom_id': form['custom_id'], 'components': [field]}
        return await self.press(form['custom_id'], user, type=5, data=data, **more)

    async def send(self, payload: dict[str, Any]) -> None:
        socket, deflating = self._sockets[-1]
        await _event(socket, deflating, 0, payload, 'INTERACTION_CREATE', next(self._numbers) + 2)

    async def close(self, code: int) -> None:
        """Close the newest connection, as Discord would."""
        await self._sockets[-1][0].close(code=code)


async def _event(
    socket: Any, deflating: Any, op: int, data: Any, name: str | None = None, s: int | None = None
) -> None:
    text = json.dumps({'op': op, 'd': data, 's': s, 't': name})
    await socket.send_bytes(deflating(text.encode()))


def _compressing(kind: str) -> Callable[[bytes], bytes]:
    """Return what compresses the events of a connection, as one stream."""
    if kind == 'zlib-stream':
        stream, end = zlib.compressobj(), zlib.Z_SYNC_FLUSH
    else:
        import zstandard  # what the library asks for if it is installed

        assert kind == 'zstd-stream'
        stream, end = zstandard.ZstdCompressor().compressobj(), zstandard.COMPRESSOBJ_FLUSH_BLOCK
    return lambda data: stream.compress(data) + stream.flush(end)


def _json(value: Any, status: int = 200) -> web.Response:
    # Without a charset, as Discord sends it; the library reads no other JSON.
    return web.Response(body=json.dumps(value).encode(), status=status, headers={'Content-Type': 'application/json'})


def _refused(status: int, code: int, problem: str = 'refused <html>') -> web.Response:
    return _json({'code': code, 'message': problem}, status)


def refused_message(body: dict[str, Any]) -> str | None:
    """The error of Discord for a message that breaks its limits; `None` for others."""
    assert body['allowed_mentions'] == {'parse': []}, 'people would be notified'
    embeds = body.get('embeds') or []
    sizes = [utf16(each['description']) for each in embeds]
    if utf16(body.get('content') or '') > 2000 or len(embeds) > 10 or any(not 1 <= size <= 4096 for size in sizes):
        return 'too long'
    if sum(sizes) > 6000 or not (body.get('content') or embeds):
        return 'too long, or empty'
    rows = body.get('components') or []
    buttons = [each for row in rows for each in row['components']]
    if len(rows) > 5 or any(not 1 <= len(row['components']) <= 5 for row in rows):
        return 'too many components'
    ids = [each['custom_id'] for each in buttons]
    if len(set(ids)) < len(ids) or any(not 1 <= len(each) <= 100 for each in ids):
        return 'bad ids'
    return None if all(1 <= utf16(each['label']) <= 80 for each in buttons) else 'bad labels'


def refused_form(form: dict[str, Any]) -> str | None:
    [label] = form['components']
    field = label['component']
    if not (1 <= len(form['title']) <= 45 and 1 <= len(label['label']) <= 45 and len(form['custom_id']) <= 100):
        return 'too long'
    return None if label['type'] == 18 and field['type'] == 4 and field['max_length'] <= 4000 else 'bad field'


def utf16(text: str) -> int:
    return len(text.encode('utf-16-le')) // 2


def buttons_of(message: dict[str, Any]) -> dict[str, str]:
    """The ids of the buttons of a message, by kind of answer."""
    ids = [each['custom_id'] for row in message['components'] for each in row['components']]
    return {each.partition('.')[0]: each for each in ids}


def text_of(message: dict[str, Any]) -> str:
    """What a message consists of, in Discord's markup."""
    return '\n'.join([message['content'], *(each['description'] for each in message['embeds'])])


_APPLICATION = {
    'id': str(APP),
    'name': 'approvals',
    'description': '',
    'icon': None,
    'bot_public': False,
    'bot_require_code_grant': False,
    'verify_key': '0' * 64,
    'flags': 0,
    'owner': USERS[ADA],
    'summary': '',
}
_ROLE = {'color': 0, 'hoist': False, 'position': 0, 'permissions': '0', 'managed': False, 'mentionable': False}
_COLORS = {'primary_color': 0, 'secondary_color': None, 'tertiary_color': None}
_GUILD = {
    'id': str(GUILD),
    'name': 'Workshop',
    'owner_id': str(ADA),
    'roles': [
        {'id': str(each), 'name': name, 'flags': 0, 'colors': _COLORS, **_ROLE}
        for each, name in ((GUILD, '@everyone'), (OPS, 'ops'))
    ],
    'emojis': [],
    'features': [],
    'channels': [],
    'threads': [],
    'members': [],
    'member_count': 3,
    'unavailable': False,
    'verification_level': 0,
    'default_message_notifications': 0,
    'explicit_content_filter': 0,
    'mfa_level': 0,
    'nsfw_level': 0,
    'premium_tier': 0,
    'system_channel_flags': 0,
    'preferred_locale': 'en-US',
}
