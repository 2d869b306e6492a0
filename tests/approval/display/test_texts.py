"""Texts with unusual characters: of which an approver is warned.

The fields of a group in `texts.toml`, beside `title` and `reason`:

- `argument`: the name of the argument that the text stands in, else `x`, and `description`, of the request
- `presented`: the type of a presentation that shows the text, a `command` or the content of a file
- `prose`: whether the text counts as a sentence
- `quiet`: texts without any warning, and `ordinary`: texts without a warning of look-alikes
- `look_alikes`, `invisible_or_marks`, `control_or_invisible`: texts whose first warning is of this kind
- `warned`: texts with a warning somewhere

A table of texts gives what the warning of each says.
"""

import tomllib
import unicodedata
from pathlib import Path

from tool_approval.display import warnings_of
from tool_approval.display.lookalikes import is_sign, is_typography
from tool_approval.display.texts import is_prose

from tests.tables import table
from tool_approval import ApprovalPresentation, ApprovalRequest

DATA = tomllib.loads(Path(__file__).with_name('texts.toml').read_text())
KINDS = {
    'look_alikes': ('look-alikes',),
    'invisible_or_marks': ('invisible', 'marks'),
    'control_or_invisible': ('control', 'invisible'),
}
SETTINGS = {'title', 'reason', 'argument', 'description', 'presented', 'prose'}


def rows():
    """The texts, each with the settings of its group, what is expected of it, and what its warning says."""
    for group in DATA['group']:
        settings = {name: value for name, value in group.items() if name in SETTINGS}
        for expected in group.keys() - SETTINGS:
            texts = group[expected]
            for text in texts:
                yield settings, expected, text, texts[text] if isinstance(texts, dict) else ''


def request(group, text):
    args = {'path': 'a', 'content': text} if 'presented' in group else {group.get('argument', 'x'): text}
    fields = {'description': group['description']} if 'description' in group else {}
    match group.get('presented'):
        case 'command':
            args = {'command': text}
            fields['presentation'] = ApprovalPresentation(type='command', content=text)
        case 'file_content':
            fields['presentation'] = ApprovalPresentation.of('file_content', text, path='a')
    return ApprovalRequest(tool_name='t', args=args, **fields)


@table(('group', 'expected', 'text', 'says'), rows())
def test_an_approver_is_warned_as_the_group_says(group, expected, text, says):
    found = warnings_of(request(group, text))
    look_alikes = [warning for warning in found if 'look' in warning]

    if 'prose' in group:
        assert is_prose(text) == group['prose']
    if expected == 'quiet':
        assert found == []
    elif expected == 'ordinary':
        assert look_alikes == []
    elif expected == 'warned':
        assert any(says in warning for warning in found)
    else:
        assert found[0].startswith(KINDS[expected])
        assert says in ' '.join(look_alikes)


@table(('sign', 'others'), DATA['signs'].items())
def test_a_character_with_the_shape_of_a_sign_is_named(sign, others):
    for other in others:
        found = warnings_of(ApprovalRequest(tool_name='t', args={'x': f'rm {other}rf'}, description='d'))
        named = ' '.join(warning for warning in found if warning.startswith('look-alikes'))

        assert f'U+{ord(other):04X} ' in named, f'{unicodedata.name(other)}, which looks like {sign}'


def test_signs_are_beyond_ascii_and_some_are_typography():
    signs = [char for char in map(chr, range(0x80, 0x3100)) if is_sign(char)]

    assert 300 < len(signs) < 500
    assert [char for char in signs if is_typography(char)] != []
    assert not is_typography('\u2215')


@table(
    ('text', 'is_named'),
    [('x = \u03b1\u00b7\u03b2\n\u03b3 = 1', False), ('\u03b1dmin = 1\nx', True), ('\u03bf = 1\nx', True)],
)
def test_a_greek_letter_alone_is_ordinary_in_what_people_read(text, is_named):
    found = warnings_of(ApprovalRequest(tool_name='t', args={'text': text}))

    assert any(warning.startswith('look-alikes') for warning in found) == is_named
