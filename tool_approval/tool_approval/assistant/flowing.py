"""Text that comes in pieces of any length, as rows that fit."""

from __future__ import annotations

import re

from tool_approval.display import cell_width, wrap

from .screen import Screen

_UNITS = re.compile(' +|[^ ]+')


class Flow:
    """Writes a model's words. They never begin in the first column, so they cannot pass for what this program says."""

    def __init__(self, screen: Screen) -> None:
        """Nothing was said.

        Args:
            screen: Where it is shown.
        """
        self._screen = screen
        self._word = ''
        self._gap = ''
        self._column = 0
        self._has_begun = False
        self._out: list[str] = []

    def add(self, text: str) -> None:
        """Show all that is complete: the last word may go on in the next piece."""
        first, *rest = text.split('\n')
        self._take(first)
        for line in rest:
            self._end_row()
            self._take(line)
        self._hand_over()

    def end(self) -> None:
        """Nothing follows: end the last line."""
        if self._word or self._column:
            self._end_row()
        self._has_begun = False
        self._hand_over()

    def _take(self, text: str) -> None:
        whole, blank, self._word = f'{self._word}{text}'.rpartition(' ')
        self._place(whole + blank)
        if len(self._word) > self._room:  # no blank for a whole row: it is broken as it comes
            word, self._word = self._word, ''
            self._place(word)

    def _end_row(self) -> None:
        word, self._word = self._word, ''
        self._place(word)
        if self._has_begun:  # empty lines before the first word are left out
            self._new_row()

    @property
    def _room(self) -> int:
        return self._screen.columns - 2

    def _place(self, text: str) -> None:
        room = self._room
        for unit in _UNITS.findall(text):
            if unit[0] == ' ':
                self._gap = unit if self._has_begun else ''
                continue
            shown = self._screen.escaped(unit)
            if self._column and self._column + len(self._gap) + cell_width(shown) > room:
                self._new_row()
            gap, self._gap = self._gap, ''
            for number, (start, end) in enumerate(wrap(gap + shown, room)):
                if number:
                    self._new_row()
                self._put((gap + shown)[start:end])

    def _new_row(self) -> None:
        self._out.append('\n')
        self._column = 0
        self._gap = ''

    def _put(self, shown: str) -> None:
        if not self._column:
            self._out.append('  ' if self._has_begun else ('* ' if self._screen.ascii_only else '\N{BLACK CIRCLE} '))
        self._has_begun = True
        self._out.append(shown)
        self._column += cell_width(shown)

    def _hand_over(self) -> None:
        text, self._out = ''.join(self._out), []
        self._screen.write(text)
