"""What counts as a key that was pressed, and as text that was typed."""

import pytest
from tool_approval.ui.terminal.keyboard import Key, Keyboard, Paste, Stopped
from tool_approval.ui.terminal.line import LONGEST_LINE, Line


class Wire:
    """A terminal: each read is prepared, `None` where nothing comes in time."""

    def __init__(self, *reads: bytes | None) -> None:
        self.reads = list(reads)
        self.is_shown = True

    def read(self, timeout_s: float) -> bytes | None:
        return self.reads.pop(0)

    def show_cursor(self, *, is_shown: bool) -> None:
        self.is_shown = is_shown

    def drop_input(self) -> None:
        pass


def test_keyboard_settles_when_typing_stops() -> None:
    wire = Wire(b'yyyy', b'\x1b[20', None, b'y', None)
    keyboard = Keyboard(wire)

    keyboard.settle()

    assert wire.is_shown
    assert keyboard.press() == 'y'


def test_ctrl_c_counts_during_the_settling_time() -> None:
    with pytest.raises(Stopped):
        Keyboard(Wire(b'yy\x03')).settle()


@pytest.mark.parametrize(
    ('reads', 'key'),
    [
        ([None], None),
        ([b'y', None], 'y'),
        ([b'y', b'y', None], 'paste'),
        ([b'\x1b', None], 'escape'),
        ([b'\x1b', b'[A', None], 'up'),
        ([b'\x1b[200~y', None, None, None, b'\x1b[201~', None], 'paste'),
        ([b'\x1b[200~y', None, b'\x1b[201~', None], 'paste'),
    ],
)
def test_a_key_counts_where_it_was_pressed_alone(reads: list[bytes | None], key: str | None) -> None:
    wire = Wire(*reads)

    assert Keyboard(wire).press() == key
    assert wire.reads == []


def test_a_paste_that_never_ends_does_not_swallow_ctrl_c() -> None:
    with pytest.raises(Stopped):
        Keyboard(Wire(b'\x1b[200~yes', None, b'\x03')).press()


def test_text_that_is_typed_is_given_at_once() -> None:
    assert Keyboard(Wire(b'ab')).read() == [Key('a'), Key('b')]


def test_the_enter_key_counts_when_nothing_follows() -> None:
    assert Keyboard(Wire(b'\r', None)).read() == [Key('enter')]
    assert Keyboard(Wire(b'\r', b'x')).read() == [Key('enter'), Key('x')]


@pytest.mark.parametrize(
    ('keys', 'text', 'at'),
    [
        (['left'], 'one two', 6),
        (['left', 'right', 'right'], 'one two', 7),
        (['home', 'left'], 'one two', 0),
        (['home', 'delete'], 'ne two', 0),
        (['home', 'end'], 'one two', 7),
        (['backspace'], 'one tw', 6),
        (['ctrl_a', 'backspace'], 'one two', 0),
        (['ctrl_a', 'ctrl_e'], 'one two', 7),
        (['home', 'right', 'ctrl_k'], 'o', 1),
        (['left', 'ctrl_u'], 'o', 0),
        (['ctrl_w'], 'one ', 4),
        (['ctrl_w', 'ctrl_w', 'ctrl_w'], '', 0),
        (['home', 'x', 'tab', 'up', 'unknown'], 'x one two', 2),
    ],
)
def test_a_line_is_changed_where_the_cursor_is(keys: list[str], text: str, at: int) -> None:
    line = Line('one two')

    line.take([Key(key) for key in keys])

    assert (line.text, line.at) == (text, at)


def test_a_line_has_an_end() -> None:
    line = Line('x')

    line.take([Paste('y' * LONGEST_LINE), Key('z')])

    assert line.text == f'x{"y" * (LONGEST_LINE - 1)}'


@pytest.mark.parametrize(
    ('text', 'at', 'ascii_only', 'shown'),
    [
        ('abc', 3, False, ('abc', '')),
        ('abc', 1, False, ('a', 'bc')),
        ('0123456789abc', 13, False, ('456789abc', '')),
        ('0123456789abc', 0, False, ('', '012345678')),
        ('日本語日本語', 6, False, ('語日本語', '')),
        ('a\x1b', 2, False, ('a<U+001B>', '')),
        ('é', 1, True, ('<U+00E9>', '')),
    ],
)
def test_line_shows_the_text_around_the_cursor(text: str, at: int, ascii_only: bool, shown: tuple[str, str]) -> None:
    line = Line(text, ascii_only=ascii_only)
    line.at = at

    assert line.window(10) == shown
