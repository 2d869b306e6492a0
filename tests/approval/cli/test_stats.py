"""Figures about questions and answers, at the command line."""

import pytest

from .records import Record


@pytest.fixture
def record(tmp_path):
    (tmp_path / 'log').mkdir()
    made = Record(tmp_path / 'log')
    yield made
    made.sink.close()


def test_figures_are_printed_one_a_line(tool_approval, record):
    record.asked('send', {}, times=3, answered_s=1)
    record.asked('send', {}, False, answered_s=30, decided_by=['bob\x1b[2J'])
    record.unasked('look', {})

    finished = tool_approval('stats', *record.options)

    assert finished.status == 0
    assert finished.out.splitlines() == [
        'calls                      5: 1 ran unasked, 4 asked a person, 0 decided otherwise, 0 blocked',
        'questions an hour          0.8, in 5 h with calls',
        'approved                   3 of 4 (75 %)',
        'time to answer             median 1.0 s, 90 % within 30.0 s',
        'answered in less than 2 s  3 of 4 (75 %)',
        'by ada                     3 of 3 (100 %)',
        'by bob<U+001B>[2J                 0 of 1 (0 %)',
    ]


def test_a_log_without_a_key_is_counted_with_a_note(tool_approval, record):
    record.asked('send', {})

    finished = tool_approval('stats', str(record.path))

    assert finished.status == 0
    assert 'the log was not verified' in finished.err


def test_without_paths_the_log_of_run_is_counted(tool_approval, tmp_path):
    record_of_run = tmp_path / 'state/tool-approval'

    finished = tool_approval('stats')

    assert finished.status == 2
    assert str(record_of_run / 'keys/audit.key') in finished.err


def test_a_changed_log_is_not_counted(tool_approval, record):
    record.asked('send', {})
    record.path.write_bytes(record.path.read_bytes().replace(b'ada', b'eve'))

    finished = tool_approval('stats', *record.options)

    assert finished.status == 2
    assert 'is not intact' in finished.err
