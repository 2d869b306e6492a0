"""One line of text that a person types."""

from __future__ import annotations

from collections.abc import Callable

from tool_approval.display import cell_width, escape_line

from .keyboard import Event, Key, Keyboard, typed
from .tty import Terminal

LONGEST_LINE = 20_000
"""Chosen, in characters: what nobody types, and few would paste."""


def read_line(terminal: Terminal, keyboard: Keyboard, prompt: str, *, text: str = '') -> str | None:
    """Let a person type one line in the cursor's row, or change `text`; `None` if the person went back.

    The prompt is short, and not escaped here. Line ends in what is pasted become spaces.
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
    """A text and a place in it."""

    def __init__(self, text: str = '', *, ascii_only: bool = False) -> None:
        """Begin with `text`, at its end; show all but ASCII as escapes if that is all that can be drawn."""
        self._ascii_only = ascii_only
        self.text = text
        self.at = len(text)

    def take(self, events: list[Event]) -> None:
        """Do what was typed."""
        for event in events:
            move = MOVES.get(event.name) if isinstance(event, Key) else None
            if move is not None:
                self.text, self.at = move(self.text, self.at)
            else:
                # An Enter that counts is alone; see `typed`.
                added = typed([event, Key('unknown')])[0][: max(0, LONGEST_LINE - len(self.text))]
                self.text = f'{self.text[: self.at]}{added}{self.text[self.at :]}'
                self.at += len(added)

    def window(self, room: int) -> tuple[str, str]:
        """What is shown before and after the cursor in so many columns, escaped."""
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
        """Draw it in the cursor's row. No control sequence is needed: a dumb terminal can do this too."""
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
"""What other keys do, by name: from a text and a place in it to those after."""
