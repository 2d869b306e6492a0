"""Attacks on the page: visitors who may not answer, and answers in a wrong way."""

import logging

import pytest
from starlette.testclient import TestClient
from tool_approval.inbox import Approver, Inbox, InboxUnavailable
from tool_approval.ui.web import Limits, LocalLogin, inbox_app
from tool_approval.ui.web.guard import HEADERS

from tests.approval.parts import logged

from .parts import ADA, FORM, HOST, Desk, client_of, error_of

pytestmark = pytest.mark.anyio


def local(inbox, **settings):
    """A page with sessions, a client without one, and a ticket."""
    login = LocalLogin()
    client = client_of(inbox, login, **settings)
    client.follow_redirects = False
    return Desk(inbox, client), login


PLACES = ('/', '/history', '/requests/x', '/requests/x/edit', '/events', '/runs', '/run?run=x')
API = ('session', 'requests', 'requests/x', 'history', 'openapi.json', 'runs', 'run?run=x')


@pytest.mark.parametrize('path', [*PLACES, *(f'/api/v1/{name}' for name in API)])
def test_nothing_is_shown_without_a_login(desk, path):
    entry = desk.post()

    response = desk.client.get(path.replace('/x', f'/{entry.id}'), headers={'x-user': 'eve'})

    assert response.status_code == 401
    assert 'delete' not in response.text


@pytest.mark.parametrize(
    'path',
    [
        '/requests/x/answer',
        '/answers',
        '/requests/x/edit',
        '/api/v1/requests/x/decision',
        '/run/cancel',
        '/run/settle',
        '/api/v1/run/cancel',
        '/api/v1/run/settle',
    ],
)
def test_nothing_can_be_changed_without_a_login(desk, path):
    entry = desk.post()
    fields = {'csrf': desk.token(), 'answer': 'approve', 'digest': entry.digest}
    headers = {'x-user': 'eve', 'x-csrf-token': desk.token()}

    response = desk.send(path.replace('/x', f'/{entry.id}'), fields, **headers)

    assert response.status_code == 401
    assert desk.now(entry).state == 'pending'


@pytest.mark.parametrize('answer', [True, 'ada', {'id': 'ada'}, object()])
def test_login_without_an_approver_is_refused(inbox, answer):
    assert client_of(inbox, lambda request: answer).get('/').status_code == 401


@pytest.mark.parametrize(
    'host', ['evil.test', 'evil.test:80', f'{HOST}.evil.test', f'{HOST}@evil.test', '', '[::1', '*']
)
@pytest.mark.parametrize('path', ['/', '/static/inbox.js', '/api/v1/session', '/?token=x'])
def test_another_host_is_refused(desk, host, path):
    assert desk.client.get(path, headers={'host': host}).status_code == 421


def test_two_hosts_are_refused(desk):
    headers = [('host', HOST), ('host', 'evil.test'), ('x-user', 'ada')]

    assert desk.client.get('/', headers=headers).status_code == 421


def test_a_host_with_a_port_has_to_have_that_port(inbox):
    app = inbox_app(inbox, authenticate=lambda request: ADA, hosts=['127.0.0.1:8765', '[::1]:8765', 'localhost'])
    client = TestClient(app)

    found = {
        host: client.get('/', headers={'host': host}).status_code
        for host in ('127.0.0.1:8765', '127.0.0.1:3000', '127.0.0.1', '[::1]:8765', 'LOCALHOST', 'localhost:1')
    }

    assert found == {
        '127.0.0.1:8765': 200,
        '127.0.0.1:3000': 421,
        '127.0.0.1': 421,
        '[::1]:8765': 200,
        'LOCALHOST': 200,
        'localhost:1': 200,
    }


@pytest.mark.parametrize('hosts', [[], 'approvals.test', ['*'], ['http://approvals.test'], ['a b']])
def test_a_list_of_hosts_that_would_not_protect_is_refused(inbox, hosts):
    with pytest.raises(ValueError, match='host'):
        inbox_app(inbox, authenticate=lambda request: ADA, hosts=hosts)


@pytest.mark.parametrize(
    'headers',
    [
        {'origin': 'http://evil.test'},
        {'origin': f'http://{HOST}:81'},
        {'origin': 'null'},
        {'origin': 'null', 'sec-fetch-site': 'cross-site'},
        {'origin': f'ftp://{HOST}'},
        {'origin': 'http://['},
        {'sec-fetch-site': 'cross-site'},
        {'sec-fetch-site': 'same-site'},
        {'sec-fetch-site': 'none'},
        {'origin': f'http://{HOST}', 'sec-fetch-site': 'cross-site'},
    ],
)
def test_another_site_cannot_answer(desk, headers):
    entry = desk.post()

    by_form = desk.form(f'/requests/{entry.id}/answer', {'answer': 'approve', 'digest': entry.digest}, **headers)
    desk.client.headers.update(headers)
    by_script = desk.decide(entry)

    assert by_form.status_code == 403
    assert error_of(by_script) == (403, 'wrong_origin')
    assert desk.now(entry).state == 'pending'


@pytest.mark.parametrize(
    'headers',
    [
        {'origin': f'http://{HOST}', 'sec-fetch-site': 'same-origin'},
        {'origin': f'https://{HOST}'},
        {'origin': 'null', 'sec-fetch-site': 'same-origin'},
        {},
    ],
)
def test_the_page_itself_and_programs_can_answer(desk, headers):
    entry = desk.post()

    response = desk.form(f'/requests/{entry.id}/answer', {'answer': 'approve', 'digest': entry.digest}, **headers)

    assert response.status_code == 303


@pytest.mark.parametrize('token', [None, '', 'x', 'é', 'bob'])
@pytest.mark.parametrize('path', ['/requests/x/answer', '/answers', '/requests/x/edit', '/logout'])
def test_a_form_without_the_token_of_its_visitor_is_refused(inbox, path, token):
    desk, login = local(inbox)
    desk.client.get(f'/?token={login.ticket(ADA)}')
    entry = desk.post()
    if token == 'bob':
        session = login.redeem(login.ticket(Approver(id='bob')))
        bob = TestClient(desk.client.app, base_url=f'http://{HOST}', cookies={'tool_approval': session})
        token = Desk(inbox, bob).token()
    fields = {'answer': 'approve', 'digest': entry.digest, 'item': f'{entry.id}.{entry.digest}', 'args': '{"a": 1}'}
    fields |= {} if token is None else {'csrf': token}

    response = desk.send(path.replace('/x', f'/{entry.id}'), fields)

    assert response.status_code == 403
    assert desk.now(entry).state == 'pending'
    assert desk.client.get('/').status_code == 200


def test_a_decision_without_the_token_is_refused(desk):
    entry = desk.post()

    response = desk.client.post(
        f'/api/v1/requests/{entry.id}/decision', json={'digest': entry.digest, 'approved': True}
    )

    assert error_of(response) == (403, 'wrong_csrf_token')
    assert desk.now(entry).state == 'pending'


def test_link_is_exchanged_for_a_cookie_hidden_from_scripts_and_other_sites(inbox):
    desk, login = local(inbox)

    response = desk.client.get(f'/?token={login.ticket(ADA)}')

    assert (response.status_code, response.headers['location']) == (303, '/')
    cookie = response.headers['set-cookie']
    assert 'HttpOnly; Path=/; SameSite=strict' in cookie
    assert 'Secure' not in cookie
    assert desk.client.get('/').status_code == 200


def test_cookie_is_secure_over_tls(inbox):
    desk, login = local(inbox)

    assert '; Secure' in desk.client.get(f'https://{HOST}/?token={login.ticket(ADA)}').headers['set-cookie']


def test_a_link_works_once(inbox):
    desk, login = local(inbox)
    ticket = login.ticket(ADA)
    desk.client.get(f'/?token={ticket}')
    thief = TestClient(desk.client.app, base_url=f'http://{HOST}')

    response = thief.get(f'/?token={ticket}')

    assert response.status_code == 401
    assert str(response.url) == f'http://{HOST}/'
    assert not thief.cookies


@pytest.mark.parametrize('token', ['', 'x', 'x' * 43, '%00', '%ff', '%C3%A9'])
def test_guessed_link_is_refused(inbox, token):
    desk, login = local(inbox)
    login.ticket(ADA)

    response = desk.client.get(f'/?token={token}')

    assert 'set-cookie' not in response.headers
    assert desk.client.get('/').status_code == 401


def test_head_request_does_not_use_up_a_link(inbox):
    desk, login = local(inbox)
    ticket = login.ticket(ADA)

    desk.client.head(f'/?token={ticket}')

    assert 'set-cookie' in desk.client.get(f'/?token={ticket}').headers


def test_stolen_session_is_refused_after_logging_out(inbox):
    desk, login = local(inbox)
    desk.client.get(f'/?token={login.ticket(ADA)}')
    thief = TestClient(desk.client.app, base_url=f'http://{HOST}', cookies=dict(desk.client.cookies))
    token = thief.get('/api/v1/session').json()['csrf_token']
    entry = desk.post()

    left = desk.form('/logout')
    shown = thief.get('/')
    fields = {'csrf': token, 'answer': 'approve', 'digest': entry.digest}
    answered = Desk(inbox, thief).send(f'/requests/{entry.id}/answer', fields)

    assert 'You are logged out.' in left.text
    assert 'Max-Age=0' in left.headers['set-cookie']
    assert (shown.status_code, answered.status_code) == (401, 401)
    assert desk.now(entry).state == 'pending'


def test_only_a_page_with_sessions_has_a_way_out(desk):
    assert desk.client.get('/?token=x').status_code == 200
    assert 'Log out' not in desk.client.get('/').text
    assert desk.form('/logout').status_code == 404


def test_an_answer_to_something_else_is_refused(desk):
    entry, other = desk.post(), desk.post()

    responses = [desk.decide(entry, digest=digest) for digest in (other.digest, '', 'x')]

    assert {error_of(response) for response in responses} == {(409, 'other_content')}
    assert desk.now(entry).state == 'pending'


@pytest.mark.parametrize(
    'path', ['/', '/nowhere', '/static/inbox.css', '/api/v1/requests', '/api/v1/nowhere', '/logout']
)
@pytest.mark.parametrize('user', ['ada', 'eve'])
def test_every_answer_has_the_headers(desk, path, user):
    headers = desk.client.get(path, headers={'x-user': user}).headers

    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "default-src 'none'" in headers['content-security-policy']
    assert 'unsafe' not in headers['content-security-policy']


@pytest.mark.parametrize('length', ['1025', '9' * 5000, '-1', 'x', '²'])
def test_body_declared_too_long_is_refused(inbox, length):
    client = client_of(inbox, limits=Limits(max_body_bytes=1024))

    response = client.post('/answers', headers={'content-length': length.encode(), 'content-type': FORM})

    assert response.status_code == 413


@pytest.mark.parametrize('path', ['/answers', '/requests/x/edit', '/api/v1/requests/x/decision'])
def test_body_without_a_length_is_cut_off(inbox, path):
    client = client_of(inbox, limits=Limits(max_body_bytes=1024))
    kind = 'application/json' if 'api' in path else FORM
    token = client.get('/api/v1/session').json()['csrf_token']
    body = (b'x' * 100 for _ in range(100))

    response = client.post(path, content=body, headers={'content-type': kind, 'x-csrf-token': token})

    assert response.status_code == 413


@pytest.mark.parametrize(
    ('body', 'kind'),
    [
        (b'answer=approve', 'text/plain'),
        (b'answer=approve', 'multipart/form-data; boundary=x'),
        (b'', ''),
        (b'answer', FORM),
        (b'\xff=1', FORM),
        (b'a=%ff', FORM),
        (b'&'.join([b'a=1'] * 501), FORM),
    ],
)
def test_body_that_is_not_a_form_is_refused(desk, body, kind):
    response = desk.client.post('/answers', content=body, headers={'content-type': kind})

    assert response.status_code in (400, 415)
    assert 'Traceback' not in response.text


DEEP = b'{"digest": "d", "approved": true, "override_args": ' + b'{"a":' * 5000 + b'1' + b'}' * 5000 + b'}'


@pytest.mark.parametrize(
    ('body', 'status'),
    [
        (b'', 422),
        (b'{', 400),
        (b'[]', 400),
        (b'\xff', 400),
        (b'null', 400),
        (DEEP, 400),
        (b'{"digest": "d", "approved": true, "approved": false}', 400),
        (b'{"digest": "d", "approved": NaN}', 400),
        (b'{"digest": "d", "approved": 1}', 422),
        (b'{"digest": "d", "approved": "true"}', 422),
        (b'{"digest": "d"}', 422),
        (b'{"digest": 1, "approved": true}', 422),
        (b'{"digest": "d", "approved": true, "decided_by": "policy"}', 422),
        (b'{"digest": "d", "approved": true, "remember": "forever"}', 422),
        (b'{"digest": "d", "approved": true, "override_args": []}', 422),
        (b'{"digest": "d", "approved": true, "note": ' + b'"' + b'x' * 10_001 + b'"}', 422),
    ],
)
def test_invalid_decision_is_refused_without_quoting_it(desk, body, status):
    entry = desk.post()
    headers = {'content-type': 'application/json', 'x-csrf-token': desk.token()}

    response = desk.client.post(f'/api/v1/requests/{entry.id}/decision', content=body, headers=headers)

    assert response.status_code == status
    assert set(response.json()['error']) == {'code', 'message'}
    assert not {'forever', 'policy', 'Traceback'} & set(response.text.replace("'", ' ').split())
    assert desk.now(entry).state == 'pending'


def test_a_client_that_asks_too_often_has_to_wait(inbox):
    now = 0.0
    client = client_of(inbox, limits=Limits(requests_per_s=1, burst=3), clock=lambda: now)

    statuses = [client.get('/static/inbox.css').status_code for _ in range(4)]
    refused = client.get('/api/v1/session')
    now = 1.0
    statuses += [client.get('/static/inbox.css').status_code for _ in range(2)]

    assert statuses == [200, 200, 200, 429, 200, 429]
    assert error_of(refused) == (429, 'too_many_requests')
    assert refused.headers['retry-after'] == '1'


@pytest.mark.parametrize('accept', ['text/html', 'application/json'])
def test_fault_is_reported_without_its_message(inbox, caplog, accept):
    def broken(request):
        raise RuntimeError('the password is hunter2')

    client = client_of(inbox, broken)

    with caplog.at_level(logging.ERROR, 'tool_approval'):
        response = client.get('/', headers={'accept': accept})

    assert response.status_code == 500
    assert 'n internal error occurred, and nothing was approved' in response.text
    assert 'hunter2' not in response.text + caplog.text
    assert 'The page failed with RuntimeError' in caplog.text


def test_unavailable_store_is_reported_and_approves_nothing(desk, monkeypatch):
    entry = desk.post()
    token = desk.token()

    def away(*_, **__):
        raise InboxUnavailable('/secret/place', 'it is away')

    monkeypatch.setattr(Inbox, 'decide', away)
    monkeypatch.setattr(Inbox, 'open', away)
    page = desk.client.get('/')
    decided = desk.decide(entry)

    assert token
    assert page.status_code == 503
    assert 'The inbox cannot be reached, and nothing was approved' in page.text
    assert error_of(decided) == (503, 'unavailable')
    assert 'secret' not in page.text + decided.text


def test_a_short_secret_is_refused(inbox):
    with pytest.raises(ValueError, match='at least 32 bytes'):
        inbox_app(inbox, authenticate=lambda request: ADA, hosts=[HOST], secret=b'x' * 31)


def test_processes_with_one_secret_take_each_others_forms(inbox):
    one, other = (Desk(inbox, client_of(inbox, secret=b'x' * 32)) for _ in range(2))

    assert one.token() == other.token()


def scope_of(path, headers=()):
    sent = [(b'host', HOST.encode()), *headers]
    return {'type': 'http', 'method': 'GET', 'path': path, 'query_string': b'', 'headers': sent, 'root_path': ''}


async def test_client_that_disconnects_mid_body_is_not_logged(desk, caplog):
    sent = []

    async def receive():
        return {'type': 'http.disconnect'}

    async def send(message):
        sent.append(message)

    await desk.client.app({**scope_of('/answers', [(b'content-type', FORM.encode())]), 'method': 'POST'}, receive, send)

    assert sent == []
    assert logged(caplog) == []


async def test_a_web_socket_is_refused(desk):
    sent = []

    async def receive():
        return {'type': 'websocket.connect'}

    async def send(message):
        sent.append(message['type'])

    await desk.client.app({**scope_of('/'), 'type': 'websocket'}, receive, send)

    assert sent == ['websocket.close']
