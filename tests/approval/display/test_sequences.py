"""Invisible characters where writing has them, and elsewhere."""

import pytest
from tool_approval.display import warnings_of
from tool_approval.display.escape import without_ordinary

from tests.tables import table
from tool_approval import ApprovalPresentation, ApprovalRequest

MARK = '\ufeff'


def of_file(text):
    presented = ApprovalPresentation.of('file_content', text, path='a')
    return warnings_of(ApprovalRequest(tool_name='t', args={'path': 'a', 'content': text}, presentation=presented))


@pytest.mark.parametrize(
    ('text', 'rest'),
    [
        ('\u267b\ufe0f', '\u267b'),
        ('\U0001f469\u200d\U0001f4bb', '\U0001f469\U0001f4bb'),
        ('\U0001f469\U0001f3fd\u200d\u2764\ufe0f\u200d\U0001f468', '\U0001f469\U0001f3fd\u2764\U0001f468'),
        ('1\ufe0f\u20e3', '1'),
        ('\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7', ''),
        ('\u2139\ufe0f', ''),
        ('\u2194\ufe0f', '\u2194'),
        ('\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645', '\u0645\u06cc\u062e\u0648\u0627\u0647\u0645'),
        ('\u0915\u094d\u200d\u0937', '\u0915\u094d\u0937'),
        ('\u0d9a\u0dca\u200d\u0dbb', '\u0d9a\u0dca\u0dbb'),
        ('plain', 'plain'),
    ],
)
def test_what_belongs_to_emoji_and_words_is_left_out(text, rest):
    assert without_ordinary(text) == rest
    assert not [told for told in warnings_of(ApprovalRequest(tool_name='t', args={'x': text})) if 'right' not in told]


@table(
    'text',
    [
        'a\u200db',
        'a\ufe0f',
        '\u200d\U0001f469',
        '\U0001f469\u200d',
        '\U0001f469\u200d\u200d\U0001f4bb',
        '\u2764\ufe0f\ufe0f',
        'a\u200d\U0001f469',
        '\U0001f1e9',
        '\U0001f1e9\U0001f1ea\U0001f1eb',
        '1\ufe0f',
        'r\u20e3',
        '\u06cc\u200d\u062e',
        '\u062f\u200c\u062e',
        '\u06cc\u200c',
        '\u06cc\u200c\u200c\u062e',
        '\u06cc\u200ca',
        '\u0915\u200c\u0937',
        '\u0915\u094d\u200d\u0a15',
        '\u0915\u094d\u200d',
    ],
)
def test_marks_and_invisible_characters_outside_of_words_are_named(text):
    found = warnings_of(ApprovalRequest(tool_name='t', args={'x': text}))

    assert found[0].startswith(('invisible', 'marks'))


@pytest.mark.parametrize('text', ['x\u2139\ufe0fd', 'e\u2139\ufe0f', '\u276f\ufe0f x'])
def test_an_emoji_that_is_drawn_as_a_letter_or_sign_is_named_where_it_is_joined(text):
    assert any('look-alikes' in told for told in warnings_of(ApprovalRequest(tool_name='t', args={'x': text})))


def test_line_ends_of_windows_and_a_byte_order_mark_are_said_calmly() -> None:
    assert of_file('a\r\nb\r\n') == ['Windows line ends: 2 lines end with U+000D CARRIAGE RETURN']
    assert of_file('a\r\nb') == ['Windows line ends: 1 line ends with U+000D CARRIAGE RETURN']
    assert of_file(f'{MARK}a\n') == ['a byte order mark at the beginning: U+FEFF']


@pytest.mark.parametrize('text', ['a\rb\n', 'a\r\r\nb', 'a\n\r', f'a{MARK}b', f'{MARK}{MARK}a'])
def test_elsewhere_both_are_named_as_what_they_are(text):
    assert of_file(text)[0].startswith(('control', 'invisible'))


@pytest.mark.parametrize('text', ['rm a\r\nls', f'{MARK}ls'])
def test_in_a_command_both_are_part_of_a_word(text):
    found = warnings_of(ApprovalRequest(tool_name='t', args={'command': text}))

    assert found[0].startswith(('control', 'invisible'))


def test_one_line_file_is_not_judged_as_a_command() -> None:
    assert of_file('It\u2019s\u2014\u201c\u3001\u201d\n') == []
    assert 'EN DASH' in of_file('rm \u2013rf')[0]
    assert 'EN DASH' in of_file('#!/bin/sh a\u2013b')[0]
    assert 'U+0430' in of_file('curl https://\u0430\u0440\u0440\u04cf\u0435.com')[0]
