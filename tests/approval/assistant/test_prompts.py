"""What a person types, turn by turn."""

import builtins
import os
import sys
import termios

import pytest
from tool_approval.assistant.prompts import ask_for_prompts, pasted_lines

from tests.approval.ui.terminal.person import Person


@pytest.fixture
def typed(monkeypatch):
    def prepare(*lines):
        waiting = iter(lines)

        def answer(prompt):
            line = next(waiting)
            if isinstance(line, type):
                raise line
            return line

        monkeypatch.setattr(builtins, 'input', answer)

    return prepare


def test_empty_lines_are_left_out_and_the_end_of_input_ends(typed):
    typed('one', '', '   ', ' two ', EOFError)

    assert list(ask_for_prompts('/dev/null')) == ['one', 'two']


def test_a_backslash_goes_on_in_the_next_line(typed):
    typed('one\\', 'two\\', 'three', EOFError)

    assert list(ask_for_prompts('/dev/null')) == ['one\ntwo\nthree']


def test_an_interrupt_drops_the_line_and_two_leave(typed, capsys):
    typed('one', KeyboardInterrupt, 'two', KeyboardInterrupt, KeyboardInterrupt)

    assert list(ask_for_prompts('/dev/null')) == ['one', 'two']
    assert capsys.readouterr().out.count('Ctrl-C once more leaves') == 2


def test_it_works_without_readline(typed, monkeypatch):
    monkeypatch.setitem(sys.modules, 'readline', None)
    typed('one', EOFError)

    assert list(ask_for_prompts('/dev/null')) == ['one']


def lines_after(waiting, *steps):
    """The lines of a terminal on which `waiting` was typed already."""
    with Person(steps) as person:
        raw = termios.tcgetattr(person.slave)
        raw[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG)
        termios.tcsetattr(person.slave, termios.TCSANOW, raw)
        person.before = termios.tcgetattr(person.slave)
        os.write(person.master, waiting)
        lines = pasted_lines(person.device)
        person.assert_done()
    return lines


@pytest.fixture
def _terminal(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')


@pytest.mark.usefixtures('_terminal')
@pytest.mark.parametrize(
    ('waiting', 'lines'),
    [
        (b'', []),
        (b'two\r', ['two']),
        (b'two\r\rthree\r', ['two', '', 'three']),
        (b'\x1b[200~two\rthree\r\x1b[201~', ['two', 'three']),
        (b'a\x1b[Cb\r', ['ab']),
    ],
)
def test_what_follows_a_line_at_once_belongs_to_it(waiting, lines):
    assert lines_after(waiting) == lines


@pytest.mark.usefixtures('_terminal')
@pytest.mark.parametrize(('key', 'last'), [('\r', 'three'), ('\x1b', '')])
def test_the_last_line_waits_for_the_person_where_it_has_no_end(key, last):
    assert lines_after(b'two\rthree', ('  three', key)) == ['two', last]


@pytest.mark.usefixtures('_terminal')
def test_ctrl_c_within_a_paste_drops_it():
    with pytest.raises(KeyboardInterrupt):
        lines_after(b'two\r\x03')


@pytest.mark.usefixtures('_terminal')
def test_a_terminal_that_goes_away_drops_it(typed, capsys):
    typed('one', EOFError)

    with Person([('  two', Person.hang_up)]) as person:
        os.write(person.master, b'two')
        assert list(ask_for_prompts(person.device)) == []
