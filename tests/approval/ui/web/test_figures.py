"""The figures on the page of the log: what they count, and that names in them become no markup."""

import json

import pytest
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.web.figures import FIGURES_OF

from .parts import HOSTILE, client_of, text_of

AT = '2026-03-04T12:00:00+00:00'


def decision(by='ada', **more):
    return {'event': 'decision', 'at': AT, 'approved': True, 'how': 'person', 'decided_by': [by], **more}


@pytest.fixture
def client(tmp_path):
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        yield client_of(inbox, log=tmp_path / 'audit.jsonl')


@pytest.fixture
def write(tmp_path):
    def lines(*entries):
        (tmp_path / 'audit.jsonl').write_text(''.join(f'{json.dumps(each)}\n' for each in entries))

    return lines


def test_the_page_of_the_log_has_figures(client, write):
    write(decision(), decision(approved=False))

    shown = text_of(client.get('/log').text)

    assert 'Questions and answers' in shown
    assert '1 of 2 (50 %)' in shown
    assert 'by ada' in shown


def test_a_search_and_older_pages_have_none(client, write):
    write(decision(), decision())

    assert 'figures' not in client.get('/log', params={'q': 'approved'}).text
    assert 'figures' not in client.get('/log', params={'before': '5'}).text


def test_a_log_without_calls_has_none(client, write):
    write({'event': 'settings'})

    assert 'figures' not in client.get('/log').text


def test_only_the_newest_entries_are_counted(client, write):
    write(decision('old'), *[decision()] * FIGURES_OF)

    shown = text_of(client.get('/log').text)

    assert f'in the newest {FIGURES_OF} entries' in shown
    assert f'{FIGURES_OF} of {FIGURES_OF} (100 %)' in shown
    assert 'by old' not in shown


def test_a_line_that_is_too_long_ends_the_count(client, write):
    write({'event': 'x' * (2 * 1024 * 1024)}, *[decision()] * 101)

    response = client.get('/log')

    assert response.status_code == 200
    assert '101 of 101 (100 %)' in text_of(response.text)


def test_names_become_no_markup_and_hide_nothing(client, write):
    write(decision(f'{HOSTILE}\u202e\x1b[2J'), decision('x' * 10_000))

    page = client.get('/log').text

    assert '<script>alert' not in page
    assert '<img src=x' not in page
    assert '\u202e' not in page
    assert '\x1b' not in page
    assert 'x' * 77 + '...' in page
    assert 'x' * 1_000 not in page.split('</details>')[0]
