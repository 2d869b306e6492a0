"""Shows a long text page by page, without another program."""

from __future__ import annotations

from collections.abc import Callable

from .keyboard import Keyboard
from .keys import Key
from .tty import Terminal

_OTHER_SCREEN, _OWN_SCREEN = '\x1b[?1049h', '\x1b[?1049l'


def page(terminal: Terminal, keyboard: Keyboard, lines_for: Callable[[int], list[str]]) -> None:
    """Show a text until the person goes back.

    A program such as `less` would have to be trusted with what the model wrote, and can start others.

    Args:
        terminal: Where; a second screen is used, if it has one.
        keyboard: What is read.
        lines_for: Makes the lines for so many columns, escaped. None is longer.
    """
    terminal.control(_OTHER_SCREEN)
    try:
        _Pager(terminal, lines_for).run(keyboard)
    finally:
        terminal.control(_OWN_SCREEN)


class _Pager:
    def __init__(self, terminal: Terminal, lines_for: Callable[[int], list[str]]) -> None:
        self._terminal = terminal
        self._lines_for = lines_for
        self._top = 0
        self._size = (0, 0)
        self._lines: list[str] = []

    def run(self, keyboard: Keyboard) -> None:
        self._draw()
        while True:
            events = keyboard.read()
            moves = [event.name for event in events if isinstance(event, Key)]
            for name in moves:
                if name in ('q', 'escape', 'v'):
                    return
                self._move(name)
            if moves or self._terminal.size != self._size or not self._terminal.is_raw:
                if not self._terminal.is_raw:
                    self._terminal.enter()
                    self._terminal.control(_OTHER_SCREEN)
                self._draw()

    @property
    def _room(self) -> int:
        return max(1, self._size[1] - 1)

    def _move(self, name: str) -> None:
        by = {
            ' ': self._room, 'f': self._room, 'page_down': self._room, 'b': -self._room, 'page_up': -self._room,
            'j': 1, 'down': 1, 'enter': 1, 'k': -1, 'up': -1,
            'g': -len(self._lines), 'home': -len(self._lines), 'G': len(self._lines), 'end': len(self._lines),
        }.get(name, 0)  # fmt: skip
        self._top = max(0, min(self._top + by, len(self._lines) - self._room))

    def _draw(self) -> None:
        if self._size != self._terminal.size:
            self._size = self._terminal.size
            self._lines = self._lines_for(self._size[0])
            self._move('')
        shown = self._lines[self._top : self._top + self._room]
        last = self._top + len(shown)
        place = f'lines {self._top + 1}-{last} of {len(self._lines)}   space: on   b: back   q: to the question'
        self._terminal.control('\x1b[H\x1b[J')
        dumb = '\n' if self._terminal.is_dumb else ''
        body = ''.join(f'{line}\n' for line in shown)
        self._terminal.write(f'{dumb}{body}{place[: self._size[0] - 1]}')
