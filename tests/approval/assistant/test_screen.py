"""Text reaches the screen in order, broken and styled."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.assistant.screen import NARROWEST, UNLIMITED, Screen, StreamWrapper

from .shown import Memory, shown_screen


def test_text_written_during_an_open_question_follows_it():
    screen = shown_screen()

    with screen.held():
        screen.write('later\n')
        screen.write_now('Question? ')
        screen.write_now('y\n')

    assert screen.shown == 'Question? y\nlater\n'


def test_progress_line_is_replaced_by_the_next_text():
    screen = shown_screen(is_terminal=True)

    screen.pass_by('act 1 s')
    screen.pass_by('act 2 s')
    screen.write('acted\n')

    assert screen.shown == 'act 1 s\r\x1b[Kact 2 s\r\x1b[Kacted\n'


def test_progress_line_is_erased_before_a_question():
    screen = shown_screen(is_terminal=True)
    screen.pass_by('act 1 s')

    with screen.held():
        screen.pass_by('act 2 s')

        assert screen.shown == 'act 1 s\r\x1b[K'


@pytest.mark.parametrize(
    ('options', 'before'), [({}, ''), ({'is_terminal': True, 'term': 'dumb'}, ''), ({}, 'half a li')]
)
def test_progress_line_is_shown_only_in_a_terminal_at_the_start_of_a_line(options, before):
    screen = shown_screen(**{'is_terminal': True, **options} if before else options)
    screen.write(before)

    screen.pass_by('act 1 s')

    assert screen.shown == before


def test_line_is_cut_to_the_width_of_the_terminal():
    screen = shown_screen(columns=20, is_terminal=True)

    assert screen.cut('short') == 'short'
    assert screen.cut('a much longer line than that') == 'a much longer...'


def test_lines_of_the_program_are_broken_between_words():
    screen = shown_screen(columns=20)

    screen.say('A folder has three old logs.')

    assert screen.shown == 'A folder has three\nold logs.\n'


@pytest.mark.parametrize(('size', 'columns'), [((80, 24), 79), ((0, 0), 79), ((7, 3), NARROWEST), (None, 79)])
def test_width_follows_the_terminal(monkeypatch, size, columns):
    def told(fd):
        if size is None:
            raise OSError
        return os.terminal_size(size)

    monkeypatch.setattr(os, 'get_terminal_size', told)
    stream = Memory(is_terminal=True)
    monkeypatch.setattr(stream, 'fileno', lambda: 1, raising=False)

    assert Screen(stream).columns == columns


def test_lines_in_a_file_are_not_broken():
    assert shown_screen().columns == UNLIMITED


def wrapped(text, *, columns=40, piece=7, is_terminal=True, **environment):
    """Return how a model's text that comes in pieces is shown."""
    screen = shown_screen(columns=columns, is_terminal=is_terminal, **environment)
    wrapper = StreamWrapper(screen)
    for start in range(0, len(text), piece):
        wrapper.add(text[start : start + piece])
    wrapper.end()
    return screen.shown


DIM_PY = '\x1b[2m```py\x1b[0m'


def bold(text):
    return ''.join(f'\x1b[1m{word}\x1b[0m' for word in re.findall(' ?[^ ]+', text))


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('# A heading\nand text', f'● {bold("# A heading")}\n  and text\n'),
        ('#!/bin/sh #1 ####### no', '● #!/bin/sh #1 ####### no\n'),
        ('a **strong word** and', f'● a{bold(" **strong word**")} and\n'),
        ('**one\ntwo', f'● {bold("**one")}\n  two\n'),
        ('2**10 **/*.py `**x` a ** b', '● 2**10 **/*.py `**x` a ** b\n'),
        ('__init__.py *.o|*.a <b> &#8203;', '● __init__.py *.o|*.a <b> &#8203;\n'),
        ('```py\n# no **x**\n```\n# one', f'● {DIM_PY}\n  # no **x**\n  \x1b[2m```\x1b[0m\n  {bold("# one")}\n'),
        ('~~~\n```\n~~~\n- a', '● \x1b[2m~~~\x1b[0m\n  ```\n  \x1b[2m~~~\x1b[0m\n  - a\n'),
    ],
)  # fmt: skip
def test_markdown_is_shown_with_its_signs(text, shown):
    assert wrapped(text) == shown


def test_rows_of_a_list_item_are_aligned():
    assert wrapped('- one two three four five\n  10. six seven eight nine\nten eleven twelve thirteen', columns=24) == (
        '● - one two three four\n    five\n    10. six seven eight\n        nine\n  ten eleven twelve\n  thirteen\n'
    )


@pytest.mark.parametrize('options', [{'is_terminal': False}, {'term': 'dumb'}, {'NO_COLOR': '1'}])
def test_output_without_a_capable_terminal_has_no_styles(options):
    assert '\x1b' not in wrapped('# A heading\n**strong**\n```\n```', **options)


@given(st.text('#*`~- \n1.a\x1bé\u202e'), st.integers(20, 40), st.integers(1, 9))
def test_styles_change_no_word_and_no_row(text, columns, piece):
    shown = wrapped(text, columns=columns, piece=piece)

    plain = re.sub(r'\x1b\[[012]m', '', shown)
    assert plain == wrapped(text, columns=columns, piece=piece, NO_COLOR='1')
    assert all(row[:2] in ('● ', '  ', '') for row in plain.split('\n'))
    assert '\x1b' not in plain
