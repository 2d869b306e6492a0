"""The pages work without a script: they show requests, and their forms answer them."""

import json
import re
import threading
from datetime import UTC, datetime, timedelta, timezone
from html import escape, unescape

import pytest
from tool_approval.core.request import RejectedEdit
from tool_approval.inbox import ApproverRule
from tool_approval.ui.web import cards, edit_form, page_routes, pages, view
from tool_approval.ui.web.page_routes import HISTORY_AT_ONCE
from tool_approval.ui.web.pages import AT_ONCE

from tests.approval.parts import request_for
from tool_approval import ApprovalPresentation, ApprovalRequest, LineageEntry, RememberOption

from .parts import ADA, HOSTILE, Desk, client_of, error_of, foreign_markup, text_of


def shown(desk, path='/', status=200):
    response = desk.client.get(path)
    assert response.status_code == status
    return text_of(response.text)


def test_empty_page_states_that_no_request_is_open(desk):
    assert 'No open requests.' in shown(desk)


def test_a_request_is_shown_as_the_terminal_shows_it(desk):
    shell = ApprovalPresentation(
        type='command', content='ls\ncat b', metadata={'cwd': '/srv', 'extra_access': ['writes to .git']}
    )
    told = {'caller': 'bot', 'worker': 'crawler', 'missing_capabilities': ['net']}
    desk.post(request_for('a', presentation=shell, reason='No rule matches.', run_id='r1', metadata=told))

    page = shown(desk)

    assert (
        'agent bot worker crawler why No rule matches. in /srv grants net, for calls of this tool until the run ends '
        'extra access writes to .git run r1 $ ls > cat b arguments: │ path: "a"' in page
    )


def test_lines_of_a_diff_say_by_words_too_what_they_are(desk):
    diff = ApprovalPresentation(type='diff', content='@@ -1,2 +1,2 @@\n a\n-b\n+c\n')
    desk.post(request_for(presentation=diff))

    page = desk.client.get('/').text

    assert '@@ -1,2 +1,2 @@ 1 │ a 2 − removed: b 2 + added: c' in text_of(page)
    assert 'class="row removed"' in page
    assert 'class="row added"' in page


def rows_of(page):
    return re.findall(r'<code class="text">(.*?)</code>', page)


def test_all_of_a_long_request_is_on_pages_of_bounded_size(desk):
    count = 4_500
    text = ApprovalPresentation(type='file_content', content=''.join(f'line {n}\n' for n in range(1, count + 1)))
    entry = desk.post(request_for(presentation=text))
    address = f'/requests/{entry.id}?whole=1'

    pages = [desk.client.get(f'{address}&page={number}').text for number in (1, 2, 3)]

    assert desk.client.get(address).text == pages[0]
    assert desk.client.get(f'{address}&page=9999').text == pages[2]
    assert [len(rows_of(page)) for page in pages] == [2_000, 2_000, 501]
    assert [row for page in pages for row in rows_of(page)][:-1] == [f'line {n}' for n in range(1, count + 1)]
    assert 'Page 1 of 3: lines 1 to 2,000 of 4,502. Next Last' in text_of(pages[0])
    assert 'Page 2 of 3: lines 2,001 to 4,000 of 4,502. First Previous Next Last' in text_of(pages[1])
    assert 'Page 3 of 3: lines 4,001 to 4,502 of 4,502. First Previous' in text_of(pages[2])
    assert f'href="{address.replace("&", "&amp;")}&amp;page=3" rel="next">Next</a>' in pages[1]


def test_a_page_of_long_lines_has_fewer_of_them(desk):
    lines = ['short', 'x' * 300_000, *['y' * 90_000] * 3, 'end']
    entry = desk.post(request_for(presentation=ApprovalPresentation(type='text', content='\n'.join(lines))))

    pages = [rows_of(desk.client.get(f'/requests/{entry.id}?whole=1&page={number}').text) for number in range(1, 5)]

    assert [[len(row) for row in page] for page in pages[:3]] == [[5], [300_000], [90_000, 90_000]]
    assert [len(row) for row in pages[3]][:2] == [90_000, 3]


@pytest.mark.parametrize('page', ['0', '-1', 'x', '\u0661', '1' * 30])
def test_a_page_that_cannot_be_is_refused(desk, page):
    entry = desk.post(request_for())

    response = desk.client.get(f'/requests/{entry.id}', params={'whole': '1', 'page': page})

    assert response.status_code == 400
    assert '`page` must be a number from 1 to 9999999' in text_of(response.text)


def test_whole_display_is_drawn_outside_of_the_event_loop(inbox, monkeypatch):
    on, drawn = [], []

    def login(request):
        on.append(threading.current_thread())
        return ADA

    for module in (cards, edit_form, pages, view):

        def recorded(subject, *, whole=False, draw=module.display):
            if whole:
                drawn.append(threading.current_thread())
            return draw(subject, whole=whole)

        monkeypatch.setattr(module, 'display', recorded)
    desk = Desk(inbox, client_of(inbox, login))
    entry = desk.post()

    answers = [
        desk.client.get(f'/requests/{entry.id}?whole=1'),
        desk.client.get(f'/api/v1/requests/{entry.id}?whole=1'),
        desk.form(f'/requests/{entry.id}/edit', {'args': '{"path": "b"}'}),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len(drawn) == 3
    assert not set(on) & set(drawn)


@pytest.mark.parametrize('path', ['/', '/one', '/one?whole=1', '/one/edit', '/history'])
def test_no_field_of_a_request_becomes_markup(desk, path):
    level = LineageEntry(agent_name=HOSTILE, run_id=HOSTILE, tool_name=HOSTILE, tool_call_id=HOSTILE)
    for kind in ('text', 'diff', 'file_content', 'command', 'structured'):
        facts = {'path': HOSTILE, 'cwd': HOSTILE, HOSTILE: HOSTILE}
        entry = desk.post(
            ApprovalRequest(
                tool_name=HOSTILE,
                args={HOSTILE: HOSTILE, 'b': [HOSTILE, {'c': HOSTILE}]},
                description=HOSTILE,
                presentation=ApprovalPresentation(type=kind, content=HOSTILE, language=HOSTILE, metadata=facts),
                group_id=HOSTILE,
                tool_call_id=HOSTILE,
                run_id=HOSTILE,
                session_id=HOSTILE,
                reason=HOSTILE,
                remember_options=(RememberOption(kind=HOSTILE, label=HOSTILE, payload={HOSTILE: HOSTILE}),),
                metadata={'caller': HOSTILE, 'toolset_id': HOSTILE, 'batch_id': HOSTILE},
                lineage=(level,),
            )
        )
        if path == '/history':
            desk.settle(
                entry, by=ADA.model_copy(update={'id': HOSTILE}), note=HOSTILE, override_args={HOSTILE: HOSTILE}
            )

    page = desk.client.get(path.replace('/one', f'/requests/{entry.id}')).text

    assert 'alert(1)' in page
    assert foreign_markup(page) == []


def test_characters_that_hide_or_turn_are_shown_as_what_they_are(desk):
    desk.post(request_for('a\u202etxt.exe\u200b', metadata={'caller': 'b\x1b[2Jot'}))

    page = shown(desk)

    assert not re.search('[\u202e\u200b\x1b]', page)
    assert 'Warning: ' in page


def test_long_request_is_cut_can_be_shown_whole_but_not_remembered(desk):
    content = '\n'.join(f'line {number}' for number in range(500))
    entry = desk.post(request_for(presentation=ApprovalPresentation(type='file_content', content=content)))

    page, whole = shown(desk), shown(desk, f'/requests/{entry.id}?whole=1')

    assert 'Some content is not shown. Show everything' in page
    assert 'line 250' not in page
    assert 'line 250' in whole
    assert 'remember' not in page + whole


def test_request_shows_its_time_expiry_and_position(desk):
    entry = desk.post(
        request_for(metadata={'position': 2, 'batch_size': 3}), expires_at=datetime.now(UTC) + timedelta(hours=1)
    )

    page = shown(desk)

    assert f'request 2 of 3 asked at {entry.posted_at:%Y-%m-%d %H:%M:%S} UTC expires at ' in page


def test_a_request_without_facts_or_arguments_is_shown_without_them(desk):
    desk.post(ApprovalRequest(tool_name='stop'))

    page = desk.client.get('/').text

    assert '<dl>' not in page
    assert 'Edit arguments' not in page
    assert '(no arguments)' in page


def test_approving_answers_and_goes_back_to_the_list(desk):
    entry = desk.post()

    answered = desk.answer(entry)

    assert (answered.status_code, answered.headers['location']) == (303, '/')
    settled = desk.now(entry)
    assert settled.state == 'approved'
    assert settled.answer.by == ADA
    assert 'No open requests' in shown(desk)


def test_a_denial_carries_its_note_to_the_history(desk):
    entry = desk.post()

    desk.answer(entry, 'deny', note='Not <b>now</b>.\r\nAsk Ann.')

    assert desk.now(entry).answer.decision.note == 'Not <b>now</b>.\nAsk Ann.'
    assert f'Denied by ada , {desk.now(entry).settled_at:%Y-%m-%d %H:%M:%S} UTC' in shown(desk, '/history')
    assert 'Note: Not <b>now</b>. Ask Ann.' in shown(desk, '/history')


def test_an_approval_for_the_session_covers_what_was_chosen(desk):
    option = RememberOption(kind='folder', label='every file in notes/', payload={'folder': 'notes'})
    request = request_for(remember_options=(option,))
    entry = desk.post(request)

    page = shown(desk)
    desk.answer(entry, 'session', remember_option='folder')

    assert (
        'Approve and remember This approval will cover exactly this call every file in notes/ Approve for this session'
        in page
    )
    decision = desk.now(entry).answer.decision
    assert (decision.remember, decision.remember_option) == ('session', 'folder')
    assert 'Approved for this session by ada' in shown(desk, '/history')


def test_a_denial_for_the_session_says_what_it_covers_and_takes_no_wider_choice(desk):
    option = RememberOption(kind='folder', label='every file in notes/', payload={'folder': 'notes'})
    entry = desk.post(request_for(remember_options=(option,)))

    page = shown(desk)
    desk.answer(entry, 'deny_session', remember_option='folder', note='Never.')

    covers = 'Until the session ends, this denial will cover exactly this call, without a question.'
    assert f'Deny and remember {covers} Deny for this session' in page
    decision = desk.now(entry).answer.decision
    assert (decision.approved, decision.remember, decision.remember_option) == (False, 'session', 'exact')
    assert decision.note == 'Never.'
    assert 'Denied for this session by ada' in shown(desk, '/history')


def test_always_is_offered_if_there_is_a_store(desk):
    entry = desk.post(request_for(metadata={'can_remember_always': True}))

    page = shown(desk)
    desk.answer(entry, 'always', remember_option='exact')

    assert 'This approval will cover exactly this call. Approve for this session Approve always' in page
    assert desk.now(entry).answer.decision.remember == 'always'


@pytest.mark.parametrize(
    'fields',
    [
        {'remember_options': (RememberOption(kind='x', label='y' * 301, payload={}),)},
        {'remember_options': tuple(RememberOption(kind=f'k{n}', label='y', payload={}) for n in range(9))},
        {'payload': {'path': 'x' * 400}},
    ],
)
def test_approval_whose_scope_is_not_shown_cannot_be_remembered(desk, fields):
    entry = desk.post(request_for('b', **fields))

    refused = desk.answer(entry, 'session', remember_option='exact')

    assert 'remember' not in shown(desk)
    assert refused.status_code == 422
    assert desk.now(entry).state == 'pending'


def test_payload_without_all_arguments_is_shown_with_its_scope(desk):
    desk.post(request_for('b', payload={'folder': 'notes'}))
    desk.post(request_for('b', payload={}))

    page = shown(desk)

    assert "This approval will cover every delete with folder: 'notes'." in page
    assert 'This approval will cover every delete with any arguments.' in page


def test_user_who_may_not_answer_sees_the_reason_and_no_buttons(desk):
    entry = desk.post(approvers=(ApproverRule(users=frozenset({'carol'})),))

    page = desk.client.get('/').text
    refused = desk.answer(entry)
    editing = desk.client.get(f'/requests/{entry.id}/edit')

    assert 'ada may not answer this request: only listed approvers may answer.' in page
    assert 'value="approve"' not in page
    assert (refused.status_code, editing.status_code) == (403, 403)
    assert desk.now(entry).state == 'pending'


def test_edited_arguments_are_shown_again_and_only_then_approved(desk):
    entry = desk.post(request_for('a'))

    form = desk.client.get(f'/requests/{entry.id}/edit').text
    preview = desk.form(f'/requests/{entry.id}/edit', {'args': '{"path": "b"}'})
    state_before = desk.now(entry).state
    again = desk.form(f'/requests/{entry.id}/edit?again=1', {'args': '{"path": "b"}'})
    desk.answer(entry, args='{"path": "b"}')

    assert '&quot;path&quot;: &quot;a&quot;' in form
    assert 'You have changed the call. Nothing is approved yet. │ path: "b"' in text_of(preview.text)
    assert '&quot;path&quot;: &quot;b&quot;' in again.text
    assert state_before == 'pending'
    assert desk.now(entry).answer.decision.override_args == {'path': 'b'}
    assert 'Approved with changed arguments by ada' in shown(desk, '/history')
    assert 'Changed arguments: │ path: "b"' in shown(desk, '/history')


@pytest.mark.parametrize('text', ['{', '[]', '{"a": NaN}', '{"a": 1, "a": 2}', '{"a": "\\ud800"}', '"x"'])
def test_invalid_edited_arguments_can_be_corrected(desk, text):
    entry = desk.post()

    response = desk.form(f'/requests/{entry.id}/edit', {'args': text})
    forced = desk.answer(entry, args=text)

    assert (response.status_code, forced.status_code) == (422, 422)
    assert 'The arguments are invalid: ' in text_of(response.text)
    assert desk.now(entry).state == 'pending'


def test_arguments_that_are_as_they_were_change_nothing(desk):
    entry = desk.post(request_for('a'))

    response = desk.form(f'/requests/{entry.id}/edit', {'args': '{"path":"a"}'})

    assert 'The arguments are unchanged.' in text_of(response.text)


def test_an_argument_that_is_not_shown_is_kept_and_cannot_be_changed(desk):
    entry = desk.post(ApprovalRequest(tool_name='login', args={'user': 'a', 'key': 's3cret'}, payload={'user': 'a'}))

    form = desk.client.get(f'/requests/{entry.id}/edit').text
    refused = desk.form(f'/requests/{entry.id}/edit', {'args': '{"key": "x"}'})
    forced = desk.answer(entry, args='{"key": "x"}')
    desk.answer(entry, args='{"user": "b"}')
    history = desk.client.get('/history').text

    assert 's3cret' not in form
    assert (refused.status_code, forced.status_code) == (422, 422)
    assert desk.now(entry).answer.decision.override_args == {'user': 'b', 'key': 's3cret'}
    assert 's3cret' not in history


def test_settled_request_cannot_be_edited(desk):
    entry = desk.post()
    desk.settle(entry)

    response = desk.client.get(f'/requests/{entry.id}/edit')

    assert response.status_code == 409
    assert 'The request is no longer open. Approved by bob.' in text_of(response.text)


def test_the_lineage_of_a_nested_request_is_shown(desk):
    level = LineageEntry(agent_name='planner', run_id='r0', tool_name='delegate', tool_call_id='c')
    entry = desk.post(request_for(lineage=(level,)))

    assert 'Calls that led to this request planner called delegate' in shown(desk, f'/requests/{entry.id}')


def test_requests_of_one_response_are_answered_together(desk):
    batch = [desk.post(request_for(name, run_id='r', metadata={'batch_id': 'b1'})) for name in 'xyz']
    desk.post(request_for('other'))

    page = shown(desk)
    desk.settle(batch[1], approved=False)
    answered = text_of(desk.answer_all(batch).text)

    assert 'The 3 requests above belong together. Note to the model if you deny Approve all 3 Deny all 3' in page
    assert [desk.now(entry).state for entry in batch] == ['approved', 'denied', 'approved']
    assert answered.count('Approved by ada') == 2
    assert "Not answered: the request is no longer open: denied by 'bob'" in answered


def test_requests_of_one_response_are_in_its_order(desk):
    for name, batch, position in (('b', 'b1', 2), ('d', None, 1), ('c', 'b1', 3), ('a', 'b1', 1), ('e', 'b2', None)):
        desk.post(request_for(name, metadata={'batch_id': batch, 'position': position}))

    assert re.findall(r'path: "(\w)"', shown(desk)) == list('abcde')


def test_times_are_in_utc_without_a_script(desk):
    entry = desk.post(expires_at=datetime(2030, 7, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))))

    page = desk.client.get('/').text

    assert '<time datetime="2030-07-01T01:30:00+02:00">2030-06-30 23:30:00 UTC</time>' in page
    assert f'<time datetime="{entry.posted_at.isoformat()}">{entry.posted_at:%Y-%m-%d %H:%M:%S} UTC</time>' in page


def test_a_group_is_answered_by_a_script_in_one_go(desk):
    group = [desk.post(request_for(name, group_id='g')) for name in 'xy']

    told = desk.answer_all(group, 'deny', note='no', accept='application/json').json()

    assert [each['outcome'] for each in told['outcomes'].values()] == ['Denied by ada', 'Denied by ada']
    assert desk.now(group[1]).answer.decision.note == 'no'


def test_an_answer_that_one_of_a_group_does_not_offer_leaves_the_outcomes_of_the_others(desk):
    folder = RememberOption(kind='folder', label='notes/', payload={'path': 'notes'})
    group = [desk.post(request_for(name, remember_options=options)) for name, options in (('x', (folder,)), ('y', ()))]

    answered = desk.answer_all(group, 'session', remember_option='folder')

    assert [desk.now(entry).state for entry in group] == ['approved', 'pending']
    assert answered.status_code == 200
    assert 'Approved for this session by ada' in text_of(answered.text)
    assert 'Not answered: the request does not offer this option for remembering the approval' in text_of(answered.text)


def test_a_group_is_not_approved_unless_all_of_it_is_shown(desk):
    long = ApprovalPresentation(type='text', content='x\n' * 900)
    group = [
        desk.post(request_for(name, group_id='g', presentation=shows)) for name, shows in (('x', None), ('y', long))
    ]

    page = shown(desk)
    refused = desk.answer_all(group)

    assert 'Parts of some requests are not shown, so approve the requests one by one.' in page
    assert 'Approve all' not in page
    assert refused.status_code == 422
    assert [desk.now(entry).state for entry in group] == ['pending', 'pending']


@pytest.mark.parametrize('items', [[], [('item', 'x.y')] * 101])
def test_a_group_of_none_or_of_too_many_is_refused(desk, items):
    assert desk.form('/answers', [*items, ('answer', 'deny')]).status_code == 400


def test_the_list_is_filtered_by_tool_agent_and_run(desk):
    desk.post(request_for('one', tool_name='mail', run_id='r1', metadata={'caller': 'anna'}))
    desk.post(request_for('two', run_id='r2'))

    assert 'path: "one"' in shown(desk, '/?tool=mail&agent=anna&run=r1')
    assert 'path: "two"' not in shown(desk, '/?tool=mail')
    assert 'path: "one"' not in shown(desk, '/?run=r2')
    assert 'No open requests' in shown(desk, '/?agent=gone')
    assert '<option value="gone" selected>' in desk.client.get('/?agent=gone').text
    assert 'path: "two"' in shown(desk, '/?tool=&agent=&run=')


def test_page_counts_the_requests_that_do_not_fit(desk):
    for number in range(AT_ONCE + 2):
        desk.post(request_for(str(number)))

    page = shown(desk)

    assert '2 more open requests.' in page
    assert page.count('Edit arguments') == AT_ONCE


def test_history_goes_on_page_by_page(desk):
    for number in range(HISTORY_AT_ONCE + 1):
        desk.settle(desk.post(request_for(f'n{number}.')))

    page = desk.client.get('/history').text
    older = re.search(r'<a href="(/history\?after=[^"]+)"', page)[1]

    assert 'n0.' not in page
    assert 'n0.' in desk.client.get(older).text
    assert 'No matching requests.' in shown(desk, '/history?tool=none')
    assert 'No matching requests.' in shown(desk, '/history?before=2000-01-01T00:00:00Z')


def test_history_is_empty_at_first(desk):
    assert 'No settled requests yet.' in shown(desk, '/history')


def test_history_is_shown_by_day_and_until_a_day(desk):
    entry = desk.settle(desk.post(request_for('a')))
    day = entry.settled_at.date()

    page = desk.client.get('/history').text

    assert f'<h2 class="day">{day} UTC</h2>' in page
    assert f'id="request-{entry.id}"' in desk.client.get(f'/history?until={day}').text
    assert 'No matching requests.' in shown(desk, f'/history?until={day - timedelta(days=1)}')


@pytest.mark.parametrize('day', ['tomorrow', '2026-02-30', '9999-12-31', '2026-03-04T12:00:00Z'])
def test_history_until_an_invalid_date_is_refused(desk, day):
    response = desk.client.get(f'/history?until={day}')

    assert response.status_code == 400
    assert '`until` must be a date such as 2026-03-04' in unescape(text_of(response.text))


def test_history_is_searched_for_what_it_shows(desk):
    shell = ApprovalPresentation(type='command', content='git push origin main')
    pushed = desk.settle(desk.post(request_for('a', presentation=shell, run_id='r1')))
    denied = desk.settle(desk.post(request_for('b')), approved=False, note='Ask Ann first.')

    def found(search):
        return re.findall(r'id="request-([^"]+)"', desk.client.get('/history', params={'q': search}).text)

    assert found('  PUSH main ') == [pushed.id]
    assert found('r1') == [pushed.id]
    assert found('ann') == [denied.id]
    assert found('by bob') == [denied.id, pushed.id]
    assert found('git ann') == []
    assert found('') == [denied.id, pushed.id]


def test_a_search_does_not_find_what_a_tool_hides(desk):
    hidden = ApprovalRequest(tool_name='log_in', args={'user': 'ada', 'pin': 's3cret'}, payload={'user': 'ada'})
    entry = desk.settle(desk.post(hidden))

    assert entry.id in desk.client.get('/history?q=ada').text
    assert 'No matching requests.' in shown(desk, '/history?q=s3cret')


def test_a_search_goes_on_where_it_stopped(desk, monkeypatch):
    monkeypatch.setattr(page_routes, '_PAGES_SEARCHED', 1)
    entry = desk.settle(desk.post(request_for('needle')))
    for number in range(HISTORY_AT_ONCE):
        desk.settle(desk.post(request_for(f'n{number}.')))

    page = desk.client.get('/history?q=needle').text
    older = unescape(re.search(r'<a href="(/history\?[^"]+)"', page)[1])

    assert 'No matching requests.' in text_of(page)
    assert 'q=needle' in older
    assert f'id="request-{entry.id}"' in desk.client.get(older).text


def test_a_search_reads_on_until_a_page_is_full(desk):
    entry = desk.settle(desk.post(request_for('needle')))
    for number in range(HISTORY_AT_ONCE):
        desk.settle(desk.post(request_for(f'n{number}.')))

    assert f'id="request-{entry.id}"' in desk.client.get('/history?q=needle').text


def test_a_search_is_shown_as_a_text(desk):
    page = desk.client.get('/history', params={'q': HOSTILE}).text

    assert '<script>alert' not in page
    assert f'value="{escape(HOSTILE)}"' in page


@pytest.mark.parametrize('moment', ['yesterday', '2026-03-04T12:00:00', ''])
def test_history_before_an_invalid_time_is_refused(desk, moment):
    assert desk.client.get(f'/history?before={moment}').status_code == 400


def test_history_shows_the_end_of_unanswered_requests(desk):
    import asyncio

    withdrawn, expired = desk.post(request_for('a')), desk.post(request_for('b'))
    asyncio.run(desk.inbox.withdraw(withdrawn.id))
    asyncio.run(desk.inbox.wait(expired.id, timeout=0))

    page = shown(desk, '/history')

    assert 'the run no longer waits for an answer' in page
    assert 'no approver answered in time' in page


def test_second_answer_names_the_first_approver(desk):
    entry = desk.post()
    desk.settle(entry)

    response = desk.answer(entry, 'deny')

    assert response.status_code == 409
    assert "open: approved by 'bob' at" in text_of(response.text)
    assert desk.now(entry).state == 'approved'


@pytest.mark.parametrize(
    'fields',
    [
        {},
        {'answer': 'maybe'},
        {'answer': 'session'},
        {'answer': 'session', 'remember_option': 'everything'},
        {'answer': 'always', 'remember_option': 'exact'},
        {'answer': 'deny', 'args': '{"path": "b"}'},
        {'answer': 'session', 'remember_option': 'exact', 'args': '{"path": "b"}'},
    ],
)
def test_form_with_an_answer_that_was_not_offered_is_refused(desk, fields):
    entry = desk.post()

    response = desk.form(f'/requests/{entry.id}/answer', {'digest': entry.digest, **fields})

    assert response.status_code in (400, 422)
    assert desk.now(entry).state == 'pending'


def test_repeated_form_field_is_refused(desk):
    entry = desk.post()
    fields = [('answer', 'approve'), ('answer', 'deny'), ('digest', entry.digest)]

    assert desk.form(f'/requests/{entry.id}/answer', fields).status_code == 400
    assert desk.now(entry).state == 'pending'


def test_a_script_gets_what_became_of_its_answer_in_json(desk):
    entry = desk.post()
    fields = {'answer': 'approve', 'digest': entry.digest}

    first = desk.form(f'/requests/{entry.id}/answer', fields, accept='application/json')
    second = desk.form(f'/requests/{entry.id}/answer', fields, accept='application/json')

    settled_at = desk.now(entry).settled_at.isoformat()
    assert first.json() == {'outcome': 'Approved by ada', 'settled_at': settled_at}
    assert error_of(second) == (409, 'already_settled')


@pytest.mark.parametrize('path', ['/nowhere', '/requests/' + 'x' * 43, '/requests/short', '/static/app.py', '/api'])
def test_missing_page_is_plain(desk, path):
    assert 'Not found' in shown(desk, path, 404)


def test_style_and_script_are_served_from_here(desk):
    page = desk.client.get('/').text

    for name, kind in (('inbox.css', 'text/css'), ('inbox.js', 'text/javascript')):
        assert f'"/static/{name}"' in page
        assert desk.client.get(f'/static/{name}').headers['content-type'].startswith(kind)


SCHEMA = {
    'type': 'object',
    'properties': {
        'to': {'type': 'string'},
        'amount': {'type': 'integer'},
        'rate': {'anyOf': [{'type': 'number'}, {'type': 'null'}]},
        'memo': {'anyOf': [{'type': 'string'}, {'type': 'null'}]},
        'urgent': {'type': 'boolean'},
        'speed': {'$ref': '#/$defs/Speed'},
    },
    '$defs': {'Speed': {'enum': ['slow', 'fast'], 'type': 'string'}},
}
PAYMENT = ApprovalRequest(
    tool_name='pay',
    args={'to': 'bob', 'amount': 1, 'rate': 1.5, 'memo': None, 'urgent': False, 'speed': 'slow'},
    args_schema=SCHEMA,
)
ENTERED = {
    'field-0': 'eve', 'field-1': '2', 'field-2': '', 'field-3': 'a\r\nb', 'field-4': 'true', 'field-5': '"fast"'
}  # fmt: skip


def test_flat_arguments_are_edited_in_a_form(desk):
    entry = desk.post(PAYMENT)

    form = desk.client.get(f'/requests/{entry.id}/edit').text
    preview = desk.form(f'/requests/{entry.id}/edit', ENTERED)
    unchanged = desk.form(
        f'/requests/{entry.id}/edit',
        {
            **ENTERED,
            'field-0': 'bob',
            'field-1': '1',
            'field-2': '1.5',
            'null-3': '1',
            'field-4': 'false',
            'field-5': '"slow"',
        },
    )

    assert '<textarea id="args"' not in form
    assert '<option value="&quot;slow&quot;" selected>slow</option>' in form
    assert '<option value="false" selected>false</option>' in form
    assert 'name="null-3" value="1" checked' in form
    assert 'You have changed the call.' in text_of(preview.text)
    [args] = re.findall(r'name="args" value="([^"]*)"', preview.text)
    changed = {'to': 'eve', 'amount': 2, 'rate': None, 'memo': 'a\nb', 'urgent': True, 'speed': 'fast'}
    assert json.loads(unescape(args)) == changed
    assert 'The arguments are unchanged.' in text_of(unchanged.text)

    again = desk.form(f'/requests/{entry.id}/edit?again=1', {'args': json.dumps(changed)})
    assert '<option value="&quot;fast&quot;" selected>fast</option>' in again.text


def test_a_choice_that_may_be_missing_offers_no_value(desk):
    schema = {'properties': {'speed': {'anyOf': [{'enum': ['slow', 'fast']}, {'type': 'null'}]}}}
    entry = desk.post(ApprovalRequest(tool_name='pay', args={'speed': None}, args_schema=schema))

    form = desk.client.get(f'/requests/{entry.id}/edit').text

    assert '<option value="" selected>no value</option>' in form


@pytest.mark.parametrize(
    ('entered', 'problem'),
    [
        ({'field-1': 'many'}, '`amount` is not a whole number'),
        ({'field-1': '1.5'}, '`amount` is not a whole number'),
        ({'field-1': ''}, '`amount` is missing'),
        ({'field-2': '1]'}, '`rate` is not a number'),
        ({'field-4': 'maybe'}, '`urgent` is not one of the options'),
    ],
)
def test_what_cannot_be_used_of_a_form_is_shown_again_with_the_reason(desk, entered, problem):
    entry = desk.post(PAYMENT)

    response = desk.form(f'/requests/{entry.id}/edit', {**ENTERED, **entered})

    assert response.status_code == 422
    assert f'The arguments are invalid: {problem}.' in text_of(response.text)
    assert 'value="eve"' in response.text
    assert desk.now(entry).state == 'pending'


def test_a_form_without_all_of_its_fields_changes_nothing(desk):
    entry = desk.post(PAYMENT)

    response = desk.form(f'/requests/{entry.id}/edit', {'field-0': 'eve', 'field-x': '1', 'null-x': '1'})

    assert '`amount` is missing' in text_of(response.text)


def test_a_request_without_a_form_takes_none(desk):
    entry = desk.post()

    response = desk.form(f'/requests/{entry.id}/edit', {'field-0': 'b'})

    assert (response.status_code, desk.now(entry).state) == (422, 'pending')


def test_arguments_of_a_form_can_be_edited_as_json(desk):
    entry = desk.post(PAYMENT)

    form = desk.client.get(f'/requests/{entry.id}/edit').text
    assert f'/requests/{entry.id}/edit?as=json' in form
    assert '<textarea id="args"' in desk.client.get(f'/requests/{entry.id}/edit?as=json').text


def test_names_and_values_of_a_form_are_escaped(desk):
    schema = {'properties': {HOSTILE: {'type': 'string'}, 'choice': {'enum': [HOSTILE]}}}
    entry = desk.post(ApprovalRequest(tool_name='t', args={HOSTILE: HOSTILE, 'choice': HOSTILE}, args_schema=schema))

    form = desk.client.get(f'/requests/{entry.id}/edit').text

    assert 'field-0' in form
    assert '<script>alert' not in form
    assert '<img' not in form


def test_an_edit_that_was_not_accepted_is_shown_with_the_reason_and_edited_further(desk):
    rejected = RejectedEdit(args={'path': 7}, problem='path: not a text <b>')
    entry = desk.post(
        request_for('a', rejected_edit=rejected, args_schema={'properties': {'path': {'type': 'string'}}})
    )

    form = desk.client.get(f'/requests/{entry.id}/edit')

    assert 'your edit was not accepted, so the call is asked about again: path: not a text <b>' in shown(desk, '/')
    assert 'Your edit was not accepted: path: not a text <b>' in text_of(form.text)
    assert '&quot;path&quot;: 7' in form.text
    api = desk.client.get(f'/api/v1/requests/{entry.id}').json()
    assert api['rejected_edit'] == {'args': {'path': 7}, 'problem': 'path: not a text <b>'}
    assert api['args_schema'] == {'properties': {'path': {'type': 'string'}}}


def test_only_allowed_answers_are_offered_and_taken(desk):
    entry = desk.post(request_for('a', answers=('respond',)))

    page = desk.client.get('/').text
    refused = [desk.answer(entry, said) for said in ('approve', 'session', 'deny_session')]
    refused.append(desk.answer(entry, args='{"path": "b"}'))
    editing = desk.client.get(f'/requests/{entry.id}/edit')
    by_api = desk.decide(entry)

    assert 'value="respond"' in page
    unoffered = ('value="approve"', 'value="session"', 'value="deny_session"', '>Edit arguments<')
    assert not any(text in page for text in unoffered)
    assert [each.status_code for each in [*refused, editing, by_api]] == [422] * 6
    assert desk.client.get(f'/api/v1/requests/{entry.id}').json()['answers'] == ['deny', 'note', 'respond']
    assert desk.now(entry).state == 'pending'


def test_an_answer_in_the_tools_place_is_the_decision(desk):
    entry, by_api = desk.post(request_for('a', answers=('respond',))), desk.post(request_for('b', answers=('respond',)))

    empty = desk.answer(entry, 'respond', response=' ')
    desk.answer(entry, 'respond', response=f' {HOSTILE}\r\nand more ')
    settled = desk.decide(by_api, approved=False, response={'n': [1, None]})

    assert empty.status_code == 422
    decision = desk.now(entry).answer.decision
    assert (decision.approved, decision.response) == (False, f'{HOSTILE}\nand more')
    history = desk.client.get('/history').text
    assert 'Answered in place of the tool by ada' in text_of(history)
    assert '<script>alert' not in history
    assert 'Result: {"n":[1,null]}' in text_of(history)
    assert settled.json()['answer']['response'] == {'n': [1, None]}


def test_one_result_does_not_answer_several_requests(desk):
    entries = [desk.post(request_for(each, answers=('respond',), group_id='g')) for each in 'ab']

    refused = desk.answer_all(entries, 'respond', response='x')

    assert refused.status_code == 400
    assert [desk.now(entry).state for entry in entries] == ['pending', 'pending']
