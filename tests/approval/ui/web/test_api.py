"""The API does in JSON what the pages do."""

from datetime import UTC, datetime, timedelta

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from tool_approval.inbox import ApproverRule
from tool_approval.ui.web import inbox_app

from tests.approval.parts import request_for
from tool_approval import ApprovalPresentation, ApprovalRequest, LineageEntry, RememberOption

from .parts import ADA, HOST, error_of


def test_session_names_the_visitor(desk):
    session = desk.client.get('/api/v1/session').json()

    assert (session['id'], session['name'], len(session['csrf_token'])) == ('ada', 'Ada', 64)


def test_a_request_has_all_that_the_page_shows(desk):
    ends = datetime.now(UTC) + timedelta(hours=1)
    level = LineageEntry(agent_name='planner', run_id='r0', tool_name='delegate', tool_call_id='c0')
    entry = desk.post(
        request_for(
            'a\u200b',
            run_id='r1',
            lineage=(level,),
            metadata={'caller': 'bot', 'batch_id': 'b'},
            remember_options=(RememberOption(kind='folder', label='every file', payload={}),),
        ),
        expires_at=ends,
    )

    view = desk.client.get(f'/api/v1/requests/{entry.id}').json()

    assert view['lineage'] == [level.model_dump()]
    assert (view['agent'], view['run_id'], view['group']) == ('bot', 'r1', 'batch r1 b')
    assert view['facts'] == [{'label': 'agent', 'text': 'bot, called by planner through delegate'}]
    assert view['args'] == {'path': 'a\u200b'}
    [line] = view['lines']
    assert (line['kind'], line['text'], line['number']) == ('value', 'path: "a<U+200B>"', None)
    assert [span['role'] for span in line['spans']] == ['key', 'escape']
    assert view['choices'] == [
        {'option': 'exact', 'label': 'exactly this call'},
        {'option': 'folder', 'label': 'every file'},
    ]
    assert (view['state'], view['digest'], view['is_whole'], view['remember']) == (
        'pending', entry.digest, True, ['session'],
    )  # fmt: skip
    assert (view['can_answer'], view['why_not'], view['answer'], view['outcome']) == (True, None, None, '')
    assert len(view['warnings']) == 1
    assert datetime.fromisoformat(view['expires_at']) == ends


def test_arguments_hidden_by_the_tool_are_not_in_the_response(desk):
    entry = desk.post(ApprovalRequest(tool_name='login', args={'user': 'a', 'key': 's3cret'}, payload={'user': 'a'}))

    desk.decide(entry, override_args={'user': 'b'})
    text = desk.client.get(f'/api/v1/requests/{entry.id}').text

    assert 's3cret' not in text
    assert '"hidden_args":["key"]' in text
    assert '"override_args":{"user":"b"}' in text
    assert desk.now(entry).answer.decision.override_args == {'user': 'b', 'key': 's3cret'}


def test_long_request_is_returned_whole_on_demand(desk):
    shown = ApprovalPresentation(type='text', content='\n'.join(map(str, range(900))))
    entry = desk.post(request_for(presentation=shown))

    cut = desk.client.get(f'/api/v1/requests/{entry.id}').json()
    whole = desk.client.get(f'/api/v1/requests/{entry.id}?whole=1').json()

    assert (cut['is_whole'], whole['is_whole']) == (False, False)
    assert len(cut['lines']) < 200
    assert len(whole['lines']) > 900
    assert (cut['remember'], cut['denial_covers']) == ([], None)
    assert 'deny_session' not in cut['answers']


def test_open_requests_are_listed_filtered_and_counted(desk):
    entries = [desk.post(request_for(str(number), run_id=f'r{number % 2}')) for number in range(4)]

    everything = desk.client.get('/api/v1/requests').json()
    some = desk.client.get('/api/v1/requests?run=r1&limit=1').json()

    assert [view['id'] for view in everything['requests']] == [entry.id for entry in entries]
    assert ([view['id'] for view in some['requests']], some['more']) == ([entries[1].id], 1)


@pytest.mark.parametrize('limit', ['0', '201', '-1', 'x', '', '²', '1e2', '0001'])
@pytest.mark.parametrize('path', ['requests', 'history'])
def test_invalid_limit_is_refused(desk, limit, path):
    assert error_of(desk.client.get(f'/api/v1/{path}?limit={limit}')) == (400, 'malformed')


def test_a_decision_answers_once(desk):
    entry = desk.post()

    first = desk.decide(entry, approved=False, note='Not now.')
    second = desk.decide(entry)

    assert first.json()['answer'] == {
        'approved': False,
        'decided_by': ['ada'],
        'by': 'ada',
        'by_name': 'Ada',
        'note': 'Not now.',
        'override_args': None,
        'remember': 'none',
        'remember_option': 'exact',
        'response': None,
        'at': first.json()['settled_at'],
    }
    assert first.json()['can_answer'] is False
    assert error_of(second) == (409, 'already_settled')
    assert "denied by 'ada'" in second.json()['error']['message']


def test_a_denial_is_remembered_for_the_session(desk):
    entry = desk.post()

    view = desk.client.get(f'/api/v1/requests/{entry.id}').json()
    answer = desk.decide(entry, approved=False, remember='session', note='Never.').json()['answer']

    assert 'deny_session' in view['answers']
    assert view['denial_covers'] == 'exactly this call'
    assert (answer['approved'], answer['remember'], answer['remember_option']) == (False, 'session', 'exact')
    assert desk.now(entry).outcome == 'Denied for this session by ada'


def test_unlisted_approver_cannot_decide(desk):
    entry = desk.post(approvers=(ApproverRule(users=frozenset({'bob'})),))

    view = desk.client.get(f'/api/v1/requests/{entry.id}').json()
    refused = desk.decide(entry)

    assert (view['can_answer'], view['why_not']) == (False, 'only listed approvers may answer')
    assert error_of(refused) == (403, 'not_an_approver')
    assert desk.now(entry).state == 'pending'


@pytest.mark.parametrize(
    'body',
    [
        {'remember': 'always'},
        {'remember': 'session', 'remember_option': 'folder'},
        {'remember': 'always', 'approved': False},
        {'remember': 'session', 'approved': False, 'remember_option': 'folder'},
        {'remember': 'session', 'approved': False, 'response': 'x'},
        {'remember': 'session', 'override_args': {'path': 'b'}},
        {'approved': False, 'override_args': {'path': 'b'}},
    ],
)
def test_answer_that_was_not_offered_is_refused(desk, body):
    entry = desk.post()

    assert error_of(desk.decide(entry, **body)) == (422, 'invalid_answer')
    assert desk.now(entry).state == 'pending'


def test_history_is_given_back_to_a_moment(desk):
    entries = [desk.post(request_for(str(number))) for number in range(3)]
    for entry in entries:
        desk.settle(entry)
    moment = desk.now(entries[0]).settled_at

    everything = desk.client.get('/api/v1/history').json()
    older = desk.client.get(
        '/api/v1/history', params={'before': (moment + timedelta(milliseconds=1)).isoformat()}
    ).json()

    assert {view['id'] for view in everything['requests']} == {entry.id for entry in entries}
    assert entries[0].id in [view['id'] for view in older['requests']]
    newest = everything['requests'][0]['id']
    assert desk.client.get(f'/api/v1/history?after={newest}').json()['requests'] == everything['requests'][1:]
    assert desk.client.get('/api/v1/history?tool=none').json() == {'requests': [], 'more': None, 'damaged': None}


def test_errors_are_json_too(desk):
    assert error_of(desk.client.get('/api/v1/requests/x')) == (404, 'unknown_request')
    assert error_of(desk.client.get('/api/v1/nowhere')) == (404, 'not_found')
    assert error_of(desk.client.put('/api/v1/session')) == (405, 'method_not_allowed')


def test_the_document_names_every_address_and_nothing_else(desk):
    document = desk.client.get('/api/v1/openapi.json').json()

    for path, operations in document['paths'].items():
        for method, operation in operations.items():
            asked = desk.client.request(method, f'/api/v1{path.replace("{id}", "x")}')
            assert str(asked.status_code) in operation['responses'], (path, asked.text)
            assert asked.json().get('error', {}).get('code') not in ('not_found', 'method_not_allowed')
    assert set(document['paths']) == {
        '/session', '/requests', '/requests/{id}', '/requests/{id}/decision', '/history',
        '/runs', '/run', '/run/cancel', '/run/settle',
    }  # fmt: skip
    assert document['servers'] == [{'url': '/api/v1'}]
    assert set(references(document)) <= {f'#/components/schemas/{name}' for name in document['components']['schemas']}


def test_the_document_says_what_each_field_means(desk):
    schemas = desk.client.get('/api/v1/openapi.json').json()['components']['schemas']

    ours = {name: schema['properties'] for name, schema in schemas.items() if name != 'LineageEntry'}

    assert [
        f'{name}.{field}'
        for name, fields in ours.items()
        for field, schema in fields.items()
        if not schema.get('description')
    ] == []
    assert ours['DecisionBody']['digest']['description'] == 'Digest of the request that was shown to the approver.'


def references(value):
    if isinstance(value, dict):
        yield from ([value['$ref']] if '$ref' in value else [])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def test_app_can_be_mounted_under_any_path(inbox, desk):
    async def authenticate(request):
        return ADA

    outer = Starlette(
        routes=[Mount('/api/of/{tenant}', app=inbox_app(inbox, authenticate=authenticate, hosts=[HOST]))],
        exception_handlers={404: lambda request, error: None},
    )
    client = TestClient(outer, base_url=f'http://{HOST}', root_path='/outside')
    entry = desk.post()
    below = '/outside/api/of/a"b'

    page = client.get(f'{below}/')
    document = client.get(f'{below}/api/v1/openapi.json').json()
    lost = client.get(f'{below}/nowhere')

    assert page.status_code == 200
    assert f'action="/outside/api/of/a&quot;b/requests/{entry.id}/answer"' in page.text
    assert document['servers'] == [{'url': f'{below}/api/v1'}]
    assert (lost.status_code, 'Not found' in lost.text) == (404, True)
