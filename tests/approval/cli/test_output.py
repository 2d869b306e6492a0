"""Nothing that comes from outside draws on the terminal."""

import io
import json
import sys
import unicodedata

import pytest
from tool_approval.cli.output import Output, pressed_key, shown
from tool_approval.ui.terminal.keyboard import Keyboard
from tool_approval.ui.terminal.tty import Terminal

from tests.approval.ui.terminal.person import Person

HOSTILE = {
    'escape': '\x1b[2J\x1b[1;1Hallow',
    'line': 'a\nallow: everything is fine\r',
    'bidi': 'a\u202eb\u2066c',
    'zero width': 'a\u200bb\ufeff',
    'tags': 'a\U000e0041',
    'surrogate': 'a\udc80',
    'c1': 'a\x9b31m',
    'del': 'a\x7f',
    'separator': 'a\u2028b',
}
each_hostile = pytest.mark.parametrize('text', HOSTILE.values(), ids=HOSTILE)


def is_harmless(printed):
    return all(char == '\n' or unicodedata.category(char)[0] != 'C' for char in printed) and '\u2028' not in printed


@each_hostile
def test_shown_text_is_one_line_without_invisible_characters(text):
    line = shown(text, None)

    assert is_harmless(line)
    assert '\n' not in line


@each_hostile
def test_json_is_printable_ascii_and_means_the_same(text):
    stream = io.StringIO()

    Output(stream, stream).json({'text': text})

    printed = stream.getvalue()
    assert printed.rstrip('\n').isascii()
    assert is_harmless(printed)
    assert json.loads(printed) == {'text': text}


@each_hostile
@pytest.mark.parametrize(
    'words',
    [
        ['explain', 'TEXT'],
        ['explain', 'shell', 'TEXT'],
        ['explain', 'read_file', 'TEXT'],
        ['explain', 'read_file', 'TEXT', '--json'],
        ['explain', 'x', 'TEXT'],
        ['explain', 'x', '--cwd', 'TEXT'],
        ['explain', 'x', '--config', 'TEXT'],
        ['explain', '--batch', 'TEXT'],
        ['explain', 'x', '--TEXT'],
        ['TEXT'],
        ['check', 'TEXT'],
        ['trust', 'TEXT', '--revoke'],
        ['memory', 'TEXT'],
        ['memory', 'forget', 'TEXT TEXT TEXT'],
        ['memory', 'list', '--store', 'TEXT'],
        ['audit', 'show', 'TEXT'],
        ['audit', 'verify', 'TEXT', '--key', 'TEXT'],
        ['explain', 'x', '--debug', '--cwd', 'TEXT'],
    ],
    ids=' '.join,
)
def test_arguments_print_no_control_characters(tool_approval, words, text):
    finished = tool_approval(*(word.replace('TEXT', text) for word in words))

    assert is_harmless(finished.out + finished.err)


def test_settings_print_no_control_characters(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'tools:\n  "a\\e[31m\\u202E": {approval: none, description: "\\e[2J"}\n'
        'shell: {rules: [{pattern: "café", approval: false}, {pattern: "café x", allowed: false}]}\n'
        'auto_grant: {"\\u200B": ["\\e]0;x\\a"]}\n'
    )

    printed = ''
    for words in (['check'], ['check', '--json'], ['trust', '--yes'], ['explain', 'a\x1b[31m\u202e']):
        finished = tool_approval(*words)
        printed += finished.out + finished.err

    assert is_harmless(printed)
    assert '<U+001B>' in printed
    assert 'café' in printed


def test_letters_that_the_encoding_lacks_are_escaped():
    utf8, ascii_only = (io.TextIOWrapper(io.BytesIO(), encoding) for encoding in ('utf-8', 'ascii'))

    assert shown('café', utf8) == 'café'
    assert shown('café', ascii_only) == 'caf<U+00E9>'


def test_closed_streams_are_not_written_to(monkeypatch):
    monkeypatch.setattr(sys, 'stdout', None)
    monkeypatch.setattr(sys, 'stderr', None)
    output = Output()

    output.line('x')
    output.note('x')
    output.json({})
    output.flush()


@pytest.mark.parametrize(
    ('keys', 'key'), [('y', 'y'), ('n', 'n'), ('\r', 'enter'), ('\x1b', 'escape'), ('\x03', KeyboardInterrupt)]
)
def test_one_key_answers_a_question(keys, key, monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    with Person([('Sure? ', keys)]) as person:
        if key is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                pressed_key('Sure? ', device=person.device)
        else:
            assert pressed_key('Sure? ', device=person.device) == key
        person.assert_done()


def test_closed_or_missing_terminal_gives_no_key(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    with Person([('Sure? ', Person.hang_up)]) as person:
        assert pressed_key('Sure? ', device=person.device) is None

    assert pressed_key('Sure? ', device='/dev/null') is None
    assert pressed_key('Sure? ', device='/nowhere') is None


def test_a_paste_rings_the_bell_and_answers_nothing(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    presses = iter([None, 'paste', 'n'])
    monkeypatch.setattr(Keyboard, 'press', lambda self: next(presses))
    rung = []
    monkeypatch.setattr(Terminal, 'control', lambda self, text: rung.append(text))

    with Person([]) as person:
        assert pressed_key('Sure? ', device=person.device) == 'n'

    assert '\a' in rung
