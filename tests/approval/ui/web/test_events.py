"""The event stream keeps a page up to date; the tests call it as an ASGI server does."""

import asyncio
import contextlib
import json

import pytest
from tool_approval.ui.web import Limits, LocalLogin, inbox_app

from tests.approval.parts import request_for

from .parts import ADA, BOB, HOST, error_of

pytestmark = pytest.mark.anyio


class Listener:
    """One connection to the stream."""

    def __init__(self, app, cookie=''):
        self.parts = asyncio.Queue()
        self.status = None
        self._gone = asyncio.Event()
        scope = {
            'type': 'http',
            'method': 'GET',
            'path': '/events',
            'query_string': b'',
            'root_path': '',
            'headers': [(b'host', HOST.encode()), (b'cookie', cookie.encode())],
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self):
        await self._gone.wait()
        return {'type': 'http.disconnect'}

    async def _send(self, message):
        if message['type'] == 'http.response.start':
            self.status = message['status']
            self.headers = dict(message['headers'])
        elif message['body']:
            await self.parts.put(message['body'].decode())

    async def next(self):
        async with asyncio.timeout(20):
            return await self.parts.get()

    async def ids(self):
        """The ids of the next change, or `None`."""
        while True:
            event, _, data = (await self.next()).partition('\n')
            if event == 'event: changed':
                return json.loads(data.removeprefix('data: '))

    async def leave(self):
        self._gone.set()
        async with asyncio.timeout(20):
            await self.task


def make(inbox, **settings):
    return inbox_app(inbox, **{'authenticate': lambda request: ADA, 'hosts': [HOST], **settings})


async def test_event_stream_reports_new_and_settled_requests(inbox):
    listener = Listener(make(inbox))
    begun = await listener.next()
    first = await listener.ids()
    posted = await inbox.post(request_for())
    came = await listener.ids()
    await inbox.withdraw(posted)
    went = await listener.ids()
    await listener.leave()
    told = (came, went)

    assert listener.status == 200
    assert listener.headers[b'content-type'].startswith(b'text/event-stream')
    assert listener.headers[b'cache-control'] == b'no-store'
    assert (begun, first) == ('retry: 2000\n\n', None)
    assert all(ids is None or ids == [posted] for ids in told)


async def test_event_stream_sends_a_heartbeat(inbox):
    listener = Listener(make(inbox, beat_s=0.01))
    while await listener.next() != ': still here\n\n':
        pass
    await listener.leave()

    assert listener.status == 200


async def test_a_stream_ends_with_its_session(inbox):
    login = LocalLogin()
    session = login.redeem(login.ticket(ADA))
    listener = Listener(make(inbox, authenticate=login), f'tool_approval={session}')
    await listener.ids()
    login.end(FakeRequest(session))
    await inbox.post(request_for())
    async with asyncio.timeout(20):
        await listener.task

    assert listener.parts.empty()


class FakeRequest:
    def __init__(self, session):
        self.cookies = {'tool_approval': session}


async def test_event_stream_ends_when_another_user_logs_in(inbox):
    people = iter([ADA, ADA])
    listener = Listener(make(inbox, authenticate=lambda request: next(people, BOB)))
    await listener.ids()
    await inbox.post(request_for())
    async with asyncio.timeout(20):
        await listener.task

    assert listener.parts.empty()


async def test_a_login_that_fails_ends_the_stream(inbox, caplog):
    people = iter([ADA])

    listener = Listener(make(inbox, authenticate=lambda request: next(people)))
    async with asyncio.timeout(20):
        await listener.task

    assert listener.status == 200
    assert 'The page failed with' in caplog.text


async def test_number_of_streams_is_limited(inbox, desk):
    app = make(inbox, limits=Limits(max_streams=1))
    first = Listener(app)
    await first.ids()
    second = Listener(app)
    await second.task
    await first.leave()
    third = Listener(app)
    await third.ids()
    await third.leave()

    assert (second.status, third.status) == (503, 200)


async def test_a_server_that_ends_leaves_nothing_behind(inbox):
    tasks_before = asyncio.all_tasks()
    listener = Listener(make(inbox))
    await listener.ids()

    listener.task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listener.task

    assert asyncio.all_tasks() == tasks_before


def test_a_stream_needs_a_login(inbox, desk):
    response = desk.client.get('/events', headers={'x-user': 'eve', 'accept': 'application/json'})

    assert error_of(response) == (401, 'not_logged_in')
