"""Calls from the entries of a log: which question belongs to which decision, and what is missing."""

import pytest
from tool_approval.audit.calls import logged_calls, time_of

AT = '2026-03-04T12:00:00+00:00'
LATER = '2026-03-04T12:00:07.500000+00:00'


def question(digest='d', **more):
    return {'event': 'question', 'at': AT, 'tool_name': 'send', 'tool_call_id': '1', 'digest': digest, **more}


def decision(digest='d', **more):
    decided = {'approved': True, 'how': 'person', 'decided_by': ['ada'], 'decided_at': LATER, 'payload': {'to': 'bob'}}
    return {**question(digest), 'event': 'decision', 'question_digest': digest, 'at': LATER, **decided, **more}


def test_a_decision_is_matched_with_its_question():
    (call,) = logged_calls([None, question(), decision(settings_digest='s')])

    assert (call.line, call.tool_name, call.payload, call.fate) == (3, 'send', {'to': 'bob'}, 'approved')
    assert (call.how, call.decided_by, call.answered_s, call.settings_digest) == ('person', ('ada',), 7.5, 's')
    assert call.was_asked


@pytest.mark.parametrize(
    ('more', 'fate', 'is_changed'),
    [
        ({'approved': False}, 'denied', False),
        ({'approved': 'yes'}, 'denied', False),
        ({'approved': False, 'response': 'done'}, 'answered', False),
        ({'digest': 'e', 'has_changed_arguments': True}, 'approved', True),
    ],
)
def test_every_decision_has_a_fate(more, fate, is_changed):
    (call,) = logged_calls([question(), {**decision(), **more}])

    assert (call.fate, call.is_changed, call.answered_s) == (fate, is_changed, 7.5)


def test_a_question_that_is_asked_again_counts_from_the_first_time():
    (call,) = logged_calls([question(), question(at=LATER), decision()])

    assert call.answered_s == 7.5


def test_open_questions_come_last_in_their_order():
    calls = list(logged_calls([question('a'), question('b'), decision('c'), {'event': 'other'}, {'event': 'outcome'}]))

    assert [(call.line, call.fate) for call in calls] == [(3, 'approved'), (1, 'open'), (2, 'open')]
    assert calls[0].answered_s is None


@pytest.mark.parametrize('event', ['unasked', 'blocked'])
def test_calls_without_a_question_say_so(event):
    (call,) = logged_calls([{'event': event, 'tool_name': 7, 'payload': [], 'decided_by': 'x', 'settings_digest': 1}])

    assert (call.fate, call.was_asked, call.tool_name, call.payload) == (event, False, '-', None)
    assert (call.decided_by, call.settings_digest, call.at) == ((), None, None)


@pytest.mark.parametrize('decided_at', [None, 'x', '2026-03-04T11:00:00+00:00', '2026-03-04T12:00:00'])
def test_a_time_that_cannot_be_right_is_left_out(decided_at):
    (call,) = logged_calls([question(), decision(decided_at=decided_at)])

    assert call.answered_s is None


@pytest.mark.parametrize('text', ['', 'x', '2026-03-04T12:00:00', '0001-01-01T00:00:00+14:00', 7])
def test_a_text_that_is_no_time_with_an_offset_is_none(text):
    assert time_of({'at': text}) is None
