import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.display import DisplayLine
from tool_approval.display.fenced import cut, drawn, inline_code, sections

TEXTS = st.text(st.sampled_from('`<>&@#!*_~|: ab\\\u200bU+\U0001f600'), max_size=300)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.just(False), TEXTS), max_size=8))
def test_nothing_quoted_leaves_its_fence(lines):
    for text in sections(lines, room=500):
        parts = text.split('```')
        assert len(parts) % 2 == 1, 'a fence is open'
        assert not ''.join(parts[::2]).strip('\n')


@settings(deadline=None, max_examples=50)
@given(TEXTS)
def test_inline_code_cannot_be_closed_by_its_text(text):
    told = inline_code(text)

    assert (told[0], told[-1]) == ('`', '`')
    assert not re.search('[`\n]', told[1:-1])


def test_lines_of_each_kind_have_the_escapes_of_their_kind():
    assert sections([(True, 'a*'), (False, 'a*')], room=100, ours={'*': '\\*'}) == ['a\\*\n```\na*\n```']
    assert sections([(False, '<')], room=100, quoted={'<': '&lt;'}) == ['```\n&lt;\n```']


def test_a_long_line_is_split_but_never_within_an_escape():
    texts = sections([(True, '*' * 700)], room=1000, ours={'*': '\\*'})

    assert ''.join(texts).replace('… ', '') == '\\*' * 700
    assert [len(text) for text in texts] == [900, 502]


def test_cut_text_says_what_is_missing_and_keeps_its_end():
    assert cut(['1', '2', '3', '4'], 3, '{} left out') == (['1', '2', '1 more part left out', '4'], False)
    assert cut(['1', '2', '3', '4'], 2, '{} left out') == (['1', '2 more parts left out', '4'], False)
    assert cut(['1'], 1, '{}') == (['1'], True)


def test_quoted_lines_have_a_sign_and_own_lines_do_not():
    kinds = ['command', 'added', 'removed', 'hunk', 'text', 'meta']
    lines = [DisplayLine(kind=kind, text='x') for kind in kinds]

    assert list(drawn([*lines, DisplayLine(kind='command', text='y', is_first=False)])) == [
        (False, '$ x'),
        (False, '+ x'),
        (False, '- x'),
        (False, '@ x'),
        (False, '| x'),
        (True, 'x'),
        (False, '> y'),
    ]
