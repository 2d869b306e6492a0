"""Invisible characters where writing has them, and elsewhere."""

import pytest
from tool_approval.display import warnings_of
from tool_approval.display.escape import without_ordinary

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
def test_invisible_parts_of_emoji_and_words_are_left_out(text, rest):
    assert without_ordinary(text) == rest
    assert not [told for told in warnings_of(ApprovalRequest(tool_name='t', args={'x': text})) if 'right' not in told]


def test_line_ends_of_windows_and_a_byte_order_mark_are_said_calmly() -> None:
    assert of_file('a\r\nb\r\n') == ['Windows line ends: 2 lines end with U+000D CARRIAGE RETURN']
    assert of_file('a\r\nb') == ['Windows line ends: 1 line ends with U+000D CARRIAGE RETURN']
    assert of_file(f'{MARK}a\n') == ['a byte order mark at the beginning: U+FEFF']


def test_one_line_file_is_not_judged_as_a_command() -> None:
    assert of_file('It\u2019s\u2014\u201c\u3001\u201d\n') == []
    assert 'EN DASH' in of_file('rm \u2013rf')[0]
    assert 'EN DASH' in of_file('#!/bin/sh a\u2013b')[0]
    assert 'U+0430' in of_file('curl https://\u0430\u0440\u0440\u04cf\u0435.com')[0]
