"""One question on the screen, and the key that answers it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from .area import Area
from .keyboard import Keyboard
from .layout import NARROWEST
from .tty import Terminal

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
