import re
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip('fastapi', reason='FastAPI is not installed; CI installs it')

from starlette.testclient import TestClient
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore

FORM = 'application/x-www-form-urlencoded'


@pytest.fixture
def app(load, tmp_path):
    example = load('web_fastapi')
    with Inbox(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')) as inbox:
        yield example.make_app(inbox, ['shop.test'])


def visitor(app, name):
    client = TestClient(app, base_url='http://shop.test')
    client.get(f'/login/{name}')
    return client


def waiting(client):
    """The one request that is open, as soon as it is. Each round is a request, so this ends."""
    while not (found := client.get('/approvals/api/v1/requests').json()['requests']):
        pass
    return found[0]


@pytest.mark.parametrize(('said', 'status'), [(True, 200), (False, 403)])
def test_a_service_waits_for_an_answer_on_the_mounted_page(app, said, status):
    ada = visitor(app, 'ada')
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(TestClient(app, base_url='http://shop.test').post, '/refunds/7?amount=12.5')
        request = waiting(ada)
        page = ada.get('/approvals/').text
        token = ada.get('/approvals/api/v1/session').json()['csrf_token']
        answered = ada.post(
            f'/approvals/api/v1/requests/{request["id"]}/decision',
            json={'digest': request['digest'], 'approved': said},
            headers={'x-csrf-token': token},
        )
        response = asked.result(60)

    assert re.search(r'action="/approvals/requests/[^"]+/answer"', page)
    assert (answered.status_code, response.status_code) == (200, status)
    assert ('was paid back' in response.text) is said


def test_user_outside_the_staff_sees_the_request_and_cannot_answer(app):
    ada, bob = visitor(app, 'ada'), visitor(app, 'bob')
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(TestClient(app, base_url='http://shop.test').post, '/refunds/7?amount=1')
        request = waiting(bob)
        statuses = []
        for person in (bob, ada):
            token = person.get('/approvals/api/v1/session').json()['csrf_token']
            body = {'digest': request['digest'], 'approved': True}
            headers = {'x-csrf-token': token}
            path = f'/approvals/api/v1/requests/{request["id"]}/decision'
            statuses.append(person.post(path, json=body, headers=headers).status_code)
        asked.result(60)

    assert request['why_not'] == 'only listed approvers may answer'
    assert statuses == [403, 200]


def test_page_requires_the_login_of_the_application(app):
    client = TestClient(app, base_url='http://shop.test')

    assert client.get('/approvals/').status_code == 401
    assert client.get('/login/eve').status_code == 404
