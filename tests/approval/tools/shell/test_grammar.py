import sys
import time

import pytest
from tool_approval.core.errors import MissingExtraError
from tool_approval.tools.shell.grammar import MAX_BYTES, parse

from .parts import blocked, decision, judge, unasked


def test_a_command_at_the_limit_is_parsed_and_one_beyond_is_asked_about():
    fits = 'echo ' + 'a' * (MAX_BYTES - 5)

    assert decision(fits, *unasked('echo')) == 'allow'
    assert decision(fits + 'a', *unasked('echo')) == 'ask'


def test_the_limit_counts_bytes():
    assert decision('echo ' + 'é' * (MAX_BYTES // 2), *unasked('echo')) == 'ask'


def test_command_that_takes_too_long_to_parse_asks():
    ticks = iter(range(1000))

    parsed = parse('ls', clock=lambda: next(ticks))

    assert parsed.root is None
    assert parsed.problem == 'parsing the command takes longer than 20 ms'


def test_command_that_is_slow_to_parse_asks_even_if_a_rule_allows_it():
    ticks = iter(range(1000))

    assert decision('ls', *unasked('ls'), clock=lambda: next(ticks)) == 'ask'


@pytest.mark.parametrize(
    'piece', ['(', '$(', '{ ', '`', '"$(', '${a:-', '((', '[[ ', 'if ', 'a=(', '<<a ', 'a|', 'case a in ']
)
def test_nesting_without_end_is_asked_about(piece):
    explanation = judge(*unasked('a')).explain(piece * 1500)

    assert explanation.decision == 'ask'


def test_a_command_that_is_nested_deeper_than_the_limit_is_not_read():
    parsed = parse('$(' * 40 + 'ls' + ')' * 40)

    assert (parsed.root, parsed.problem) == (None, 'the command is nested too deeply')


def test_a_blocked_program_stays_blocked_where_the_text_is_not_parsed():
    assert decision('rm ' + 'a' * MAX_BYTES, *blocked('rm')) == 'block'
    assert decision('rm a\r', *blocked('rm')) == 'block'


@pytest.mark.parametrize('library', ['tree_sitter', 'tree_sitter_bash'])
def test_a_missing_library_names_the_extra(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtraError, match=r'tool_approval\[shell\]'):
        parse('ls')


@pytest.mark.parametrize(
    'script', [' ' * 1_900 + 'X', ' ' * 7_900 + 'X', 'p;' * 900 + 'X', '1' * 1_900 + 'X', '{' * 1_900 + 'X']
)
def test_a_script_of_sed_that_leads_nowhere_takes_no_time(script):
    """Attack: as one expression, 3,000 blanks took longer than a minute."""
    judging = judge(*unasked('sed -n'))
    begin = time.thread_time()

    explanation = judging.explain(f"sed -n '{script}' f")

    assert explanation.decision == 'ask'
    assert time.thread_time() - begin < 1
