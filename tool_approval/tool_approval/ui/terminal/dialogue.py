"""Draw questions, wait for the keys that answer them, and show long texts page by page."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .keyboard import Key, Keyboard
from .layout import NARROWEST, continued, fitted
from .tty import Terminal

Render = Callable[..., str]
"""Returns the text of a question for `width` columns and `height` lines."""

PASTED = 'Several keys at once, as in a paste, are ignored. Press one key.'
OTHER_KEY = 'That key is ignored. Press one of the keys below.'
OTHER_KEY_HERE = 'That key is ignored here. Press a key named in the question; Esc goes back.'
TOO_NARROW = 'Too narrow to approve.'

_DENYING = frozenset({'n', 'N', 'q', 'escape'})
"""Keys that are accepted even if the screen does not show the whole question, because they never approve a call."""


class Dialogue:
    """Draws questions, and redraws them after the terminal was resized or another program used it.

    While the approver answers, only the question and any hints above it are rewritten. The cursor is hidden while keys
    are ignored.
    """

    _render: Render  # of the current question

    def __init__(self, terminal: Terminal, keyboard: Keyboard) -> None:
        """Use a terminal that is in raw mode. `keyboard` must read the keys of this terminal."""
        self.terminal = terminal
        self.keyboard = keyboard
        self._size = self._seen = terminal.size
        self._rows_above = 0
        self._question = ''

    def draw(self, render: Render) -> None:
        """Draw a question below the current output."""
        self._render = render
        self._size = self._seen = self.terminal.size
        drawn = render(width=self._size[0], height=self._size[1])
        self.terminal.show_cursor(is_shown=False)
        self.terminal.write(f'\n{drawn}')
        self._rows_above = 0
        self._question = drawn.rpartition('\n')[2]

    def show(self, *lines: str, question: str | None = None) -> None:
        """Replace the question and any hints above it.

        Args:
            *lines: Escaped lines. Long lines are wrapped, with a mark before each continuation row.
            question: New last line, cut to the width; `None` keeps the old question.
        """
        room, height = self.terminal.size[0] - 1, self.terminal.size[1]
        last = self._question if question is None else fitted(question, room)
        plain = self.terminal.is_plain
        rows = [row for line in lines for row in continued(line, room, indent='    ', ascii_only=plain)]
        if len(rows) >= height:
            rows.append(fitted(f'{len(rows)} rows do not fit; scroll up to see all.', room))
        self._put(''.join(f'{row}\n' for row in rows) + last)
        self._rows_above = len(rows)

    def end(self, *rows: str) -> None:
        """Replace the question with final rows, which may have colours and must fit the width."""
        self._put(''.join(f'{row}\n' for row in rows))

    def leave(self) -> None:
        """Continue on a new line, after another program wrote to the screen."""
        self.terminal.write('\n')
        self._rows_above = 0

    def _put(self, text: str) -> None:
        up = f'\x1b[{self._rows_above}A' if self._rows_above else ''
        self.terminal.show_cursor(is_shown=False)
        self.terminal.write('\n' if self.terminal.is_dumb else f'\r{up}\x1b[J')
        self.terminal.write(text)
        self._rows_above = 0

    def key(self, keys: Collection[str], more: Callable[[int], list[str]], hint: str = '') -> str:
        """Wait for a key that answers the question on the screen.

        Args:
            keys: Keys that answer the question.
            more: Function that takes a number of columns and returns the lines to show for the key `?`.
            hint: Line to show above the question.

        Raises:
            Stopped: The approver stops the run.
            Withdrawn: The answer is no longer needed.
            TerminalClosed: The terminal was closed.
        """
        lines = [hint] if hint else []
        if lines:
            self.show(*lines)
        while True:
            key = self._wait(keys, lines)
            if key != '?':
                return key
            lines = more(self.terminal.size[0] - 1)
            self.show(*lines)

    def choose(self, lines: list[str], question: str, keys: Collection[str]) -> str | None:
        """Ask an additional question below the current one. `lines` and `question` must be escaped.

        Returns: One of the keys, or `None` to go back to the first question.
        """
        self.show(*lines, question=question)
        key = self._wait([*keys, 'escape'], lines, question)
        if self._rows_above < self.terminal.size[1]:
            self.show()
        else:  # the box is out of sight
            self.draw(self._render)
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
                self.show(*lines, hint, question=question)
                if key == 'paste':
                    self.keyboard.settle()
                self.terminal.show_cursor(is_shown=True)
            elif key is not None or self._is_disturbed():
                self.terminal.enter()
                self.draw(self._render)
                self.show(*lines, question=question)
                self.keyboard.settle()

    def _is_shown(self) -> bool:
        """Return whether the screen still shows the question as it was drawn. Return `False` if the terminal has become
        narrower and wraps rows.

        A wrapped row would continue without a frame, and its text could look like the question (test_prompt.py).
        """
        return self._size == self.terminal.size and self._size[0] >= NARROWEST

    def _is_disturbed(self) -> bool:
        if not self.terminal.is_raw:
            return True
        # Dragging the corner of the window changes the size many times; wait for the last.
        is_same, self._seen = self._seen == self.terminal.size, self.terminal.size
        return is_same and self._seen != self._size


_OTHER_SCREEN, _OWN_SCREEN = '\x1b[?1049h', '\x1b[?1049l'


def page(terminal: Terminal, keyboard: Keyboard, lines_for: Callable[[int], list[str]]) -> None:
    """Show a text on the alternate screen, if the terminal has one, until the approver goes back.

    A pager such as `less` is not used, because it can start other programs. `lines_for` returns escaped lines that fit
    into a number of columns.
    """
    terminal.control(_OTHER_SCREEN)
    try:
        _page(terminal, keyboard, lines_for)
    finally:
        terminal.control(_OWN_SCREEN)


def _page(terminal: Terminal, keyboard: Keyboard, lines_for: Callable[[int], list[str]]) -> None:
    size, room, top = (0, 0), 1, 0
    lines: list[str] = []
    moves: list[str] = []
    while True:
        is_raw, is_resized = terminal.is_raw, size != terminal.size
        if not is_raw:
            terminal.enter()
            terminal.control(_OTHER_SCREEN)
        if is_resized:
            size = terminal.size
            lines, room = lines_for(size[0]), max(1, size[1] - 1)
        for name in [*moves, '']:
            by = {
                ' ': room, 'f': room, 'page_down': room, 'b': -room, 'page_up': -room,
                'j': 1, 'down': 1, 'enter': 1, 'k': -1, 'up': -1,
                'g': -len(lines), 'home': -len(lines), 'G': len(lines), 'end': len(lines),
            }.get(name, 0)  # fmt: skip
            top = max(0, min(top + by, len(lines) - room))
        if moves or is_resized or not is_raw:
            shown = lines[top : top + room]
            place = f'lines {top + 1}-{top + len(shown)} of {len(lines)}   space: on   b: back   q: to the question'
            terminal.control('\x1b[H\x1b[J')
            dumb = '\n' if terminal.is_dumb else ''
            body = ''.join(f'{line}\n' for line in shown)
            terminal.write(f'{dumb}{body}{place[: size[0] - 1]}')
        moves = [event.name for event in keyboard.read() if isinstance(event, Key)]
        if not {'q', 'escape', 'v'}.isdisjoint(moves):
            return
