import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.ui.slack.mrkdwn import LONGEST_SECTION, code, cut, plain, sections

from .slack_server import utf16

TEXTS = st.text(st.sampled_from('`<>&@#!*_~|: ab\\\u200bU+\U0001f600'), max_size=300)


def unfenced(text):
    """What is left of a text in Slack's markup without its blocks of code; a fence ends where the next one stands."""
    parts = text.split('```')
    assert len(parts) % 2 == 1, 'a fence is open'
    return ''.join(parts[::2])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.just(False), TEXTS), max_size=8))
def test_nothing_quoted_leaves_its_fence(lines):
    for text in sections(lines):
        assert unfenced(text).strip('\n') == ''
        assert not re.search('[<>]', text)
        assert not re.search('&(?!(amp|lt|gt);)', text)
        assert utf16(text) <= LONGEST_SECTION


@settings(deadline=None, max_examples=50)
@given(TEXTS)
def test_code_around_a_name_cannot_be_closed_by_the_name(name):
    told = code(name)

    assert (told[0], told[-1]) == ('`', '`')
    assert '`' not in told[1:-1]
    assert not re.search('[<>\n]', told)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.text(st.characters(min_codepoint=32, max_codepoint=0x1F600)))))
def test_sections_keep_all_text(lines):
    lines = [(is_ours, line.replace('`', "'")) for is_ours, line in lines]
    told = '\n'.join(sections(lines)).replace('```\n', '').replace('\n```', '').replace('\n… ', '')

    assert told.replace('\n', '') == plain(''.join(line for _, line in lines)).replace('\n', '')


def test_long_text_is_split_into_sections_but_never_within_an_entity():
    texts = sections([(False, '<' * 5000), (True, 'ours')])

    assert len(texts) == 8
    assert ''.join(texts).count('&lt;') == 5000
    assert texts[-1].endswith('```\nours')
    assert all(utf16(text) <= LONGEST_SECTION for text in texts)


def test_characters_beyond_16_bits_count_twice():
    assert all(utf16(text) <= LONGEST_SECTION for text in sections([(False, '\U0001f600' * 9000)]))


def test_cut_text_keeps_its_end():
    texts, is_all = cut(['1', '2', '3', '4', '5'], 3)

    assert texts == ['1', '2', '_[... 2 more parts not shown here; press View full request]_', '5']
    assert not is_all
    assert cut(['1', '2'], 1)[0] == ['_[... 1 more part not shown here; press View full request]_', '2']
    assert cut(['1', '2'], 2) == (['1', '2'], True)


@pytest.mark.parametrize(
    ('name', 'told'),
    [
        ('', '`(empty)`'),
        ('a b ', '`a b&lt;U+0020&gt;`'),
        ('<@U1>', '`&lt;@U1&gt;`'),
        ('a`b', '`a&lt;U+0060&gt;b`'),
        ('x' * 101, f'`{"x" * 100}...`'),
    ],
)
def test_names_are_written_as_code(name, told):
    assert code(name) == told
