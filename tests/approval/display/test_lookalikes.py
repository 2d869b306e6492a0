"""Which characters pass for others, and which are ordinary where they stand."""

import unicodedata

import pytest
from tool_approval.display import warnings_of
from tool_approval.display.lookalikes import is_sign, is_typography

from tests.tables import table
from tool_approval import ApprovalRequest


def named(text: str) -> str:
    found = warnings_of(ApprovalRequest(tool_name='t', args={'x': text}, description='d'))
    return ' '.join(told for told in found if told.startswith('look-alikes'))


@table(
    'signs',
    [
        '/\u2044\u2215\u29f8\u2571',
        '\\\u2216\u29f5\u29f9\u2572',
        ':\u2236\ua789\u02d0\u0589\u05c3\u0703\ufe30\u1804\ua6f4',
        ';\u037e\u061b\u204f\u2e35\ua6f6',
        '-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u02d7\u2043\u2796\u1806\u058a\u2e40\u2500\u23af\ufe58',
        '|\u2223\u01c0\u2502\u2503\u05c0\u0964\u23d0\u2758\u00a6\u2016\ufe31',
        '.\u2024\u00b7\u2027\u2219\u22c5\u3002\u0701\u06d4\u166e\ua4ff\u2cf9',
        ',\u201a\u060c\u066b\u3001\u1363\ua4fe\u2e32',
        "'\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4\u02ca\ua78c\u055a\u05f3",
        '"\u201c\u201d\u201e\u2033\u02ba\u02dd\u05f4\u301d',
        '`\u02cb\u02f4',
        '*\u2217\u204e\u066d\u2731',
        '~\u02dc\u223c\u2053\u2e2f',
        '^\u02c4\u02c6',
        '<\u2039\u276e\u02c2\u27e8\u3008',
        '>\u203a\u276f\u02c3\u27e9\u3009',
        '!\u01c3\u2d51\u203c\u2762',
        '?\u0294\ua6f7\u2047',
        '=\ua78a\u2a74\u2550',
        '()\u2768\u2769\u27ee\ufd3e',
        '%\u066a\u2052\u0609',
        '&\ua778\u214b',
        '_\u2017\ufe4d',
        '$\uff04\ufe69',
        '#\ufe5f\uff03',
    ],
)
def test_what_has_the_shape_of_a_sign_is_named(signs: str) -> None:
    for sign in signs:
        assert sign.isascii() or f'U+{ord(sign):04X} ' in named(f'rm {sign}rf'), unicodedata.name(sign)


@pytest.mark.parametrize('sign', '\u2022\u2192\u00b1\u00a1\u00bf\u00ab\u2264\u2713\U0001f36b\u2122\u20ac\u2116')
def test_signs_that_look_like_nothing_else_are_none(sign: str) -> None:
    assert named(f'a {sign} b') == ''


def test_signs_are_beyond_ascii_and_some_are_typography() -> None:
    signs = [char for char in map(chr, range(0x80, 0x3100)) if is_sign(char)]

    assert 300 < len(signs) < 500
    assert [char for char in signs if is_typography(char)] != []
    assert not is_typography('\u2215')


@table(
    ('text', 'name'),
    [
        ('\u144ende', 'CANADIAN SYLLABICS TI'),
        ('\u1455\u15e9\u1455', 'CANADIAN SYLLABICS TA'),
        ('port 8\u066080', 'ARABIC-INDIC DIGIT ZERO'),
        ('\u06f1', 'EXTENDED ARABIC-INDIC DIGIT ONE'),
        ('file1\u09ea', 'BENGALI DIGIT FOUR'),
        ('\U0001d7cf\U0001d7d0', 'MATHEMATICAL BOLD DIGIT ONE'),
        ('\U0001d42bm', 'MATHEMATICAL BOLD SMALL R'),
        ('\U0001d6a8pt', 'MATHEMATICAL BOLD CAPITAL ALPHA'),
        ('\uff52\uff4d', 'FULLWIDTH LATIN SMALL LETTER R'),
        ('a\uff1bb', 'FULLWIDTH SEMICOLON'),
        ('con\ufb01g', 'LATIN SMALL LIGATURE FI'),
        ('\u2025/etc', 'TWO DOT LEADER'),
        ('\u2173', 'SMALL ROMAN NUMERAL FOUR'),
        ('g\u101d\u101dgle', 'MYANMAR LETTER WA'),
        ('goog\u101d', 'MYANMAR LETTER WA'),
        ('\u05d0pple', 'HEBREW LETTER ALEF'),
        ('a \u4e28 sh', 'CJK UNIFIED IDEOGRAPH-4E28'),
        ('rm \u4e00rf', 'CJK UNIFIED IDEOGRAPH-4E00'),
        ('a\u30ceb', 'KATAKANA LETTER NO'),
        ('g\u3147\u3147gle', 'HANGUL LETTER IEUNG'),
        ('example\u3002com', 'IDEOGRAPHIC FULL STOP'),
        ('/home/\u0430\u0440\u0440 \u0436', 'CYRILLIC SMALL LETTER A'),
        ('\u0261\u0251', 'LATIN SMALL LETTER SCRIPT G'),
        ('\u017fudo', 'LATIN SMALL LETTER LONG S'),
    ],
)
def test_letters_and_digits_with_other_shapes_are_named(text: str, name: str) -> None:
    assert name in named(text)


@pytest.mark.parametrize(
    'text',
    [
        '\u1403\u14c4\u1483\u144e\u1450\u1466',
        '\u0645\u0644\u0641\u0663.txt',
        '\u7b2c\u4e00\u7ae0.txt',
        'Web\u30cb\u30e5\u30fc\u30b9',
        '\u4eba\u53e3 A4',
        'API\ub97c',
        '\u0e01\u0e32\u0e23PDF',
        '3 \u00b5m',
        '\u03b1/\u03b2',
        'x\u00b2',
        '2\u00aa',
        '\u0939\u093f\u0928\u094d\u0926\u0940.txt',
        '\u0966\u0939',
    ],
)
def test_words_of_other_scripts_are_ordinary(text: str) -> None:
    assert named(text) == ''
