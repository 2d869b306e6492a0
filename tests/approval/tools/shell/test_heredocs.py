from dataclasses import replace

import pytest
from tool_approval.tools.shell.grammar import Syntax, parse
from tool_approval.tools.shell.heredocs import is_plain_heredoc
from tool_approval.tools.shell.reading import Reader

from .parts import OPEN, decision, judge, unasked


def heredoc(node):
    """The first here-document of a tree."""
    return node if node.kind == 'heredoc_redirect' else next(filter(None, map(heredoc, node.children)), None)


def test_a_document_without_its_parts_is_not_plain():
    node = Syntax('heredoc_redirect', 0, 3, True)

    assert not is_plain_heredoc(node, b'<<E')


@pytest.mark.parametrize('command', ['cat <<E\na\n E', 'cat <<E\na', 'cat <<-E\na\n E'])
def test_a_document_that_nothing_ends_is_asked_about(command):
    assert decision(command, default=OPEN) == 'ask'


def test_an_expansion_that_the_grammar_did_not_see_is_asked_about():
    command = 'cat <<E\n$x $(ls) $2>y:-$(ls)} $[1]\nE'

    explanation = judge(*unasked('cat', 'ls')).explain(command)

    assert explanation.decision == 'ask'
    assert any('here-document' in part.reason for part in explanation.parts)


def test_an_operator_that_no_document_has_is_not_understood():
    parsed = parse('cat <<E\na\nE')
    node = heredoc(parsed.root)
    node.children[:] = [replace(child, kind='<<<') if child.kind == '<<' else child for child in node.children]

    assert Reader(parsed).problems == ['a here-document is not understood']
