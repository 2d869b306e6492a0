"""A signed webhook: requests go out, answers come in."""

import base64
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pytest
from tool_approval.inbox import ApproverRule
from tool_approval.ui.web import Webhook

from tests.approval.parts import request_for

from .parts import ADA, BOB, Desk, client_of, error_of

KEY = bytes(range(32))
SECRET = f'whsec_{base64.b64encode(KEY).decode()}'
NOON = 1_772_625_600
NUMBERS = count()


def signature(identifier, at, body, key=KEY):
    """What the specification asks for, written without the code under test."""
    signed = hmac.new(key, f'{identifier}.{at}.{body}'.encode(), hashlib.sha256).digest()
    return f'v1,{base64.b64encode(signed).decode()}'


class Bot:
    """The endpoint, and what it sends back."""

    def __init__(self, inbox):
        self.got, self.status = [], 204
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['content-length'])).decode()
                outer.got.append((self.headers, body))
                self.send_response(outer.status)
                self.send_header('location', '/elsewhere')
                self.send_header('content-length', '0')
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        url = f'http://127.0.0.1:{self.server.server_address[1]}/hook'
        self.hook = Webhook(inbox, url, SECRET, {'U1': ADA, 'U2': BOB}, now=lambda: NOON, clock=lambda: 0.0)
        self.client = client_of(inbox, webhook=self.hook)

    def send(self, body, *, at=NOON, identifier=None, key=KEY, headers=None):
        identifier = f'msg_{next(NUMBERS)}' if identifier is None else identifier
        text = body if isinstance(body, str) else json.dumps(body)
        signed = {
            'webhook-id': identifier,
            'webhook-timestamp': str(at),
            'webhook-signature': signature(identifier, at, text, key),
            'content-type': 'application/json',
        }
        given = [each for each in {**signed, **(headers or {})}.items() if each[1] is not None]
        return self.client.post('/api/webhook', content=text, headers=given)


@pytest.fixture
def bot(inbox):
    made = Bot(inbox)
    yield made
    made.server.shutdown()
    made.server.server_close()


def message(entry, **data):
    given = {'id': entry.id, 'by': 'U1', 'digest': entry.digest, 'approved': True, **data}
    return {'type': 'request.answered', 'data': given}


def test_a_request_is_sent_with_a_signature_and_its_outcome_follows(bot, desk):
    entry = desk.post(request_for('notes.txt'), approvers=(ApproverRule(users={'ada'}),))

    bot.hook.posted(entry)
    bot.hook.settled(desk.settle(entry, ADA))
    bot.hook.settled(desk.now(entry))

    (headers, body), (_, outcome) = bot.got
    sent = json.loads(body)
    identifier, at = headers['webhook-id'], headers['webhook-timestamp']
    assert headers['webhook-signature'] == signature(identifier, at, body)
    assert (at, headers['content-type']) == (str(NOON), 'application/json')
    assert (sent['type'], sent['timestamp']) == ('request.posted', '2026-03-04T12:00:00+00:00')
    assert sent['data']['may_answer'] == ['U1']
    request = sent['data']['request']
    assert (request['id'], request['digest'], request['args']) == (entry.id, entry.digest, {'path': 'notes.txt'})
    assert 'can_answer' not in request
    assert json.loads(outcome)['type'] == 'request.settled'
    assert json.loads(outcome)['data']['request']['outcome'] == 'Approved by ada'


def test_a_request_that_nobody_there_may_answer_is_not_sent(bot, desk):
    entry = desk.post(approvers=(ApproverRule(users={'zoe'}),))

    bot.hook.posted(entry)
    bot.hook.settled(entry)

    assert bot.got == []


@pytest.mark.parametrize('status', [302, 307, 404, 500])
def test_a_message_that_is_not_accepted_or_redirected_fails(bot, desk, status):
    bot.status = status

    with pytest.raises(OSError):
        bot.hook.posted(desk.post())

    assert len(bot.got) == 1


def test_no_proxy_reads_what_is_sent_to_this_machine(bot, desk, monkeypatch):
    for name in ('no_proxy', 'NO_PROXY'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('http_proxy', 'http://127.0.0.1:1')

    bot.hook.posted(desk.post())

    assert len(bot.got) == 1


def test_a_signed_answer_counts_as_the_listed_person(bot, desk):
    entry = desk.post()

    response = bot.send(message(entry, by='U2', approved=False, note='No.'))

    assert (response.status_code, response.json()) == (200, {'outcome': 'Denied by bob'})
    answered = desk.now(entry)
    assert (answered.state, answered.answer.by, answered.answer.decision.note) == ('denied', BOB, 'No.')


def test_one_of_several_signatures_is_enough(bot, desk):
    body = json.dumps(message(desk.post()))
    both = f'v1,AAAA v1a,xyz {signature("m", NOON, body)}'

    assert bot.send(body, identifier='m', headers={'webhook-signature': both}).status_code == 200


@pytest.mark.parametrize(
    ('changes', 'code'),
    [({'key': bytes(32)}, 'wrong_signature'),
     ({'headers': {'webhook-signature': ''}}, 'wrong_signature'),
     ({'headers': {'webhook-signature': 'v1,'}}, 'wrong_signature'),
     ({'headers': {'webhook-signature': None}}, 'wrong_signature'),
     ({'headers': {'webhook-timestamp': str(NOON + 1)}}, 'wrong_signature'),
     ({'headers': {'webhook-id': 'other'}}, 'wrong_signature'),
     ({'headers': {'webhook-id': None}}, 'not_signed'),
     ({'headers': {'webhook-timestamp': None}}, 'not_signed'),
     ({'identifier': 'a.b'}, 'not_signed'), ({'at': '1e9'}, 'not_signed'), ({'at': '1' * 13}, 'not_signed'),
     ({'at': -1}, 'not_signed'), ({'at': NOON - 301}, 'wrong_time'), ({'at': NOON + 301}, 'wrong_time')],
)  # fmt: skip
def test_an_answer_without_a_valid_signature_and_time_is_refused(bot, desk, changes, code):
    entry = desk.post()

    response = bot.send(message(entry), **changes)

    assert error_of(response) == (401, code)
    assert desk.now(entry).state == 'pending'


def test_a_signature_of_another_body_is_refused(bot, desk):
    entry = desk.post()
    denied = json.dumps(message(entry, approved=False))

    response = bot.send(message(entry), headers={'webhook-signature': signature('m', NOON, denied)}, identifier='m')

    assert error_of(response) == (401, 'wrong_signature')


def test_a_message_is_taken_once(bot, desk):
    entry, other = desk.post(), desk.post()
    refused = bot.send(message(entry, remember='always', remember_option='nothing'), identifier='m')
    again = bot.send(message(other), identifier='m')
    late = bot.send(message(entry), at=NOON - 300)

    assert refused.status_code == 422
    assert error_of(again) == (409, 'repeated')
    assert (late.status_code, desk.now(other).state) == (200, 'pending')


def test_the_first_answer_counts_and_the_second_is_told_who_gave_it(bot, desk):
    entry = desk.post()
    desk.settle(entry, BOB)

    response = bot.send(message(entry, approved=False))

    assert error_of(response) == (409, 'already_settled')
    assert 'bob' in response.json()['error']['message']


@pytest.mark.parametrize(
    ('data', 'expected'),
    [({'by': 'ada'}, (403, 'unknown_person')), ({'by': 'U3'}, (403, 'unknown_person')),
     ({'digest': '0' * 64}, (409, 'other_content')), ({'id': 'x' * 43}, (404, 'unknown_request')),
     ({'approved': 'true'}, (422, 'invalid_answer')), ({'approved': 1}, (422, 'invalid_answer')),
     ({'more': 1}, (422, 'invalid_answer'))],
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_refused(bot, desk, data, expected):
    entry = desk.post()

    response = bot.send(message(entry, **data))

    assert error_of(response) == expected
    assert desk.now(entry).state == 'pending'


def test_approvers_of_the_request_are_checked(bot, desk):
    entry = desk.post(approvers=(ApproverRule(users={'bob'}),))

    assert error_of(bot.send(message(entry))) == (403, 'not_an_approver')


def test_a_message_that_was_sent_to_the_endpoint_is_no_answer(bot, desk):
    entry = desk.post()
    bot.hook.posted(entry)
    [(headers, body)] = bot.got
    names = ('webhook-id', 'webhook-timestamp', 'webhook-signature', 'content-type')

    response = bot.client.post('/api/webhook', content=body, headers={name: headers[name] for name in names})

    assert error_of(response) == (422, 'invalid_answer')
    assert desk.now(entry).state == 'pending'


@pytest.mark.parametrize(
    'body', ['', '[]', '{', '{"type":"request.answered"}', '\ud800'.encode('utf-8', 'replace').decode()]
)
def test_a_malformed_message_is_refused(bot, body):
    assert bot.send(body).status_code in (400, 422)


def test_headers_that_occur_twice_are_refused(bot, desk):
    entry = desk.post()
    body = json.dumps(message(entry))
    pairs = [('webhook-id', 'm'), ('webhook-id', 'm'), ('webhook-timestamp', str(NOON))]
    pairs += [('webhook-signature', signature('m', NOON, body)), ('content-type', 'application/json')]

    assert error_of(bot.client.post('/api/webhook', content=body, headers=pairs)) == (401, 'not_signed')


@pytest.mark.parametrize(
    ('url', 'secret'),
    [('http://bot.example/hook', SECRET), ('http://127.0.0.1@bot.example/', SECRET), ('ftp://127.0.0.1/', SECRET),
     ('https://[', SECRET), ('https://bot.example/', 'short'), ('https://bot.example/', 'whsec_'),
     ('https://bot.example/', f'x{SECRET}'), ('https://bot.example/', 'whsec_*'),
     ('https://bot.example/', f'whsec_{base64.b64encode(bytes(23)).decode()}')],
)  # fmt: skip
def test_an_endpoint_that_others_can_read_or_forge_is_refused(inbox, url, secret):
    with pytest.raises(ValueError):
        Webhook(inbox, url, secret, {'U1': ADA})


def test_a_page_without_a_webhook_takes_no_answers(desk: Desk):
    assert desk.client.post('/api/webhook').status_code == 404
