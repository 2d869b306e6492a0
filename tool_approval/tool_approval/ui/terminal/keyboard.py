"""Tells what a person pressed on purpose from what was typed ahead, held down or pasted."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from .tty import Terminal


@dataclass(frozen=True)
class Key:
    """One key."""

    name: str
    """The character it types, or the name of another key: `enter`, `escape`, `backspace`, `delete`, `left`, `right`,
    `up`, `down`, `home`, `end`, `page_up`, `page_down`, `alt_enter`, `ctrl_c` and the like, `unknown`."""


@dataclass(frozen=True)
class Paste:
    """Text that the terminal says was pasted."""

    text: str
    """All of it, newlines as `\\n`; it may contain anything."""


Event = Key | Paste

LONGEST_PASTE = 65_536
"""Chosen, in characters: more than a note or an argument that is edited in one line needs."""

_CONTROLS = {
    '\r': 'enter', '\n': 'enter', '\x7f': 'backspace', '\x08': 'backspace', '\t': 'tab',
    '\x1c': 'ctrl_c',  # Ctrl-\, which means "stop" even more
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
    """Takes bytes as they come, in pieces of any length."""

    def __init__(self, longest_paste: int = LONGEST_PASTE) -> None:
        """Nothing was read yet; of a paste, so many characters are kept."""
        self._longest_paste = longest_paste
        self._bytes = codecs.getincrementaldecoder('utf-8')(errors='replace')
        self._text = ''
        self._pasted: str | None = None

    @property
    def is_within(self) -> bool:
        """Whether more must follow: within a paste, or after an escape character that may begin a sequence."""
        return self._pasted is not None or bool(self._text)

    def feed(self, data: bytes) -> list[Event]:
        """The keys and pastes that are complete now."""
        self._text += self._bytes.decode(data)
        events: list[Event] = []
        while (event := self._next()) is not None:
            events.append(event)
        return events

    def give_up(self) -> list[Event]:
        """What is complete because nothing follows: an escape character alone is the key."""
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
        # An escape character and something else: Alt and a key.
        key, self._text = self._text[1], self._text[2:]
        return Key('alt_enter' if key in '\r\n' else 'unknown')

    def _paste(self) -> Event | None:
        end = self._text.find(_PASTE_END)
        # Where it has not ended, what may be the beginning of its end is kept back.
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
"""Chosen: for so many seconds after a question is drawn nothing may be typed before a key counts. It is longer than the
pause between two presses of a person who hammers on a key, and shorter than it takes to read the question."""

BURST_S = 0.05
"""Chosen: keys that follow each other faster were not pressed one by one. No person answers twice within it; a paste
and a key that is held down do."""

LONGEST_BURST = 65_536
"""Chosen, in keys: what is read in one go may have no end."""

TICK_S = 0.2
"""Chosen: how often the size and state of the terminal are looked at."""


class Stopped(Exception):
    """Ctrl-C."""


class Keyboard:
    """Reads one terminal."""

    def __init__(self, terminal: Terminal, *, quiet_s: float = QUIET_S, longest_paste: int = LONGEST_PASTE) -> None:
        """Read `terminal`, which is in raw mode; for `quiet_s`, see `QUIET_S`."""
        self._terminal = terminal
        self._quiet_s = quiet_s
        self._longest_paste = longest_paste
        self._decoder = Decoder(longest_paste)

    def settle(self) -> None:
        """Forget what was typed ahead, and wait until nothing is typed any more.

        Raises:
            Stopped: Ctrl-C was pressed: to deny, no question has to be read.
        """
        self._terminal.show_cursor(is_shown=False)
        self._terminal.drop_input()
        self._decoder = Decoder(self._longest_paste)
        while (data := self._terminal.read(self._quiet_s)) is not None:
            self._fed(data)
        self._decoder = Decoder(self._longest_paste)
        self._terminal.show_cursor(is_shown=True)

    def press(self) -> str | None:
        """One key that was pressed alone.

        Returns:
            Its name; `paste` for what was no single key; `None` when nothing was pressed for a moment.

        Raises:
            Stopped: Ctrl-C was pressed, alone or not.
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
        """What was typed in one go; nothing when nothing was for a moment.

        Args:
            is_text: Whether text is typed, which is given at once. Else, and for the Enter key, it is waited whether
                more follows.

        Raises:
            Stopped: Ctrl-C was pressed, alone or not.
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
            # A paste that does not end, because the connection lost some of it, must not swallow Ctrl-C.
            if (data := self._terminal.read(TICK_S)) == b'\x03':
                raise Stopped
            events += self._fed(data or b'')
        return events

    def _fed(self, data: bytes) -> list[Event]:
        events = self._decoder.feed(data)
        # Within a paste it is text.
        if Key('ctrl_c') in events:
            raise Stopped
        return events


def typed(events: list[Event]) -> tuple[str, bool]:
    """The text of what was typed in one go, and whether it is ended by the Enter key.

    Enter counts only alone: within a burst it is a line end of pasted text, and becomes a space.
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
