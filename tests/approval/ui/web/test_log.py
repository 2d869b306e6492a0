"""The page of the log: which entries it shows, and that nothing in them becomes markup."""

import json

import pytest
from tool_approval.audit import JsonlAuditSink, read_entries, reading
from tool_approval.audit.reading import read_newest
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.testing import RecordingUI
from tool_approval.ui.web import log as page_of_log
from tool_approval.ui.web.log import LOG_AT_ONCE

from tests.approval.parts import request_for
from tool_approval import ApprovalController, AuditError

from .parts import HOSTILE, client_of, text_of

KEY = b'k' * 32


@pytest.fixture
def log(tmp_path):
    return tmp_path / 'audit.jsonl'


@pytest.fixture
def client(tmp_path, log):
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        yield client_of(inbox, log=log)


async def decide(log, *requests, ui=True, **settings):
    controller = ApprovalController(ui=RecordingUI(ui), audit=JsonlAuditSink(log, key=KEY), **settings)
    for each in requests:
        await controller.request_approval(each)


@pytest.mark.anyio
async def test_entries_are_shown_newest_first_with_who_what_and_when(client, log):
    await decide(log, request_for(tool_name='pay', args={'to': 'ada'}))
    await decide(log, request_for(tool_name='pay', args={'to': 'bob'}), policy={'pay': {'approval': 'blocked'}})

    shown = text_of(client.get('/log').text)

    blocked, approved, asked = (
        shown.index(word) for word in ('blocked by policy', 'approved by ui', 'asked Recording')
    )
    assert blocked < approved < asked
    assert 'pay {"to":"ada"}' in shown
    assert 'UTC' in shown


def test_an_empty_or_missing_log_says_so(client, log):
    assert 'The log is empty.' in text_of(client.get('/log').text)
    log.write_text('')
    assert 'The log is empty.' in text_of(client.get('/log').text)
    assert client.get('/log/export').text == ''


def test_without_a_log_there_is_no_page(tmp_path):
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        client = client_of(inbox)

        assert client.get('/log').status_code == 404
        assert '/log' not in client.get('/').text


def test_only_visitors_who_are_logged_in_see_the_log(tmp_path, log):
    log.write_text('{"event":"settings"}\n')
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        client = client_of(inbox, authenticate=lambda request: None, log=log)

        assert [client.get(path).status_code for path in ('/log', '/log/export')] == [401, 401]


@pytest.mark.anyio
async def test_words_and_the_kind_of_entry_choose_entries(client, log):
    await decide(
        log, request_for(tool_name='pay', args={'to': 'ada'}), request_for(tool_name='mail', args={'to': 'Bob'})
    )

    def found(**query):
        return text_of(client.get('/log', params=query).text)

    assert 'mail' not in found(q='ADA')
    assert 'mail' in found(q='bob approved')
    assert 'asked' not in found(q='bob approved').split('Call')[1]
    assert 'approved by' not in found(event='question')
    assert 'No matching entries.' in found(q='nobody')
    assert 'No matching entries.' in found(event='nothing')
    export = client.get('/log/export', params={'q': 'mail', 'event': 'decision'})
    [entry] = map(json.loads, export.text.splitlines())
    assert (entry['tool_name'], entry['event']) == ('mail', 'decision')
    assert 'attachment' in export.headers['content-disposition']


def test_older_entries_are_on_further_pages(client, log):
    count = 2 * LOG_AT_ONCE + 7
    log.write_text(''.join(f'{{"event":"outcome","tool_name":"tool-{n}."}}\n' for n in range(count)))

    seen, address = [], '/log'
    while address is not None:
        page = client.get(address).text
        seen += [word for word in text_of(page).split() if word.startswith('tool-')]
        address = page.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0] if 'rel="next"' in page else None
        address = None if address is None else address.replace('&amp;', '&')

    assert seen == [f'tool-{n}.' for n in reversed(range(count))]


def test_a_page_searches_a_part_of_a_long_log_and_offers_the_rest(client, log, monkeypatch):
    lines = [f'{{"event":"outcome","tool_name":"tool-{n}."}}\n' for n in range(1_000)]
    log.write_text(''.join(lines))
    monkeypatch.setattr(page_of_log, 'SEARCHED_AT_ONCE', 300 * len(lines[-1]))
    read = []
    monkeypatch.setattr(page_of_log, 'read_newest', lambda *args: counted(read_newest(*args), read))

    pages, address = [], '/log?q=tool-10.'
    while address is not None:
        read.clear()
        page = client.get(address).text
        assert len(read) <= 302
        pages.append(text_of(page))
        address = page.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0] if 'rel="next"' in page else None
        address = None if address is None else address.replace('&amp;', '&')

    assert ['Search older entries' in each for each in pages] == [True, True, True, False]
    assert ['No matching entries here.' in each for each in pages] == [True, True, True, False]
    assert ['tool-10.' in each for each in pages] == [False, False, False, True]


def counted(entries, read):
    for each in entries:
        read.append(each)
        yield each


def test_an_export_has_what_was_chosen_of_the_whole_log(client, log):
    count = 2_500
    log.write_text(''.join(f'{{"event":"outcome","tool_name":"tool-{n}."}}\n' for n in range(count)))

    export = client.get('/log/export', params={'q': 'tool-3.'})
    whole = client.get('/log/export')

    assert [json.loads(line)['tool_name'] for line in export.text.splitlines()] == ['tool-3.']
    assert len(whole.text.splitlines()) == count


@pytest.mark.parametrize('before', ['-1', 'x', '1' * 19, ''])
def test_a_position_that_is_none_is_refused(client, log, before):
    assert client.get('/log', params={'before': before}).status_code == 400


def test_nothing_in_an_entry_becomes_markup_or_hides(client, log):
    entry = dict.fromkeys(('event', 'at', 'requester', 'tool_name', 'note', 'ui', 'outcome', 'error'), HOSTILE)
    hostile = [
        {
            **entry,
            'event': event,
            'decided_by': [HOSTILE],
            'asked': [HOSTILE],
            'payload': {'x': f'{HOSTILE}\u202e\x1b[2J'},
        }
        for event in ('question', 'decision', 'outcome', 'unasked', 'blocked', HOSTILE)
    ]
    hostile += [
        {'event': 'decision', 'payload': {'a': '\ud800'}},
        {'event': 'outcome', 'at': '0001-01-01T00:00:00+23:59'},
    ]
    lines = [*map(json.dumps, hostile), '[]', 'no JSON', '{"event": {}, "tool_name": 7, "payload": null}', '{"a":']
    log.write_text('\n'.join(lines))

    page = client.get('/log').text

    assert '<script>alert' not in page
    assert '<img src=x' not in page
    assert '\u202e' not in page
    assert '\x1b' not in page
    assert text_of(page).count('this is not a line of an audit log') == 3


def test_a_log_that_cannot_be_read_names_no_path(client, log):
    log.mkdir()

    answer = client.get('/log')

    assert answer.status_code == 503
    assert 'the log cannot be read' in answer.text.lower()
    assert str(log) not in answer.text


def test_a_line_that_is_too_long_ends_the_reading(client, log, monkeypatch):
    monkeypatch.setattr(reading, 'LONGEST_LINE', 100)
    monkeypatch.setattr(reading, '_CHUNK', 64)
    log.write_text('x' * 200 + '\n{"event":"outcome","outcome":"executed","tool_name":"pay"}\n')
    entries = read_newest(log)

    assert next(entries)[1]['tool_name'] == 'pay'
    with pytest.raises(AuditError, match='too long'):
        next(entries)
    assert client.get('/log').status_code == 503


@pytest.mark.parametrize(
    'text', ['', '{"a":1}', '{"a":1}\n', '\n\n{"a":1}\n\n[]\n{"b":2}', '{"a":"' + 'x' * 200_000 + '"}\n' * 3]
)
def test_entries_from_the_end_are_those_from_the_beginning(log, text):
    log.write_text(text)

    forwards = [entry for entry, line in zip(read_entries(log), text.split('\n'), strict=False) if line]

    assert [entry for _, entry in read_newest(log)] == forwards[::-1]
    positions = [position for position, _ in read_newest(log)]
    for number, position in enumerate(positions):
        assert [at for at, _ in read_newest(log, position)] == positions[number + 1 :]
