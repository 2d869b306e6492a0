from hypothesis import given
from hypothesis import strategies as st
from tool_approval.ui.terminal.keyboard import LONGEST_PASTE, Decoder, Event, Key, Paste

from tests.tables import table


def decoded(data: bytes) -> list[Event]:
    decoder = Decoder()
    return [*decoder.feed(data), *decoder.give_up()]


@table(
    ('data', 'name'),
    [
        (b'y', 'y'),
        ('ä'.encode(), 'ä'),
        (b' ', ' '),
        (b'\r', 'enter'),
        (b'\n', 'enter'),
        (b'\x7f', 'backspace'),
        (b'\t', 'tab'),
        (b'\x03', 'ctrl_c'),
        (b'\x1c', 'ctrl_c'),
        (b'\x01', 'ctrl_a'),
        (b'\x1b', 'escape'),
        (b'\x1b[A', 'up'),
        (b'\x1bOA', 'up'),
        (b'\x1b[3~', 'delete'),
        (b'\x1b[6~', 'page_down'),
        (b'\x1b[1;5C', 'unknown'),
        (b'\x1b[24~', 'unknown'),
        (b'\x1by', 'unknown'),
        (b'\x1b\r', 'alt_enter'),
        (b'\x1b\n', 'alt_enter'),
        (b'\x1b[12', 'unknown'),
        (b'\x1bO', 'unknown'),
        (b'\xff', '�'),
        ('\x9b'.encode(), 'unknown'),
        ('\u202e'.encode(), 'unknown'),
    ],
)
def test_a_key_has_a_name(data: bytes, name: str) -> None:
    assert decoded(data) == [Key(name)]


def test_keys_that_arrive_together_are_separated() -> None:
    assert decoded(b'ab\x1b[Bc\x1b') == [Key('a'), Key('b'), Key('down'), Key('c'), Key('escape')]


def test_a_paste_is_one_event_whatever_is_in_it() -> None:
    assert decoded(b'\x1b[200~y\r\ny\ry\x03\x1b[A\x1b[201~n') == [Paste('y\ny\ny\x03\x1b[A'), Key('n')]


def test_unfinished_paste_is_not_an_event() -> None:
    decoder = Decoder()

    events = [*decoder.feed(b'\x1b[200~y\x1b[201'), *decoder.give_up()]

    assert events == []
    assert decoder.is_within
    assert decoder.feed(b'~') == [Paste('y')]
    assert not decoder.is_within


def test_a_paste_is_cut_and_its_rest_answers_nothing() -> None:
    events = decoded(b'\x1b[200~' + b'x' * LONGEST_PASTE + b'yyy\x1b[201~')

    assert events == [Paste('x' * LONGEST_PASTE)]


@given(st.binary(max_size=40) | st.text('y\x1b[~O20;1\rä', max_size=40).map(str.encode), st.data())
def test_events_do_not_depend_on_how_bytes_are_split(data: bytes, cuts: st.DataObject) -> None:
    at = cuts.draw(st.integers(0, len(data)))
    decoder = Decoder()

    events = [*decoder.feed(data[:at]), *decoder.feed(data[at:])]

    assert events == Decoder().feed(data)
