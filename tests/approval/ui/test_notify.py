"""Notifications by the real library, to servers on this machine that speak the protocols of the services."""

import asyncio
import json
import logging
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip('apprise', reason='Apprise is not installed; CI installs it')

from aiosmtpd.smtp import SMTP
from tool_approval.core.request import Votes
from tool_approval.inbox import Answer, Approver, ApproverRule, Inbox, notify_channel
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.notify import AppriseChannel

from tests.approval.parts import logged, request_for
from tool_approval import ApprovalDecision, ApprovalRequest

ADA = Approver(id='ada')
LINK = 'https://approvals.example/x/link/S3cr-t_A/'


class Receiver:
    """An HTTP server that keeps what it gets, as JSON or text."""

    def __init__(self):
        self.got, self.status = [], 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['content-length'])).decode()
                outer.got.append((self.path, dict(self.headers), body))
                self.send_response(outer.status)
                self.send_header('content-length', '0')
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def entry(tmp_path):
    """An open request with arguments that must not be sent."""
    with Inbox(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')) as inbox:

        async def post():
            return await inbox.get(await inbox.post(request_for('SECRET-ARGUMENT')))

        yield asyncio.run(post())


def channel(url, approver=ADA):
    made = AppriseChannel(url, approver, lambda entry, approver: LINK)
    made._apprise[0].request_rate_per_sec = 0  # the library's pause between two notifications
    return made


def settled(entry, by=None, *, state='approved', **content):
    decision = ApprovalDecision(approved=state == 'approved', note='a note')
    answer = None if by is None else Answer(decision=decision, by=Approver(id=by), digest=entry.digest)
    return entry.model_copy(update={'state': state, 'answer': answer, **content})


@pytest.mark.parametrize(
    ('scheme', 'path'),
    [('ntfy', '/'), ('json', '/topic'), ('form', '/topic')],
)  # fmt: skip
def test_a_link_and_nothing_else_of_the_request_is_sent_over_http(receiver, entry, scheme, path):
    channel(f'{scheme}://127.0.0.1:{receiver.port}/topic').posted(entry)

    [(at, _, body)] = receiver.got
    assert at == path
    assert 'Approval needed' in body.replace('+', ' ')
    assert 'S3cr-t_A' in body
    assert 'SECRET-ARGUMENT' not in body
    assert entry.request.tool_name not in body
    if scheme == 'ntfy':
        assert json.loads(body)['message'] == f'An agent waits for an answer. The link is for you alone: {LINK}'


def test_a_link_is_sent_by_mail(entry):
    mails = []

    class Handler:
        async def handle_DATA(self, server, session, envelope):
            mails.append(envelope)
            return '250 OK'

    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: SMTP(Handler(), loop=loop), '127.0.0.1', 0)
        place = f'mailto://127.0.0.1:{server.sockets[0].getsockname()[1]}/?from=agent@example.org&to=ada@example.org'
        async with server:
            await asyncio.to_thread(channel(f'{place}&format=text').posted, entry)

    asyncio.run(main())

    [mail] = mails
    text = mail.content.decode()
    assert mail.rcpt_tos == ['ada@example.org']
    assert 'Subject: Approval needed' in text
    assert LINK in text.replace('=\r\n', '')
    assert 'SECRET-ARGUMENT' not in text


@pytest.mark.parametrize(
    ('by', 'state', 'told'),
    [('ada', 'approved', []), ('bob', 'approved', ['Approved by bob.']), ('bob', 'denied', ['Denied by bob.']),
     (None, 'expired', ['Expired: no approver answered in time.'])],
)  # fmt: skip
def test_who_was_asked_and_did_not_answer_is_told_who_decided(receiver, entry, by, state, told):
    to_ada = channel(f'ntfy://127.0.0.1:{receiver.port}/topic')
    to_ada.posted(entry)
    to_ada.posted(entry)  # others may answer now, too

    to_ada.settled(settled(entry, by, state=state))
    to_ada.settled(settled(entry, by, state=state))

    assert [json.loads(body)['message'] for _, _, body in receiver.got[1:]] == told


def test_who_may_not_answer_is_told_nothing(receiver, entry):
    to_ada = channel(f'ntfy://127.0.0.1:{receiver.port}/topic')
    of_bob = entry.content.model_copy(update={'approvers': (ApproverRule(users={'bob'}),)})
    votes = Votes(needed=2, agreed=('ada',))
    voted = entry.content.model_copy(update={'request': entry.request.model_copy(update={'votes': votes})})

    for content in (of_bob, voted):
        to_ada.posted(entry.model_copy(update={'content': content}))
        to_ada.settled(settled(entry, 'bob', content=content))

    assert receiver.got == []


@pytest.mark.parametrize('url', ['', 'nothing', 'nosuchservice://x', 'tgram://'])
def test_an_url_that_the_library_does_not_know_is_refused(url):
    with pytest.raises(ValueError, match='does not know'):
        channel(url)


@pytest.mark.parametrize(
    'url',
    ['tgram://123456789:abcdefg_hijklmnop/12315544/', 'discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?flags=4',
     'workflows://host.example/643a/Zq9', 'mailtos://ada:pw@example.org', 'ntfys://ntfy.example/topic'],
)  # fmt: skip
def test_the_services_of_the_guide_are_known(url):
    channel(url)


def test_a_link_is_not_logged(receiver, entry, caplog):
    caplog.set_level(logging.DEBUG)
    receiver.status = 500

    with pytest.raises(ConnectionError):
        channel(f'ntfy://127.0.0.1:{receiver.port}/topic').posted(entry)

    assert 'S3cr-t_A' not in caplog.text


def test_a_failing_or_slow_service_delays_no_answer_and_is_reported(tmp_path, receiver, caplog):
    receiver.status = 500
    reports = []

    class Slow:
        def posted(self, entry):
            time.sleep(30)

        settled = posted

    async def main():
        following = [
            asyncio.ensure_future(notify_channel(inbox, each, report=reports.append))
            for each in (Slow(), channel(f'ntfy://127.0.0.1:{receiver.port}/topic'))
        ]
        request_id = await inbox.post(ApprovalRequest(tool_name='t'))
        while not reports:
            await asyncio.sleep(0)
        entry = await inbox.get(request_id)
        decided = await inbox.decide(request_id, ApprovalDecision(approved=True), by=ADA, digest=entry.digest)
        for each in following:
            each.cancel()
        await asyncio.wait(following)
        return decided.state

    with Inbox(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')) as inbox:
        started = time.monotonic()
        assert asyncio.run(main()) == 'approved'

    assert time.monotonic() - started < 20
    assert reports == [False]
    assert any('AppriseChannel.posted failed with ConnectionError' in line for line in logged(caplog))
