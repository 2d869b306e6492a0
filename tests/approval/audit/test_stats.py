"""Figures about calls: counted by hour, by person and by time."""

from datetime import UTC, datetime, timedelta

import pytest
from tool_approval.audit.calls import LoggedCall
from tool_approval.audit.stats import count, stats_lines

START = datetime(2026, 3, 4, 12, 59, tzinfo=UTC)


def call(fate='approved', how='person', by=('ada',), answered_s=5.0, at=START, **more):
    return LoggedCall(
        line=1,
        at=at,
        tool_name='send',
        payload={},
        fate=fate,
        how=how,
        decided_by=by,
        is_changed=False,
        settings_digest=None,
        answered_s=answered_s,
        **more,
    )


def test_calls_are_counted_by_what_became_of_them():
    calls = [
        *(call(), call('denied'), call('answered'), call('open', '-', ())),
        *(call('unasked', '-'), call('blocked', '-'), call(how='memory'), call('denied', 'timeout', at=None)),
    ]

    stats = count(calls)

    assert (stats.calls, stats.asked, stats.unasked, stats.blocked, stats.otherwise) == (8, 4, 1, 1, 2)
    assert (stats.answers.approved, stats.answers.denied, stats.answers.answered) == (1, 1, 1)


def test_questions_are_counted_by_hours_of_the_clock_that_have_calls():
    calls = [call(), call(at=START + timedelta(minutes=2)), call(at=START + timedelta(days=2))]

    assert dict(stats_lines(count(calls)))['questions an hour'] == '1.0, in 3 h with calls'


@pytest.mark.parametrize(
    ('times', 'median', 'most', 'fast'),
    [
        ([3], 'median 3.0 s', '90 % within 3.0 s', '0 of 1 (0 %)'),
        ([1, 1.9, 2, 90], 'median 1.9 s', '90 % within 1.5 min', '2 of 4 (50 %)'),
        (list(range(1, 11)), 'median 5.0 s', '90 % within 9.0 s', '1 of 10 (10 %)'),
        ([7200, 172_800], 'median 2.0 h', '90 % within 2.0 d', '0 of 2 (0 %)'),
    ],
)
def test_times_are_given_as_median_and_ninety_percent(times, median, most, fast):
    lines = dict(stats_lines(count([call(answered_s=each) for each in times])))

    assert lines['time to answer'] == f'{median}, {most}'
    assert lines['answered in less than 2 s'] == fast


def test_without_calls_there_are_no_times():
    assert stats_lines(count([])) == [
        ('calls', '0: 0 ran unasked, 0 asked a person, 0 decided otherwise, 0 blocked'),
        ('questions an hour', '-'),
        ('approved', '0 of 0'),
    ]


def test_ten_people_are_named_and_the_others_counted():
    calls = [call(by=(f'p{number:02}',)) for number in range(12)] + [call('denied', by=('p11', 'p11'))]

    lines = stats_lines(count(calls))

    assert lines[-11:-8] == [('by p11', '1 of 2 (50 %)'), ('by p00', '1 of 1 (100 %)'), ('by p01', '1 of 1 (100 %)')]
    assert lines[-1] == ('by others', '2 more approvers')


def test_a_reviewer_in_shadow_mode_is_compared_with_the_answers_of_people():
    calls = [
        *(call(reviewer_would='approve') for _ in range(3)),
        call('denied', reviewer_would='approve'),
        call(reviewer_would='ask'),
        call(how='memory', reviewer_would='approve'),
        call(),
    ]

    told = 'would have approved 4 of 5; of these, people approved 3 of 4 (75 %)'
    assert dict(stats_lines(count(calls)))['reviewer in shadow mode'] == told
    assert 'reviewer in shadow mode' not in dict(stats_lines(count([call()])))
