import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.audit import Finding, Head, verify, verify_text
from tool_approval.audit.chain import START, chained, read_head

from tests.approval.parts import KEY
from tests.tables import table
from tool_approval import NotCanonicalError

CHANGED = 'the line was changed, or written with another key'
MOVED = 'the line does not follow the previous line: lines were removed, added or moved'


def log_of(*entries, key=KEY):
    head, lines = Head(lines=0, mac=START), []
    for entry in entries:
        line, head = chained(entry, previous=head, key=key)
        lines.append(line)
    return lines


def numbered(count, key=KEY, word='log'):
    return log_of(
        *({'event': 'note', 'word': word, 'other': 'ä', 'number': number} for number in range(count)), key=key
    )


def problem_of(lines, **options):
    finding = verify_text(b''.join(lines), key=KEY, **options)
    return finding.broken_line, finding.problem


LINES = numbered(6)


def test_an_intact_log_is_found_intact(tmp_path):
    (tmp_path / 'log').write_bytes(b''.join(LINES))

    finding = verify(tmp_path / 'log', key=KEY)

    assert finding == Finding(is_intact=True, head=read_head(LINES[-1].rstrip(b'\n'), key=KEY))
    assert [json.loads(line)['number'] for line in LINES] == list(range(6))
    assert finding.head.lines == 6


def test_an_empty_log_is_intact():
    assert verify_text(b'', key=KEY) == Finding(is_intact=True, head=Head(lines=0, mac=START))
    assert verify_text(b'', key=KEY, head=START).is_intact


def with_line(number, line):
    """The log, with this line in place of the one of this number, which begins at 1."""
    return [*LINES[: number - 1], line, *LINES[number:]]


def forged(lines):
    """A line for the end of these lines, by somebody without the key."""
    mac = json.loads(LINES[lines - 1])['mac']
    return chained({'event': 'decision', 'approved': True}, previous=Head(lines=lines, mac=mac), key=b'x' * 32)[0]


NO_HASH = 'the line does not end in a hash'
CUT = 'the line is incomplete'
OTHER = numbered(6, word='other')


@table(
    ('why', 'lines', 'broken_line', 'problem'),
    [
        *(
            (
                'a value, a name or the number of a line was changed',
                with_line(n, LINES[n - 1].replace(old, new)),
                n,
                CHANGED,
            )
            for n in range(1, 7)
            for old, new in [(b'"log"', b'"lug"'), (b'"event"', b'"event2"'), (b'"line":', b'"line":1')]
        ),
        *(
            ('the line is written otherwise', with_line(3, LINES[2].replace(old, new, 1)), 3, CHANGED)
            for old, new in [(b':', b': '), (b'"log"', b'"l\\u006fg"'), (b'\xc3\xa4', b'\xff')]
        ),
        *(
            ('the line has no hash', with_line(3, line + b'\n'), 3, NO_HASH)
            for line in [b'', b'hello', b'{}', b'null', b'\xff', b'{"mac":7}', LINES[2].replace(b'\n', b'\r')]
        ),
        *(('a line was taken out', LINES[: n - 1] + LINES[n:], n, MOVED) for n in range(1, 6)),
        *(('a line occurs twice', LINES[:n] + LINES[n - 1 :], n + 1, MOVED) for n in range(1, 6)),
        ('two lines changed places', [LINES[0], LINES[2], LINES[1], *LINES[3:]], 2, MOVED),
        ('a line is from another log of the same key', with_line(4, OTHER[3]), 4, MOVED),
        ('a line of another log follows', [*LINES, OTHER[5]], 7, MOVED),
        ('a line was put in without the key', [*LINES[:2], forged(2), *LINES[2:]], 3, CHANGED),
        ('the log goes on with another key', [*LINES, forged(6)], 7, CHANGED),
        ('the whole log has another key', numbered(6, key=b'x' * 32), 1, CHANGED),
        ('the last line is half', with_line(6, LINES[5][:-10]), 6, CUT),
        ('the last line has no newline', with_line(6, LINES[5][:-1]), 6, CUT),
    ],
)
def test_first_line_that_was_tampered_with_is_named(why, lines, broken_line, problem):
    assert problem_of(lines) == (broken_line, problem), why


@pytest.mark.parametrize('left', range(6))
def test_cut_tail_is_found_only_with_the_noted_head(left):
    noted = json.loads(LINES[-1])['mac']

    assert problem_of(LINES[:left]) == (None, None)
    assert problem_of(LINES[:left], head=noted) == (
        left + 1,
        'the head that you recorded is not in the log: lines are missing at its end',
    )


@pytest.mark.parametrize('number', range(6))
def test_a_head_noted_at_any_time_is_found_again(number):
    assert verify_text(b''.join(LINES), key=KEY, head=json.loads(LINES[number])['mac']).is_intact


def test_findings_before_the_break_are_reported():
    finding = verify_text(b''.join([*LINES[:2], b'?\n', *LINES[3:]]), key=KEY)

    assert (finding.is_intact, finding.head.lines, finding.unfinished) == (False, 2, ())


def call(tool_call_id, **fields):
    return {'tool_name': 'delete', 'tool_call_id': tool_call_id, 'run_id': 'run', 'digest': 'd', **fields}


def test_an_approval_that_no_outcome_follows_is_unfinished():
    lines = log_of(
        call('1', event='decision', approved=True),
        call('2', event='decision', approved=True),
        call('3', event='decision', approved=False),
        call('1', event='outcome', outcome='executed'),
        call('4', event='outcome', outcome='executed'),
        call('1', event='decision', approved=True),
        call('2', event='outcome', outcome='refused', digest='another'),
    )

    assert verify_text(b''.join(lines), key=KEY).unfinished == (2, 6)


def test_an_outcome_belongs_to_the_decision_of_its_run_or_to_one_that_was_made_between_runs():
    lines = log_of(
        call('1', event='decision', approved=True, run_id=None),
        call('1', event='decision', approved=True, run_id='a'),
        call('1', event='decision', approved=True, run_id='b'),
        call('1', event='outcome', outcome='executed', run_id='a'),
        call('1', event='outcome', outcome='executed', run_id='resumed'),
        call('1', event='outcome', outcome='executed', run_id='another'),
    )

    assert verify_text(b''.join(lines), key=KEY).unfinished == (3,)


def test_an_entry_of_another_program_may_have_values_of_any_type():
    entries = [{**call('1'), 'event': 'decision', 'approved': True, 'tool_name': ['a'], 'run_id': {}} for _ in range(2)]

    assert verify_text(b''.join(log_of(*entries)), key=KEY).unfinished == (1, 2)


def test_an_entry_cannot_set_what_the_chain_sets():
    lines = log_of({'event': 'note', 'mac': 'mine', 'line': 7, 'previous': 'mine'}, {'event': 'note'})

    assert verify_text(b''.join(lines), key=KEY).is_intact


def test_an_entry_without_a_canonical_form_is_refused():
    with pytest.raises(NotCanonicalError):
        log_of({'event': 'note', 'number': float('nan')})


@pytest.mark.parametrize('line', [b'', b'{}', b'{"line":1,"mac":"x"}', LINES[0], LINES[0][:-2]])
def test_no_head_is_read_from_a_line_that_does_not_end_in_a_hash(line):
    with pytest.raises(ValueError, match='does not end in a hash'):
        read_head(line, key=KEY)


def test_no_head_is_read_from_a_changed_line():
    with pytest.raises(ValueError, match='the line was changed'):
        read_head(LINES[0].rstrip(b'\n').replace(b'"line":1', b'"line":7'), key=KEY)


@given(st.data())
def test_any_change_of_a_byte_is_found(data):
    text = bytearray(b''.join(LINES))
    place = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[place]))
    line = bytes(text[:place]).count(b'\n') + 1

    text[place] = byte

    finding = verify_text(bytes(text), key=KEY)
    assert not finding.is_intact
    assert finding.broken_line == line
