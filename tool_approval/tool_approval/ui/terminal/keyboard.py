"""Tells what a person pressed on purpose from what was typed ahead, held down or pasted."""

from __future__ import annotations

from .keys import Decoder, Event, Key, Paste
from .tty import Terminal

QUIET_S = 0.4
"""Chosen: for so many seconds after a question is drawn nothing may be typed before a key counts. It is longer than the
pause between two presses of a person who hammers on a key, and shorter than it takes to read the question."""

BURST_S = 0.05
"""Chosen: keys that follow each other faster were not pressed one by one. No person answers twice within it; a paste
and a key that is held down do."""

TICK_S = 0.2
"""Chosen: how often the size and state of the terminal are looked at."""


class Stopped(Exception):
    """Ctrl-C."""


class Keyboard:
    """Reads one terminal."""

    def __init__(self, terminal: Terminal, *, quiet_s: float = QUIET_S) -> None:
        """Read `terminal`, which is in raw mode.

        Args:
            terminal: What is read.
            quiet_s: See `QUIET_S`.
        """
        self._terminal = terminal
        self._quiet_s = quiet_s
        self._decoder = Decoder()

    def settle(self) -> None:
        """Forget what was typed ahead, and wait until nothing is typed any more.

        Raises:
            Stopped: Ctrl-C was pressed: to deny, no question has to be read.
        """
        self._terminal.show_cursor(is_shown=False)
        self._terminal.drop_input()
        self._decoder = Decoder()
        while (data := self._terminal.read(self._quiet_s)) is not None:
            self._fed(data)
        self._decoder = Decoder()
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


LONGEST_BURST = 65_536
"""Chosen, in keys: what is read in one go may have no end."""


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
