"""Durable runs on the page and in the API: how they are shown, and who may cancel one or settle its calls."""

import json
import re
from dataclasses import replace

import pytest
from tool_approval.durable import DurableStore
from tool_approval.inbox import ApproverRule, Inbox
from tool_approval.ui.web.runs import RUNS_AT_ONCE

from tests.approval.durable.parts import CALL, SOON, asked, asked_again, below, change, executing, unknown, waiting

from .parts import HOSTILE, client_of, error_of, foreign_markup, text_of

OPS = (ApproverRule(groups=frozenset({'ops'})),)
NOT_ADA = {'forbid_self_approval': True, 'requester': 'ada'}


@pytest.fixture
def store(inbox):
    return DurableStore(inbox.store)


def page(desk, path, status=200):
    response = desk.client.get(path)
    assert response.status_code == status
    return response.text


def run(desk, run_id='order-17'):
    return desk.client.get('/api/v1/run', params={'run': run_id}).json()


def cancel(desk, run_id='order-17', **headers):
    sent = {'x-csrf-token': desk.token(), **headers}
    return desk.client.post('/api/v1/run/cancel', json={'run': run_id}, headers=sent)


def test_link_to_the_runs_appears_with_the_first_run(desk, store):
    assert '/runs' not in page(desk, '/')
    assert 'No runs found.' in text_of(page(desk, '/runs'))

    waiting(store, asked())

    for path in ('/', '/history', '/run?run=order-17'):
        assert '<a href="/runs">Runs</a>' in page(desk, path)
    assert '<a href="/runs" aria-current="page">Runs</a>' in page(desk, '/runs')


def test_runs_are_listed_by_status_in_pages(desk, store):
    for number in range(RUNS_AT_ONCE + 1):
        waiting(store, run_id=f'order {number:03}/x')
    store.cancel('order 007/x', at=SOON)

    first = page(desk, '/runs')
    [older] = re.findall(r'href="([^"]*)" rel="next"', first)
    second = page(desk, older)
    cancelled = page(desk, '/runs?status=cancelled')

    names = re.findall(r'>(order [^<]*)</a>', first + second)
    assert names == [f'order {number:03}/x' for number in reversed(range(RUNS_AT_ONCE + 1))]
    assert re.findall(r'href="(/run\?[^"]*)"', cancelled) == ['/run?run=order+007%2Fx']
    assert '<option value="cancelled" selected>' in cancelled
    assert 'order 007/x' in text_of(page(desk, '/run?run=order+007%2Fx'))
    assert page(desk, '/runs?after=%00') == page(desk, '/runs?after=none')


def test_invalid_status_is_refused(desk):
    page(desk, '/runs?status=gone', status=400)
    assert error_of(desk.client.get('/api/v1/runs?status=gone')) == (400, 'malformed')


def test_a_run_is_shown_with_what_it_waits_for(desk, store):
    waiting(store, first := asked(approvers=OPS), asked('send_mail', 'c2'))
    store.inbox_store.settle(first.id, 'withdrawn', at=SOON)
    executing(store)

    shown = text_of(page(desk, '/run?run=order-17'))

    assert 'agent shop' in shown
    assert 'The run has been waiting for 1 answer since 2026-03-04 12:00:01 UTC.' in shown
    assert 'pay , asked at 2026-03-04 12:00:00 UTC : Withdrawn' in shown
    assert 'send_mail , asked at 2026-03-04 12:00:00 UTC ; may be answered by everyone who has access' in shown
    assert 'pay, attempt 1: executing , started at 2026-03-04 12:00:01 UTC' in shown
    assert f'href="/requests/{first.id}"' in page(desk, '/run?run=order-17')


def test_a_run_and_the_runs_nested_in_it_have_links_to_each_other(desk, store):
    waiting(store)
    below(store, asked())

    above, shown = page(desk, '/run?run=order-17'), page(desk, '/run?run=lookup')

    assert 'The run has been waiting for 1 answer' in text_of(above)
    assert re.findall(r'href="/run\?run=([^"]*)"', above) == ['lookup']
    assert 'lookup of shop/clerk: waiting' in text_of(above)
    assert re.findall(r'href="/run\?run=([^"]*)"', shown) == ['order-17']
    assert 'Nested in order-17' in text_of(shown)
    assert [each['id'] for each in run(desk)['nested']] == ['lookup']


def test_a_run_that_has_ended_has_an_outcome_and_no_way_to_cancel_it(desk, store):
    waiting(store)
    store.resume('order-17', 1, at=SOON)
    store.finish('order-17', 1, 'done', f'"{"x" * 3000}\u202e"', at=SOON)

    shown = text_of(page(desk, '/run?run=order-17'))

    assert 'The run ended at 2026-03-04 12:00:01 UTC: done.' in shown
    assert f'Outcome: "{"x" * 1999}... ' in f'{shown} '
    assert 'cancel' not in shown.lower()
    assert run(desk)['outcome'] == f'"{"x" * 3000}\u202e"'


def test_a_short_outcome_is_shown_escaped(desk, store):
    waiting(store)
    store.resume('order-17', 1, at=SOON)
    store.finish('order-17', 1, 'failed', '"\u202e"', at=SOON)

    assert 'Outcome: "<U+202E>"' in text_of(page(desk, '/run?run=order-17'))


def test_an_approver_cancels_a_run(desk, store):
    waiting(store, first := asked())
    form = page(desk, '/run?run=order-17')

    ended = desk.form('/run/cancel', {'run': 'order-17'})

    assert '<form method="post" action="/run/cancel">' in form
    assert (ended.status_code, ended.headers['location']) == (303, '/run?run=order-17')
    assert 'UTC: cancelled.' in text_of(page(desk, ended.headers['location']))
    assert [row.state for row in store.inbox_store.get([first.id])] == ['withdrawn']
    assert desk.form('/run/cancel', {'run': 'order-17'}).status_code == 409
    assert error_of(cancel(desk)) == (409, 'not_possible_now')


def test_damaged_times_are_shown_as_such_and_hide_nothing(desk, store):
    waiting(store, hit := asked('pay'), asked('send_mail'))
    executing(store)
    change(store, "UPDATE runs SET created_at = 'soon', changed_at = 'soon'")
    change(store, "UPDATE executions SET changed_at = 'soon'")
    change(store, "UPDATE requests SET posted_at = 'soon' WHERE id = ?", hit.id)

    assert 'changed at a time that is damaged' in text_of(page(desk, '/runs'))
    shown = text_of(page(desk, '/run?run=order-17'))
    assert 'since a time that is damaged; 1 of its requests cannot be read' in shown
    open_ = text_of(page(desk, '/'))
    assert '1 open request is damaged, and cannot be shown or answered' in open_
    assert 'send_mail' in open_
    assert '2 open requests are damaged' not in open_
    listed = desk.client.get('/api/v1/requests').json()
    assert ([each['tool_name'] for each in listed['requests']], listed['damaged']) == (['send_mail'], 1)
    [run] = desk.client.get('/api/v1/runs').json()['runs']
    assert (run['created_at'], run['changed_at']) == (None, None)
    change(store, "UPDATE requests SET posted_at = 'soon'")
    assert '2 open requests are damaged' in text_of(page(desk, '/'))


def test_a_program_lists_reads_and_cancels_runs(desk, store):
    waiting(store, asked(), run_id='order-16')
    waiting(store, asked(approvers=OPS, expires_at=SOON))
    store.add_execution(CALL)

    listed = desk.client.get('/api/v1/runs?limit=1').json()['runs']
    rest = desk.client.get('/api/v1/runs?status=waiting&after=order-17').json()['runs']
    shown = run(desk)
    cancelled = cancel(desk, 'order-16').json()

    assert [[each['id'] for each in found] for found in (listed, rest)] == [['order-17'], ['order-16']]
    assert listed[0] == {
        'id': 'order-17',
        'agent': 'shop',
        'status': 'waiting',
        'created_at': '2026-03-04T12:00:00Z',
        'changed_at': '2026-03-04T12:00:01Z',
        'parent': None,
    }
    [request], [execution] = shown['requests'], shown['executions']
    assert (request['approvers'], request['tool_call_id'], request['expires_at']) == (
        'members of ops', 'c1', '2026-03-04T12:00:01Z',
    )  # fmt: skip
    assert (execution['key'], execution['state'], execution['started_at']) == (CALL.key, 'approved', None)
    assert (cancelled['status'], cancelled['requests'][0]['state']) == ('cancelled', 'withdrawn')


@pytest.mark.parametrize(
    ('requests', 'why'),
    [
        ([asked(approvers=OPS)], 'only listed approvers may answer'),
        ([asked(**NOT_ADA)], 'requesters may not answer their own requests'),
        ([asked(), asked(call='c2', approvers=OPS)], 'only listed approvers may answer'),
        ([], 'it is unknown who may change this run; to change it, use `tool-approval runs`'),
    ],
)
def test_approver_who_may_not_answer_may_not_cancel(desk, store, requests, why):
    waiting(store, *requests)

    shown = page(desk, '/run?run=order-17')

    assert f'ada may not cancel this run: {why}.' in text_of(shown)
    assert 'action="/run/cancel"' not in shown
    assert desk.form('/run/cancel', {'run': 'order-17'}).status_code == 403
    assert error_of(cancel(desk)) == (403, 'not_an_approver')
    assert store.get_run('order-17').status == 'waiting'


def test_cancelling_needs_the_token_of_the_visitor_and_the_own_site(desk, store):
    waiting(store, asked())
    refused = [
        desk.send('/run/cancel', {'run': 'order-17'}),
        desk.send('/run/cancel', {'run': 'order-17', 'csrf': 'x'}),
        desk.form('/run/cancel', {'run': 'order-17'}, origin='https://evil.test'),
        desk.form('/run/cancel', {'run': 'order-17'}, **{'sec-fetch-site': 'cross-site'}),
        cancel(desk, **{'x-csrf-token': 'x'}),
        cancel(desk, origin='https://evil.test'),
    ]

    assert [each.status_code for each in refused] == [403] * len(refused)
    assert desk.form('/run/cancel', [('run', 'order-17'), ('run', 'order-17')]).status_code == 400
    assert store.get_run('order-17').status == 'waiting'


def test_unknown_run_is_not_found(desk, store):
    for run_id in ('none', '', '\0', '../..'):
        assert error_of(desk.client.get('/api/v1/run', params={'run': run_id})) == (404, 'unknown_run')
        assert error_of(cancel(desk, run_id)) == (404, 'unknown_run')
        assert desk.client.get('/run', params={'run': run_id}).status_code == 404
        assert desk.form('/run/cancel', {'run': run_id}).status_code == 404
    assert error_of(cancel(desk, 'x' * 1001)) == (422, 'invalid_answer')


def test_no_field_of_a_run_becomes_markup(desk, store):
    rules = (ApproverRule(users=frozenset({HOSTILE}), groups=frozenset({HOSTILE})),)
    waiting(store, asked(HOSTILE, HOSTILE, approvers=rules), run_id=HOSTILE, agent=HOSTILE)
    store.add_execution(replace(CALL, run_id=HOSTILE, tool_name=HOSTILE, tool_call_id=HOSTILE))
    waiting(store, run_id=f'{HOSTILE}2', agent=HOSTILE)
    store.resume(f'{HOSTILE}2', 1, at=SOON)
    store.finish(f'{HOSTILE}2', 1, 'failed', HOSTILE, at=SOON)
    pages = [
        page(desk, '/runs'),
        *(desk.client.get('/run', params={'run': run_id}).text for run_id in (HOSTILE, f'{HOSTILE}2')),
    ]

    for each in pages:
        assert 'alert(1)' in each
        assert foreign_markup(each) == []


class Elsewhere:
    """A store that keeps requests but no runs, as a user may write one."""

    place = 'elsewhere'

    def __init__(self, inner):
        for name in (
            'open',
            'history',
            'get',
            'beats',
            'beat',
            'watch',
            'prune',
            'close',
            'add',
            'settle',
            'pending_of',
        ):
            setattr(self, name, getattr(inner, name))


def test_a_store_without_runs_has_none(inbox):
    with Inbox(Elsewhere(inbox.store)) as other:
        client = client_of(other)

        assert '/runs' not in client.get('/').text
        assert client.get('/api/v1/runs').json() == {'runs': []}
        assert client.get('/api/v1/run?run=order-17').status_code == 404


def test_unavailable_store_is_reported(desk, store):
    waiting(store)
    desk.inbox.store.close()

    for path in ('/runs', '/run?run=order-17', '/api/v1/runs', '/api/v1/run?run=order-17'):
        response = desk.client.get(path)
        assert response.status_code == 503
        assert 'inbox.sqlite' not in response.text


def settle(desk, **body):
    sent = {'run': 'order-17', 'key': 'key', 'attempt': 1, 'verdict': 'give_up', **body}
    return desk.client.post('/api/v1/run/settle', json=sent, headers={'x-csrf-token': desk.token()})


def settle_form(desk, **fields):
    return desk.form('/run/settle', {'run': 'order-17', 'key': 'key', 'attempt': '1', 'verdict': 'again', **fields})


@pytest.mark.parametrize(
    ('fields', 'rows'),
    [
        ({'verdict': 'result', 'result': ' {"paid": 250}\r\n'}, [('done', {'value': {'paid': 250}, 'by': 'ada'})]),
        ({'verdict': 'again', 'result': 'no JSON'}, [('unknown', None), ('approved', None)]),
        ({'verdict': 'give_up'}, [('unknown', None)]),
    ],
)
def test_an_approver_settles_an_unknown_call_at_the_page(desk, store, fields, rows):
    waiting(store, asked_again(store))
    unknown(store)
    shown = page(desk, '/run?run=order-17')

    sent = settle_form(desk, **fields)

    assert 'The worker died during this call. The call may have run.' in text_of(shown)
    assert (sent.status_code, sent.headers['location']) == (303, '/run?run=order-17')
    found = store.executions_of('order-17')
    assert [each.state for each in found] == [state for state, _ in rows]
    for each, (_, kept) in zip(found, rows, strict=True):
        assert kept is None or json.loads(each.result) == kept
    assert 'The call may have run' not in page(desk, '/run?run=order-17')
    assert 'The run has its answers' in page(desk, '/run?run=order-17')
    assert settle_form(desk, **fields).status_code == 409


def test_a_program_settles_an_unknown_call(desk, store):
    waiting(store, asked())
    unknown(store)

    told = settle(desk, verdict='result', result=['paid', None])

    assert (told.status_code, told.json()['executions'][0]['state']) == (200, 'done')
    assert json.loads(store.latest('key').result) == {'value': ['paid', None], 'by': 'ada'}
    assert error_of(settle(desk)) == (409, 'not_possible_now')


@pytest.mark.parametrize(
    ('content', 'why'),
    [
        ({'approvers': OPS}, 'only listed approvers may answer'),
        (NOT_ADA, 'requesters may not answer their own requests'),
        (None, 'it is unknown who may change this run; to change it, use `tool-approval runs`'),
    ],
)
def test_approver_who_may_not_answer_may_not_settle(desk, store, content, why):
    waiting(store, asked('other', 'c2') if content is None else asked(**content))
    unknown(store)

    shown = page(desk, '/run?run=order-17')

    assert f'ada may not settle this call: {why}.' in text_of(shown)
    assert 'action="/run/settle"' not in shown
    assert settle_form(desk).status_code == 403
    assert error_of(settle(desk)) == (403, 'not_an_approver')
    assert store.latest('key').state == 'unknown'
    assert store.latest('key').result is None


@pytest.mark.parametrize(
    ('fields', 'status'),
    [
        ({'verdict': 'result', 'result': 'paid'}, 422),
        ({'verdict': 'result', 'result': ''}, 422),
        ({'verdict': 'result', 'result': '1, "result": 2'}, 422),
        ({'verdict': 'result', 'result': '1, "other": 2'}, 422),
        ({'verdict': 'result', 'result': 'NaN'}, 422),
        ({'verdict': 'approve'}, 422),
        ({'verdict': ''}, 422),
        ({'attempt': '2'}, 409),
        ({'attempt': '²'}, 409),
        ({'attempt': ''}, 409),
        ({'key': 'other'}, 409),
        ({'run': 'other'}, 404),
        ({'csrf': 'x'}, 400),
    ],
)
def test_invalid_form_settles_no_call(desk, store, fields, status):
    waiting(store, asked())
    unknown(store)

    assert settle_form(desk, **fields).status_code == status
    assert store.latest('key').result is None


def test_settling_needs_the_token_of_the_visitor(desk, store):
    waiting(store, asked())
    unknown(store)
    fields = {'run': 'order-17', 'key': 'key', 'attempt': '1', 'verdict': 'again'}

    refused = [
        desk.send('/run/settle', fields),
        desk.client.post('/api/v1/run/settle', json={**fields, 'attempt': 1}),
        desk.form('/run/settle', fields, origin='https://evil.test'),
        desk.send('/run/settle', fields, **{'x-user': 'eve'}),
    ]

    assert [each.status_code for each in refused] == [403, 403, 403, 401]
    assert store.latest('key').attempt == 1
