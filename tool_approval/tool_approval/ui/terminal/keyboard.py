"""Read keys, and distinguish deliberate key presses from pastes, held keys and keys typed ahead."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from .tty import Terminal


@dataclass(frozen=True)
class Key:
    """A pressed key."""

    name: str
    """The typed character or the name of another key: `enter`, `escape`, `backspace`, `delete`, `left`, `right`, `up`,
    `down`, `home`, `end`, `page_up`, `page_down`, `alt_enter`, a name such as `ctrl_c`, or `unknown`."""


@dataclass(frozen=True)
class Paste:
    """Text that the terminal reported as pasted."""

    text: str
    """The pasted text, in which each line end is `\\n`. The text may contain any characters."""


Event = Key | Paste

LONGEST_PASTE = 65_536
"""Maximum number of characters in a paste. For notes and one-line arguments, the maximum is smaller."""

_CONTROLS = {
    '\r': 'enter', '\n': 'enter', '\x7f': 'backspace', '\x08': 'backspace', '\t': 'tab',
    '\x1c': 'ctrl_c',  # Ctrl-\ also stops
}  # fmt: skip
_SEQUENCES = {
    'A': 'up', 'B': 'down', 'C': 'right', 'D': 'left', 'H': 'home', 'F': 'end',
    '1~': 'home', '3~': 'delete', '4~': 'end', '5~': 'page_up', '6~': 'page_down', '7~': 'home', '8~': 'end',
}  # fmt: skip
# ECMA-48, section 5.4: parameters, intermediates, one final byte; and the two-letter form of function keys.
_SEQUENCE = re.compile(r'\x1b(?:\[([0-?]*[ -/]*[@-~])|O([ -~]))')
_BEGUN = re.compile(r'\x1b(?:\[[0-?]*[ -/]*|O)?')
_PASTE_BEGIN, _PASTE_END = '\x1b[200~', '\x1b[201~'


class Decoder:
    """Decodes bytes into keys and pastes. The bytes may arrive in pieces of any length."""

    def __init__(self, longest_paste: int = LONGEST_PASTE) -> None:
        """Start without input. Pastes are cut to `longest_paste` characters."""
        self._longest_paste = longest_paste
        self._bytes = codecs.getincrementaldecoder('utf-8')(errors='replace')
        self._text = ''
        self._pasted: str | None = None

    @property
    def is_within(self) -> bool:
        """Whether the input so far ends within a paste, or within a possible escape sequence."""
        return self._pasted is not None or bool(self._text)

    def feed(self, data: bytes) -> list[Event]:
        """Add bytes, and return the keys and pastes that are complete."""
        self._text += self._bytes.decode(data)
        events: list[Event] = []
        while (event := self._next()) is not None:
            events.append(event)
        return events

    def give_up(self) -> list[Event]:
        """Return the key of an incomplete sequence, such as a single Escape, if no more bytes follow."""
        if self._pasted is not None or not self._text:
            return []
        text, self._text = self._text, ''
        return [Key('escape') if text == '\x1b' else Key('unknown')]

    def _next(self) -> Event | None:
        if self._pasted is not None:
            return self._paste()
        if not self._text:
            return None
        if self._text.startswith(_PASTE_BEGIN):
            self._text = self._text.removeprefix(_PASTE_BEGIN)
            self._pasted = ''
            return self._paste()
        if self._text[0] != '\x1b':
            character, self._text = self._text[0], self._text[1:]
            return Key(_name(character))
        if sequence := _SEQUENCE.match(self._text):
            self._text = self._text[sequence.end() :]
            return Key(_SEQUENCES.get(sequence[1] or sequence[2], 'unknown'))
        if _BEGUN.fullmatch(self._text):
            return None
        # Escape followed by another character is Alt with that key.
        key, self._text = self._text[1], self._text[2:]
        return Key('alt_enter' if key in '\r\n' else 'unknown')

    def _paste(self) -> Event | None:
        end = self._text.find(_PASTE_END)
        # Without the end of the paste, its last characters may be the beginning of the end marker.
        take = end if end >= 0 else max(0, len(self._text) - len(_PASTE_END) + 1)
        pasted = f'{self._pasted}{self._text[:take]}'[: self._longest_paste]
        if end < 0:
            self._text, self._pasted = self._text[take:], pasted
            return None
        self._text, self._pasted = self._text[end + len(_PASTE_END) :], None
        return Paste(pasted.replace('\r\n', '\n').replace('\r', '\n'))


def _name(character: str) -> str:
    if character in _CONTROLS:
        return _CONTROLS[character]
    if character < ' ':
        return f'ctrl_{chr(ord(character) + 0x60)}'
    return character if character.isprintable() else 'unknown'


QUIET_S = 0.4
"""A new question accepts keys after this many seconds without typing. The interval is longer than the
pause between key repeats, but shorter than the time needed to read the question."""

BURST_S = 0.05
"""Keys that arrive within this many seconds of each other form a burst, such as a paste or a held key."""

LONGEST_BURST = 65_536
"""Maximum number of keys to keep from one burst. A limit is needed, because a burst may never end."""

TICK_S = 0.2
"""Seconds between checks of the terminal's size and state."""


class Stopped(Exception):
    """Ctrl-C was pressed."""


class Keyboard:
    """Reads the keys of a terminal."""

    def __init__(self, terminal: Terminal, *, quiet_s: float = QUIET_S, longest_paste: int = LONGEST_PASTE) -> None:
        """Read from a terminal in raw mode. See `QUIET_S` and `LONGEST_PASTE`."""
        self._terminal = terminal
        self._quiet_s = quiet_s
        self._longest_paste = longest_paste
        self._decoder = Decoder(longest_paste)

    def settle(self) -> None:
        """Discard typed-ahead keys, and wait until no key has been pressed for `quiet_s` seconds.

        Raises:
            Stopped: Ctrl-C was pressed. This key stops the run even before the question accepts other keys.
        """
        self._terminal.show_cursor(is_shown=False)
        self._terminal.drop_input()
        self._decoder = Decoder(self._longest_paste)
        while (data := self._terminal.read(self._quiet_s)) is not None:
            self._fed(data)
        self._decoder = Decoder(self._longest_paste)
        self._terminal.show_cursor(is_shown=True)

    def press(self) -> str | None:
        """Read a single key press.

        Returns: Name of the key, `paste` for several keys at once, or `None` if no key was pressed within `TICK_S`.

        Raises:
            Stopped: Ctrl-C was pressed, alone or among other keys.
        """
        events = self.read(is_text=False)
        match events:
            case []:
                return None
            case [Key(name)]:
                return name
            case _:
                return 'paste'

    def read(self, *, is_text: bool = True) -> list[Event]:
        """Return the events of one burst, or an empty list if no key was pressed within `TICK_S`.

        Args:
            is_text: Whether text is being typed. If so, all keys except Enter are returned immediately. Otherwise, all
                keys are returned when the burst ends.

        Raises:
            Stopped: Ctrl-C was pressed, alone or among other keys.
        """
        data = self._terminal.read(TICK_S)
        if data is None:
            return []
        events = self._fed(data)
        while self._decoder.is_within or not is_text or events[-1:] == [Key('enter')]:
            data = self._terminal.read(BURST_S)
            if data is not None:
                events = [*events, *self._fed(data)][-LONGEST_BURST:]
                continue
            events += self._decoder.give_up()
            if not self._decoder.is_within:
                break
            # A paste whose end was lost must not swallow Ctrl-C.
            if (data := self._terminal.read(TICK_S)) == b'\x03':
                raise Stopped
            events += self._fed(data or b'')
        return events

    def _fed(self, data: bytes) -> list[Event]:
        events = self._decoder.feed(data)
        # Within a paste, Ctrl-C is text.
        if Key('ctrl_c') in events:
            raise Stopped
        return events


def typed(events: list[Event]) -> tuple[str, bool]:
    """Return the text of a burst, and whether the burst is a single Enter key.

    Within a burst, Enter is taken as a line break in pasted text and becomes a space.
    """
    if events == [Key('enter')]:
        return '', True
    characters: list[str] = []
    for event in events:
        match event:
            case Paste(text):
                characters.append(text.replace('\n', ' '))
            case Key('enter' | 'tab'):
                characters.append(' ')
            case Key(name) if len(name) == 1:
                characters.append(name)
            case _:
                pass
    return ''.join(characters), False
