"""A person types messages at a pseudo-terminal."""

import os
import termios

import pytest
from tool_approval.assistant.errors import AssistantError
from tool_approval.assistant.prompts import LEAVES, Prompts
from tool_approval.ui.terminal import draft

from tests.approval.ui.terminal.person import Person

EMPTY = f'> {" " * 20}'
"""The row of a prompt at which nothing was typed."""
UP, DOWN, ALT_ENTER = '\x1b[A', '\x1b[B', '\x1b\r'


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')


def say(text):
    """The steps that type a message and send it."""
    return (EMPTY, text), (f'> {text}', '\r')


def messages(*steps, above=lambda: None, columns=60, lines=20):
    """Return the messages that a person sends with these steps, and the screen at the end."""
    with Person(steps, columns=columns, lines=lines) as person:
        prompts, said = Prompts(person.device), []
        while (message := prompts.ask(above)) is not None:
            said.append(message)
        person.assert_done()
    return said, person.text


def test_enter_sends_and_empty_messages_are_left_out():
    said, _ = messages(*say('one'), (EMPTY, '\r'), (EMPTY, '  \r'), (EMPTY, ' two \r'), (EMPTY, '\x04'))

    assert said == ['one', 'two']


@pytest.mark.parametrize('newline', ['\\\r', ALT_ENTER])
def test_a_backslash_or_alt_begins_a_new_line(newline):
    said, shown = messages((EMPTY, 'one'), ('> one', newline), ('  ', 'two'), ('  two', '\r'), (EMPTY, '\x04'))

    assert said == ['one\ntwo']
    assert shown.startswith('\n> one\n  two\n')


@pytest.mark.parametrize(
    ('pasted', 'message'),
    [
        ('\x1b[200~one\rt\two\r\rthree\x1b[201~', 'one\nt\two\n\nthree'),
        ('one\rt\two\r\rthree', 'one\nt\two\n\nthree'),
        ('\x1b[200~y\x1b[2J\x9b2J\u202e\x03\x1b[201~', 'y\x1b[2J\x9b2J\u202e\x03'),
    ],
)
def test_paste_is_one_message_shown_before_it_is_sent(pasted, message):
    last = '  three' if 'three' in pasted else '> y<U+001B>[2J<U+009B>2J<U+202E><U+0003>'
    with Person([(EMPTY, pasted), (last, '\r')]) as person:
        said = Prompts(person.device).ask()
        person.assert_done()

    assert said == message
    for control in ('\x1b[2J', '\x9b', '\u202e', '\x03'):
        assert control.encode() not in person.sent


def test_a_line_with_its_end_that_comes_in_one_go_is_sent():
    said, shown = messages((EMPTY, 'one\rtwo\r'), (EMPTY, '\x04'))

    assert said == ['one\ntwo']
    assert shown.startswith('\n> one\n  two\n')


def test_a_paste_that_fills_the_screen_shows_its_end_and_says_that_there_is_more():
    lines = [f'line {number}' for number in range(100)]

    said, shown = messages(
        (EMPTY, '\x1b[200~' + '\r'.join(lines) + '\x1b[201~'),
        ('  line 99', UP * 60),
        ('  line 39', '\r'),
        (EMPTY, '\x04'),
        lines=10,
    )

    assert said == ['\n'.join(lines)]
    assert shown.splitlines()[-3:] == ['  line 99', '', '>']


def test_rows_above_and_below_the_screen_are_counted():
    seen = []
    steps = [
        (EMPTY, '\x1b[200~' + '\r'.join(map(str, range(100))) + '\x1b[201~'),
        ('  99', UP * 50),
        ('  49', lambda person: [seen.append(person.text), os.write(person.master, b'\r')]),
    ]

    with Person(steps, lines=10) as person:
        Prompts(person.device).ask()

    rows = seen[0].splitlines()
    assert (rows[1], rows[-1]) == ('  [more above]', '  [more below]')


def test_text_beyond_the_longest_message_is_reported_as_left_out(monkeypatch):
    monkeypatch.setattr(draft, 'LONGEST_DRAFT', 10)

    said, shown = messages((EMPTY, 'x' * 11), (f'> {"x" * 10} ', '\r'), (EMPTY, '\x04'))

    assert said == ['x' * 10]
    assert '  [too long: the rest was left out]' in shown


def test_the_first_ctrl_c_clears_and_a_second_one_leaves():
    said, shown = messages(
        (EMPTY, '\x03'),  # a hint, and nothing to clear
        (EMPTY, 'one'),
        ('> one', '\x03'),  # clears
        *say('two'),
        (EMPTY, 'three'),
        ('> three', '\x03'),
        (EMPTY, '\x03'),
    )

    assert said == ['two']
    assert shown.count(LEAVES) == 1


def test_up_and_down_recall_what_was_said_or_cleared():
    said, _ = messages(
        *say('one'),
        (EMPTY, 'two'),
        ('> two', '\x03'),
        (EMPTY, 'unsent'),
        ('> unsent', UP),
        ('> two', UP),
        ('> one', UP),  # there is no older one
        ('> one', DOWN),
        ('> two', DOWN),
        ('> unsent', DOWN),
        ('> unsent', UP),
        ('> two', UP),
        ('> one', '\r'),
        (EMPTY, '\x04'),
    )

    assert said == ['one', 'one']


def test_repeated_message_is_recalled_once():
    said, _ = messages(
        *say('one'),
        *say('two'),
        *say('two'),
        (EMPTY, UP + UP),
        ('> one', '\r'),
        (EMPTY, '\x04'),
    )

    assert said == ['one', 'two', 'two', 'one']


def test_within_a_message_up_and_down_change_the_line():
    said, _ = messages(
        (EMPTY, '\x1b[200~first\rx\rthird\x1b[201~'),
        ('  third', UP),
        ('  x', UP),
        ('> first', DOWN),
        ('  x', '\x01'),  # its beginning
        ('  x', 'a'),
        ('  ax', '\x05'),  # its end
        ('  ax', 'b\x1b[D\x1b[D\x15'),  # what is before the place, in this line
        ('  xb', '\x08'),  # joins it with the line before
        ('> firstxb', '\x1b[24~'),  # nothing
        ('> firstxb', '\r'),
        (EMPTY, '\x04'),
    )

    assert said == ['firstxb\nthird']


def test_ctrl_d_leaves_only_where_nothing_was_typed():
    said, _ = messages((EMPTY, 'one'), ('> one', '\x04'), ('> one', '\r'), (EMPTY, '\x04'))

    assert said == ['one']


def test_a_long_line_goes_on_in_the_next_row():
    said, shown = messages((EMPTY, 'z' * 50), ('  zzz', '\r'), (EMPTY, '\x04'), columns=30)

    assert said == ['z' * 50]
    assert shown.startswith(f'\n> {"z" * 27}\n  {"z" * 23}\n')


def test_note_is_printed_above_the_typed_text():
    noted = []

    def above():
        if noted or not begun:
            return None
        noted.append('note')
        return lambda: os.write(slave, b'A note.\r\n')

    begun = []
    with Person([(EMPTY, 'one'), ('> one', lambda _: begun.append(1)), ('> one', ' two\r')]) as person:
        slave = person.slave
        said = Prompts(person.device).ask(above)
        person.assert_done()

    assert said == 'one two'
    assert person.text.startswith('\nA note.\n> one two')


def test_error_while_typing_is_raised_and_the_terminal_restored():
    def above():
        raise AssistantError('the settings are broken')

    with Person([]) as person:
        with pytest.raises(AssistantError, match='broken'):
            Prompts(person.device).ask(above)
        person.assert_done()


def test_a_terminal_of_another_size_is_drawn_anew():
    def widen(person):
        person.resize(40, 20)

    said, shown = messages((EMPTY, 'z' * 50), ('  zzz', widen), ('  zzzzz', '\r'), (EMPTY, '\x04'), columns=30)

    assert said == ['z' * 50]
    assert f'> {"z" * 37}' in shown


def test_an_idle_prompt_is_not_drawn_again():
    sent = []

    def above():
        sent.append(person.sent)
        if len(sent) == 4:
            os.write(person.master, b'\x04')

    with Person([]) as person:
        assert Prompts(person.device).ask(above) is None

    assert sent[2] == sent[3] != b''


def test_a_program_that_was_stopped_and_continued_goes_on_reading_keys():
    def stop_and_continue(person):
        termios.tcsetattr(person.slave, termios.TCSANOW, person.before)  # as the shell leaves it

    said, _ = messages(
        (EMPTY, 'one'), ('> one', stop_and_continue), ('> one', ' two'), ('> one two', '\r'), (EMPTY, '\x04')
    )

    assert said == ['one two']


def test_closed_terminal_ends_the_prompt():
    with Person([(EMPTY, Person.hang_up)]) as person:
        assert Prompts(person.device).ask() is None


def test_reading_a_prompt_without_a_terminal_is_an_error():
    with pytest.raises(AssistantError, match='cannot read from the terminal: /dev/null is not a terminal'):
        Prompts('/dev/null').ask()


def test_a_dumb_terminal_is_sent_no_control_sequence(monkeypatch):
    monkeypatch.setenv('TERM', 'dumb')

    def above():
        if noted:
            return None
        noted.append(1)
        return lambda: None

    noted = []
    steps = [
        (EMPTY, '\x1b[200~one\rtwo\rthree\x1b[201~'),
        ('  three', UP),
        ('  two', '!'),
        ('  two!', '\r'),
    ]
    with Person(steps) as person:
        said = Prompts(person.device).ask(above)
        person.assert_done()

    assert said == 'one\ntwo!\nthree'
    assert b'\x1b' not in person.sent
    assert '> one\n' in person.text
