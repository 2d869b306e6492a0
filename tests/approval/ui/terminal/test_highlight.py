"""The content of a file is easier to read with marks, and reads the same without them."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.display import DisplayLine
from tool_approval.ui.terminal import render_request
from tool_approval.ui.terminal.highlight import highlight

from tests.corpus.terminal import SGR
from tool_approval import ApprovalPresentation, ApprovalRequest

pytest.importorskip('pygments', reason='Pygments is not installed; CI installs it')

LANGUAGES = ['python', 'bash', 'c', 'html', 'json', 'markdown', 'yaml', 'no such language']


@pytest.fixture(autouse=True, scope='module')
def clock():
    """On a busy machine, even a short text may take longer than a person should wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('tool_approval.ui.terminal.highlight.monotonic', lambda: 0.0)
        yield


def shown(content, language='python', **options):
    presentation = ApprovalPresentation.of('file_content', content, language=language, path='a.py')
    request = ApprovalRequest(tool_name='write_file', args={'path': 'a.py'}, presentation=presentation)
    return render_request(request, **options)


def code(*texts):
    return [DisplayLine(kind='code', text=text, number=number) for number, text in enumerate(texts, 1)]


def marked(lines, language='python'):
    return [
        [(line.text[span.start : span.end], span.role) for span in line.marks] for line in highlight(lines, language)
    ]


def test_keywords_strings_and_comments_are_marked():
    assert marked(code('import os  # why', 'x = """a', 'b"""')) == [
        [('import', 'keyword'), ('# why', 'comment')],
        [('"""', 'literal'), ('a', 'literal')],
        [('b', 'literal'), ('"""', 'literal')],
    ]


def test_marks_are_drawn_in_colour():
    drawn = shown('return "a"  # why\n', color=True)

    assert '\x1b[1mreturn\x1b[0m' in drawn
    assert '\x1b[36m' in drawn
    assert '\x1b[3m# why\x1b[0m' in drawn


def test_hidden_characters_stay_escapes():
    assert '\x1b[1;35m<U+202E>\x1b[0m' in shown('# a\u202eb\n', color=True)


@pytest.mark.parametrize('kind', ['text', 'diff', 'structured'])
def test_other_presentations_have_no_marks(kind):
    request = ApprovalRequest(
        tool_name='t', args={}, presentation=ApprovalPresentation.of(kind, 'return 1', language='python')
    )

    assert '\x1b[1mreturn' not in render_request(request, color=True)


@settings(max_examples=60, deadline=None)
@given(content=st.text(max_size=200), language=st.sampled_from(LANGUAGES))
def test_marks_change_no_text(content, language):
    assert SGR.sub('', shown(content, language, color=True)) == shown(content, language, color=False)


def test_nothing_after_a_cut_is_marked():
    lines = [*code('"""'), DisplayLine(kind='cut', text='[9 more lines]'), *code('return')]

    assert [line.marks != () for line in highlight(lines, 'python')] == [True, False, False]


def test_long_content_is_not_read():
    lines = code('return', 'x' * 5_000)

    assert highlight(lines, 'python') is lines


def test_content_that_takes_long_to_read_is_marked_in_part(monkeypatch):
    times = iter([0.0, 0.05, 1.0])
    monkeypatch.setattr('tool_approval.ui.terminal.highlight.monotonic', lambda: next(times))

    assert marked(code('if x', 'if y')) == [[('if', 'keyword')], []]


def test_without_pygments_nothing_is_marked(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pygments.lexers', None)

    assert marked(code('return')) == [[]]
