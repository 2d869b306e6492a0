from types import SimpleNamespace

import pytest
from tool_approval.tools.shell.grammar import is_plain_heredoc, parse

from .parts import OPEN, decision, judge, unasked


def test_a_document_without_its_parts_is_not_plain():
    assert not is_plain_heredoc(SimpleNamespace(children=[]), parse('cat <<E'))


@pytest.mark.parametrize('command', ['cat <<E\na\n E', 'cat <<E\na', 'cat <<-E\na\n E'])
def test_a_document_that_nothing_ends_is_asked_about(command):
    assert decision(command, default=OPEN) == 'ask'


def test_an_expansion_that_the_grammar_did_not_see_is_asked_about():
    command = 'cat <<E\n$x $(ls) $2>y:-$(ls)} $[1]\nE'

    explanation = judge(*unasked('cat', 'ls')).explain(command)

    assert explanation.decision == 'ask'
    assert any('here-document' in part.reason for part in explanation.parts)


@pytest.mark.parametrize(
    'command',
    ['cat - <<E\na\nE', "cat - <<'E'\na\nE", 'cat -n  -\t<<-E\na\nE', 'cat - - <<E\na\nE',
        "cat <<'EOF-1'\n$(rm)\nEOF-1", 'cat <<"a.b"\na\na.b']
)  # fmt: skip
def test_a_document_behind_a_dash_or_with_a_name_in_quotes_is_plain(command):
    assert decision(command, *unasked('cat')) == 'allow'


@pytest.mark.parametrize('command', ['cat -<<E\na\nE', 'cat -\\\n- <<E\na\nE', 'cat <<a-b\na\na-b'])
def test_where_the_grammar_loses_more_than_one_dash_it_is_asked(command):
    assert decision(command, default=OPEN) == 'ask'


def test_the_dash_is_a_word_of_the_command():
    assert decision('rm - <<E\na\nE', {'pattern': 'rm -', 'allowed': False}, default=OPEN) == 'block'


@pytest.mark.parametrize(
    'command',
    ['cat <<A\na\nA\ncat <<B\nb\nB', 'cat <<A\na\nA\ncat <<A\nb\nA\nls', 'echo "$(cat <<A\na\nA\n)" <<B\nb\nB',
        '{ cat <<A\na\nA\ncat <<B\nb\nB\n}'],
)  # fmt: skip
def test_one_document_may_follow_another(command):
    assert decision(command, *unasked('cat', 'echo', 'ls')) == 'allow'


@pytest.mark.parametrize(
    'command',
    ['cat <<A <<B\na\nA\nb\nB', 'cat <<A; cat <<B\na\nA\nb\nB', 'cat <<A\n$(cat <<B\nb\nB\n)\nA',
        'cat <<A |\ncat <<B\na\nA\nb\nB',
     "cat <<'A'\ncat <<B\nA\ntouch x\nB", 'cat <<A\na\nA\ntouch <<B\nb\nB', 'cat <<A && cat <<B\na\nA\nb\nB'],
)  # fmt: skip
def test_documents_in_one_another_or_in_one_line_are_asked_about(command):
    assert decision(command, *unasked('cat')) == 'ask'
