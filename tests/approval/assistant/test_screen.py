"""What reaches the screen, and when."""

import os

import pytest
from tool_approval.assistant.screen import NARROWEST, UNLIMITED, Screen

from .shown import Memory, shown_screen


def test_what_is_written_while_a_question_is_open_comes_after_it():
    screen = shown_screen()

    with screen.held():
        screen.write('later\n')
        screen.write_now('Question? ')
        screen.write_now('y\n')

    assert screen.shown == 'Question? y\nlater\n'


def test_a_passing_line_is_replaced_by_what_comes_next():
    screen = shown_screen(is_terminal=True)

    screen.pass_by('act 1 s')
    screen.pass_by('act 2 s')
    screen.write('acted\n')

    assert screen.shown == 'act 1 s\r\x1b[Kact 2 s\r\x1b[Kacted\n'


def test_a_passing_line_is_gone_before_a_question():
    screen = shown_screen(is_terminal=True)
    screen.pass_by('act 1 s')

    with screen.held():
        screen.pass_by('act 2 s')

        assert screen.shown == 'act 1 s\r\x1b[K'


@pytest.mark.parametrize(
    ('options', 'before'), [({}, ''), ({'is_terminal': True, 'term': 'dumb'}, ''), ({}, 'half a li')]
)
def test_a_passing_line_is_shown_only_where_it_can_be_erased(options, before):
    screen = shown_screen(**{'is_terminal': True, **options} if before else options)
    screen.write(before)

    screen.pass_by('act 1 s')

    assert screen.shown == before


def test_a_line_is_cut_to_the_terminal():
    screen = shown_screen(columns=20, is_terminal=True)

    assert screen.cut('short') == 'short'
    assert screen.cut('a much longer line than that') == 'a much longer...'


def test_our_own_lines_are_broken_between_words():
    screen = shown_screen(columns=20)

    screen.say('A folder has three old logs.')

    assert screen.shown == 'A folder has three\nold logs.\n'


@pytest.mark.parametrize(('size', 'columns'), [((80, 24), 79), ((0, 0), 79), ((7, 3), NARROWEST), (None, 79)])
def test_the_width_is_that_of_the_terminal_now(monkeypatch, size, columns):
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
