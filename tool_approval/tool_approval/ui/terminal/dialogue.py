"""Questions on the screen, the key that answers each, and long texts page by page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from .keyboard import Key, Keyboard
from .layout import NARROWEST, fitted
from .tty import Terminal


class Area:
    """Begins with the question, which is the last line of what was drawn, and has the cursor at its end."""

    def __init__(self, terminal: Terminal) -> None:
        """Nothing was drawn yet."""
        self._terminal = terminal
        self._rows_above = 0
        self._question = ''

    def draw(self, drawn: str) -> None:
        """Write a whole question, below everything else. The cursor is hidden: nothing that is typed now answers."""
        self._terminal.show_cursor(is_shown=False)
        self._terminal.write(f'\n{drawn}')
        self._rows_above = 0
        self._question = drawn.rpartition('\n')[2]

    def show(self, *lines: str, question: str | None = None) -> None:
        """Put lines and a question in place of what is there. The cursor is hidden; see `draw`.

        Args:
            *lines: Escaped; what does not fit into a line is cut.
            question: The last line, which is cut too; the one that was drawn, which fits, if `None`.
        """
        columns, _ = self._terminal.size
        fitting = [fitted(line, columns - 1) for line in lines]
        last = self._question if question is None else fitted(question, columns - 1)
        self._put(fitting, last)

    def leave(self) -> None:
        """Go on in a new line: another program wrote on the screen."""
        self._terminal.write('\n')
        self._rows_above = 0

    def end(self, line: str) -> None:
        """Leave one line in place of what is there; it fits, and may have colours."""
        self._put([], line)
        self._terminal.write('\n')

    def _put(self, lines: Sequence[str], last: str) -> None:
        self._terminal.show_cursor(is_shown=False)
        self._clear()
        self._terminal.write(''.join(f'{line}\n' for line in lines) + last)
        self._rows_above = len(lines)

    def _clear(self) -> None:
        if self._terminal.is_dumb:
            self._terminal.write('\n')
            return
        up = f'\x1b[{self._rows_above}A' if self._rows_above else ''
        self._terminal.write(f'\r{up}\x1b[J')


Render = Callable[[int, int], str]
"""Draws a question for so many columns and lines; its last line is the question itself."""

PASTED = 'That came all at once, as a paste does, so it answers nothing. Press one key.'
OTHER_KEY = 'That key answers nothing. Press one of the keys above.'
OTHER_KEY_HERE = 'That key answers nothing here. Press what the question names; Esc goes back.'
TOO_NARROW = 'Too narrow to approve.'

_DENYING = frozenset({'n', 'N', 'q', 'escape'})
"""Keys that approve nothing, which count whatever is on the screen."""


class Dialogue:
    """Draws questions, and draws them again when the terminal was resized or used by others."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard) -> None:
        """Nothing was drawn yet.

        Args:
            terminal: In raw mode.
            keyboard: What is read from it.
        """
        self.terminal = terminal
        self.keyboard = keyboard
        self.area = Area(terminal)
        self._render: Render = lambda columns, lines: ''
        self._size = self._seen = terminal.size

    def draw(self, render: Render) -> None:
        """Draw a question below all that is there."""
        self._render = render
        self._size = self._seen = self.terminal.size
        self.area.draw(render(*self._size))

    def key(self, help: Mapping[str, str], hint: str = '') -> str:
        """Wait for the key that answers what was drawn.

        Args:
            help: The keys that do, with what each of them does; `?` shows them.
            hint: A line to show above the question meanwhile.

        Raises:
            Stopped: The run is to be stopped.
            Withdrawn: Nobody waits any more.
            TerminalClosed: The terminal is gone.
        """
        lines = [hint] if hint else []
        if lines:
            self.area.show(*lines)
        while True:
            key = self._wait([*help, '?'], lines)
            if key != '?':
                return key
            lines = [f'  {name}  {meaning}' for name, meaning in help.items()]
            self.area.show(*lines)

    def choose(self, lines: list[str], question: str, keys: Collection[str]) -> str | None:
        """Ask something else in between, below what was drawn.

        Args:
            lines: To show above it; escaped.
            question: One line, escaped.
            keys: What answers it.

        Returns:
            The key, or `None` to go back. What was drawn is asked again then; see `key`.
        """
        self.area.show(*lines, question=question)
        key = self._wait([*keys, 'escape'], lines, question)
        self.area.show()
        return None if key == 'escape' else key

    def _wait(self, keys: Collection[str], lines: list[str], question: str | None = None) -> str:
        self.keyboard.settle()
        while True:
            key = self.keyboard.press()
            if key is not None and key in keys and (key in _DENYING or self._is_shown()):
                return key
            if key is not None and self._size == self.terminal.size:
                other = OTHER_KEY if question is None else OTHER_KEY_HERE
                hint = PASTED if key == 'paste' else other if self._size[0] >= NARROWEST else TOO_NARROW
                self.area.show(*lines, hint, question=question)
                if key == 'paste':
                    self.keyboard.settle()
                self.terminal.show_cursor(is_shown=True)
            elif key is not None or self._is_disturbed():
                self.terminal.enter()
                self.draw(self._render)
                self.area.show(*lines, question=question)
                self.keyboard.settle()

    def _is_shown(self) -> bool:
        """Whether the question stands on the screen as it was drawn: a terminal that was made narrower broke its rows.

        Attack: what stands at the beginning of a row then, without a frame, looks like the question (test_prompt.py).
        """
        return self._size == self.terminal.size and self._size[0] >= NARROWEST

    def _is_disturbed(self) -> bool:
        if not self.terminal.is_raw:
            return True
        # While somebody drags the corner of the window, the size changes many times: wait for the last.
        is_same, self._seen = self._seen == self.terminal.size, self.terminal.size
        return is_same and self._seen != self._size


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
