"""Read and edit one line of text."""

from __future__ import annotations

from collections.abc import Callable

from tool_approval.display import cell_width, escape_line

from .keyboard import Event, Key, Keyboard, typed
from .tty import Terminal

LONGEST_LINE = 20_000
"""Maximum number of characters in a line."""


def read_line(terminal: Terminal, keyboard: Keyboard, prompt: str, *, text: str = '') -> str | None:
    """Let the user edit `text` in the cursor's row, and return the line; `None` if the user goes back.

    The prompt must be short and escaped. Each line end in pasted text becomes a space.
    """
    terminal.show_cursor(is_shown=True)
    line = Line(text, ascii_only=terminal.is_plain)
    while True:
        line.draw(terminal, prompt)
        events: list[Event] = []
        while not events:
            events = keyboard.read()
        if events == [Key('escape')]:
            return None
        if typed(events)[1]:
            return line.text
        line.take(events)


class Line:
    """A line of text with a cursor."""

    def __init__(self, text: str = '', *, ascii_only: bool = False) -> None:
        """Start with the cursor at the end of `text`. `ascii_only` shows all non-ASCII characters as escapes."""
        self._ascii_only = ascii_only
        self.text = text
        self.at = len(text)

    def take(self, events: list[Event]) -> None:
        """Apply the typed keys and pastes."""
        for event in events:
            move = MOVES.get(event.name) if isinstance(event, Key) else None
            if move is not None:
                self.text, self.at = move(self.text, self.at)
            else:
                # Enter ends the line only as a single event; see `typed`.
                added = typed([event, Key('unknown')])[0][: max(0, LONGEST_LINE - len(self.text))]
                self.text = f'{self.text[: self.at]}{added}{self.text[self.at :]}'
                self.at += len(added)

    def window(self, room: int) -> tuple[str, str]:
        """Return the escaped text before the cursor and after it, as far as it fits into `room` columns."""
        before, after = '', ''
        for character in reversed(self.text[: self.at]):
            shown = f'{escape_line(character, ascii_only=self._ascii_only)}{before}'
            if cell_width(shown) >= room:
                break
            before = shown
        room -= cell_width(before)
        for character in self.text[self.at :]:
            shown = f'{after}{escape_line(character, ascii_only=self._ascii_only)}'
            if cell_width(shown) >= room:
                break
            after = shown
        return before, after

    def draw(self, terminal: Terminal, prompt: str) -> None:
        """Draw the line in the cursor's row, without control sequences, so that dumb terminals work too."""
        room = max(8, terminal.size[0] - cell_width(prompt) - 1)
        before, after = self.window(room)
        rest = ' ' * max(0, room - cell_width(before + after))
        terminal.write(f'\r{prompt}{before}{after}{rest}\r{prompt}{before}')


def _word_start(text: str, at: int) -> int:
    return text[:at].rstrip().rfind(' ') + 1


MOVES: dict[str, Callable[[str, int], tuple[str, int]]] = {
    'left': lambda text, at: (text, max(0, at - 1)),
    'right': lambda text, at: (text, min(len(text), at + 1)),
    'home': lambda text, at: (text, 0),
    'end': lambda text, at: (text, len(text)),
    'backspace': lambda text, at: (text[: max(0, at - 1)] + text[at:], max(0, at - 1)),
    'delete': lambda text, at: (text[:at] + text[at + 1 :], at),
    'ctrl_a': lambda text, at: (text, 0),
    'ctrl_e': lambda text, at: (text, len(text)),
    'ctrl_k': lambda text, at: (text[:at], at),
    'ctrl_u': lambda text, at: (text[at:], 0),
    'ctrl_w': lambda text, at: (text[: _word_start(text, at)] + text[at:], _word_start(text, at)),
}
"""Maps the names of editing keys to functions. Each function takes a text and a cursor position, and returns the new
text and position."""
