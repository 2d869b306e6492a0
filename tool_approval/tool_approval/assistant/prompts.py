"""Ask the user for one message after another at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from tool_approval.ui.terminal.draft import LONGEST_DRAFT, Draft
from tool_approval.ui.terminal.keyboard import Event, Key, Keyboard, Stopped
from tool_approval.ui.terminal.tty import TTY, NoTerminal, Terminal, TerminalClosed, raw_terminal

from .errors import AssistantError

PROMPT = '> '
"""Prompt before the user's input."""

_VERTICAL = frozenset({Key('up'), Key('down')})

LEAVES = 'Press Ctrl-C again, or Ctrl-D, to quit.'


class Prompts:
    """Messages that the user types at a terminal.

    A paste is one message, even if it has several lines. Enter sends the message. Alt-Enter begins a new line, and so
    does Enter after a backslash. The first Ctrl-C clears the input. The history is kept only in memory, because
    messages may be secret.
    """

    def __init__(self, device: str = TTY) -> None:
        """Read from the terminal `device`."""
        self._device = device
        self.history: list[str] = []
        """Earlier messages, newest last. The up and down keys recall earlier messages."""

    def __iter__(self) -> Iterator[str]:
        """Yield messages until the user leaves."""
        while (message := self.ask()) is not None:
            yield message

    def ask(self, above: Callable[[], Callable[[], object] | None] = lambda: None) -> str | None:
        """Wait for a message.

        Args:
            above: Function that is called regularly, and may return another function, which writes above the input.

        Returns:
            The message without surrounding blanks, or `None` if the user leaves.

        Raises:
            AssistantError: The terminal cannot be read.
        """
        try:
            with raw_terminal(self._device) as terminal:
                message = _Typing(terminal, self.history).message(above)
        except NoTerminal as error:
            raise AssistantError(f'cannot read from the terminal: {error}') from None
        except TerminalClosed:
            return None
        return message


class _Typing:
    """Reads one message."""

    def __init__(self, terminal: Terminal, history: list[str]) -> None:
        self._terminal = terminal
        self._history = history
        self._draft = Draft(terminal, PROMPT)
        self._place = len(history)
        self._unsent = ''

    def message(self, above: Callable[[], Callable[[], object] | None]) -> str | None:
        """Return the message, or `None` if the user leaves."""
        keyboard, may_leave = Keyboard(self._terminal, longest_paste=LONGEST_DRAFT + 1), False
        self._terminal.show_cursor(is_shown=True)
        self._terminal.write('\n')
        self._draft.draw()
        while True:
            if (write := above()) is not None:
                self._draft.erase()
                write()
                self._draft.draw()
            try:
                events = keyboard.read()
            except Stopped:
                self._draft.end()
                if may_leave and not self._draft.text:
                    return None
                may_leave = True
                self._clear()
                continue
            if not events:
                self._look()
                continue
            may_leave = False
            if events == [Key('ctrl_d')] and not self._draft.text:
                self._draft.end()
                return None
            if self._take(events) and (message := self._draft.text.strip()):
                self._draft.end()
                self._remember(message)
                return message
            self._draft.draw()

    def _take(self, events: list[Event]) -> bool:
        """Apply the keys to the input, and return whether the last key sends the message."""
        # A batch of events ends when input pauses: an Enter at its end sends, and others begin a new line.
        is_ended = events[-1] == Key('enter')
        for is_vertical, some in groupby(events[:-1] if is_ended else events, key=_VERTICAL.__contains__):
            if not is_vertical:
                self._draft.take(list(some))
                continue
            for event in some:
                by = -1 if event == Key('up') else 1
                if not self._draft.move_line(by):
                    self._recall(self._place + by)
        if is_ended and self._draft.ends_in_backslash():
            self._draft.take([Key('enter')])
            return False
        return is_ended

    def _recall(self, place: int) -> None:
        if 0 <= place <= len(self._history):
            if self._place == len(self._history):
                self._unsent = self._draft.text
            self._place = place
            self._draft.set([*self._history, self._unsent][place])

    def _clear(self) -> None:
        """Start a new input line. The up key recalls the text of the previous line."""
        if self._draft.text:
            self._remember(self._draft.text)
        else:
            self._terminal.write(f'{LEAVES}\n')
        self._place = len(self._history)
        self._draft.set('')
        self._draft.draw()

    def _look(self) -> None:
        """Redraw the input if the terminal was resized or this process was stopped."""
        was_stopped = not self._terminal.is_raw
        if was_stopped:
            self._terminal.enter()
            self._terminal.show_cursor(is_shown=True)
        if was_stopped or self._draft.is_resized:
            self._draft.erase()
            self._draft.draw()

    def _remember(self, text: str) -> None:
        if text not in self._history[-1:]:
            self._history.append(text)
