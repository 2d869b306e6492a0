"""Makes keys and pastes of the bytes that a terminal sends."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """One key."""

    name: str
    """The character it types, or the name of another key: `enter`, `escape`, `backspace`, `delete`, `left`, `right`,
    `up`, `down`, `home`, `end`, `page_up`, `page_down`, `ctrl_c` and the like, `unknown`."""


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

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._bytes = codecs.getincrementaldecoder('utf-8')(errors='replace')
        self._text = ''
        self._pasted: list[str] | None = None
        self._room = LONGEST_PASTE

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
            self._pasted, self._room = [], LONGEST_PASTE
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
        self._text = self._text[2:]
        return Key('unknown')

    def _paste(self) -> Event | None:
        assert self._pasted is not None
        end = self._text.find(_PASTE_END)
        # Where it has not ended, what may be the beginning of its end is kept back.
        take = end if end >= 0 else max(0, len(self._text) - len(_PASTE_END) + 1)
        self._pasted.append(self._text[: min(take, self._room)])
        self._room -= min(take, self._room)
        if end < 0:
            self._text = self._text[take:]
            return None
        text = ''.join(self._pasted)
        self._text, self._pasted = self._text[end + len(_PASTE_END) :], None
        return Paste(text.replace('\r\n', '\n').replace('\r', '\n'))


def _name(character: str) -> str:
    if character in _CONTROLS:
        return _CONTROLS[character]
    if character < ' ':
        return f'ctrl_{chr(ord(character) + 0x60)}'
    return character if character.isprintable() else 'unknown'
