"""Punctuation of East Asian texts, and the names in formulas."""

import pytest
from tool_approval.display import warnings_of

from tool_approval import ApprovalRequest


def named(text, key='command'):
    found = warnings_of(ApprovalRequest(tool_name='t', args={key: text}))
    return ' '.join(told for told in found if told.startswith('look-alikes'))


@pytest.mark.parametrize(
    'text',
    [
        'git commit -m "\u4fee\u6b63\uff08\u91cd\u8981\uff09"',
        '{"q":"\u6771\u4eac\u3001\u5927\u962a\u3002"}',
        "echo '\u300c\u5f15\u7528\u300d\u301c\u3067\u3059'",
        '\u304a\u9858\u3044\u3057\u307e\u3059\u3002',
        '\u786e\u5b9a\uff1a\u662f\uff1f\uff01',
    ],
)
def test_punctuation_among_east_asian_letters_is_ordinary(text):
    assert named(text) == ''


@pytest.mark.parametrize(
    'text',
    [
        'example\u3002com',
        'curl \u6771\u4eac\u3002com',
        'a\uff1brm',
        'ls \uff08x\uff09',
        'echo \uff07\u6771\u4eac; rm x; \u5927\u962a\uff07',
        'echo \u2018\u6771\u4eac; rm x\u2019',
        'ls \uff03\u6771\u4eac ; rm x',
        'rm \uff0d\u6771',
        '\uff0f\u6771',
        '\u6771\uff5c\u4eac',
        '\u3002',
    ],
)
def test_punctuation_next_to_unusual_characters_is_named(text):
    assert named(text) != ''


@pytest.mark.parametrize(
    'text',
    ['\u0394t = 5', '\u03c3_x = 1', 'y \u2208 \u211d', '\u211d: x', '\u2460 one', '5 \u2212 3', '\u03bb1', '(\u03a9)'],
)
def test_names_in_formulas_are_ordinary(text):
    assert named(text) == ''


@pytest.mark.parametrize(
    'text',
    [
        '\u0394\u0430t',
        'g\u03c3\u03c3gle',
        'import \u03c3s',
        '\u03b1_x',
        'p\u0394ypal.com',
        'rm -\u211d',
        '\u211dm x',
        'a/\u2460',
        '\u2460.txt',
        'rm \u2212rf',
        '5 \u2212r',
        '\u211d:80',
        'rm \u03b1',
        '\u03c3_\u0430x',
    ],
)
def test_letters_that_pass_for_others_are_named(text):
    assert named(text) != ''


def test_a_greek_letter_alone_is_ordinary_in_what_people_read():
    assert named('x = \u03b1\u00b7\u03b2\n\u03b3 = 1', 'text') == ''
    assert named('\u03b1dmin = 1\nx', 'text') != ''
    assert named('\u03bf = 1\nx', 'text') != ''
