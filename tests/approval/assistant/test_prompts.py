"""What a person types, turn by turn."""

import builtins
import sys

import pytest
from tool_approval.assistant.prompts import ask_for_prompts


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

    assert list(ask_for_prompts()) == ['one', 'two']


def test_a_backslash_goes_on_in_the_next_line(typed):
    typed('one\\', 'two\\', 'three', EOFError)

    assert list(ask_for_prompts()) == ['one\ntwo\nthree']


def test_an_interrupt_drops_the_line_and_two_leave(typed, capsys):
    typed('one', KeyboardInterrupt, 'two', KeyboardInterrupt, KeyboardInterrupt)

    assert list(ask_for_prompts()) == ['one', 'two']
    assert capsys.readouterr().out.count('Ctrl-C once more leaves') == 2


def test_it_works_without_readline(typed, monkeypatch):
    monkeypatch.setitem(sys.modules, 'readline', None)
    typed('one', EOFError)

    assert list(ask_for_prompts()) == ['one']
