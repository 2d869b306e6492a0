"""Write to standard output during a run, but hold output back while a question is open."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TextIO

from tool_approval.display import cell_width, escape_line, wrap
from tool_approval.ui.terminal.tty import is_dumb

UNLIMITED = 1_000_000
"""Line width for a file or pipe, large enough that no line is wrapped."""

NARROWEST = 20
"""Minimum width of a line, even in a narrower terminal."""


class Screen:
    """Writes text that is already escaped. Writing raises `OSError` if the terminal is gone."""

    def __init__(self, out: TextIO | None = None, *, environment: Mapping[str, str] | None = None) -> None:
        """Write to `out` or standard output. `TERM` in `environment` names the terminal type."""
        self._out = sys.stdout if out is None else out
        self.is_terminal = self._out.isatty()
        """Whether the output is a terminal."""
        environment = os.environ if environment is None else environment
        moves = not is_dumb(environment)
        encoding = (getattr(self._out, 'encoding', None) or 'utf-8').lower()
        self.ascii_only = (self.is_terminal and not moves) or encoding.replace('-', '') != 'utf8'
        """Whether to write only ASCII."""
        self._can_erase = self.is_terminal and moves
        self.has_styles = self._can_erase and not environment.get('NO_COLOR')
        """Whether to write some words bold or dim."""
        self._is_held = False
        self._waiting: list[str] = []
        self._passing = 0
        self._is_at_start = True

    @property
    def columns(self) -> int:
        """Current maximum width of a line: the width of the terminal minus one column."""
        if not self.is_terminal:
            return UNLIMITED
        try:
            columns = os.get_terminal_size(self._out.fileno()).columns
        except OSError:
            columns = 0
        return max(NARROWEST, (columns or 80) - 1)

    @property
    def _rows(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).lines or 24
        except OSError:
            return 24

    def escaped(self, text: str) -> str:
        """Return the text as one line without control characters."""
        return escape_line(text, ascii_only=self.ascii_only)

    def cut(self, line: str) -> str:
        """Return an escaped line, shortened with an ellipsis if it is too long."""
        columns = self.columns
        if len(parts := wrap(line[: 4 * columns], columns)) == 1:
            return line
        [(_, end), *_] = wrap(line[: parts[0][1]], columns - 3)
        return f'{line[:end]}...'

    def say(self, text: str) -> None:
        """Write a message of this program, wrapped to the width of the terminal."""
        shown = self.escaped(text)
        rows = [shown[start:end].strip() for start, end in wrap(shown, self.columns)]
        self.write('\n'.join(rows) + '\n')

    def write(self, text: str) -> None:
        """Write text now, or after the open question has been answered."""
        if self._is_held:
            self._waiting.append(text)
        else:
            self.write_now(text)

    def write_now(self, text: str) -> None:
        """Write text now, even while a question is open."""
        if text:
            self._put(f'{self._erase()}{text}')
            self._is_at_start = text.endswith('\n')

    def pass_by(self, *lines: str) -> None:
        """Show lines that the next output replaces, but only on a terminal and at the start of a line.

        On a low terminal, only the last lines are shown, because lines that have scrolled away cannot be replaced.
        """
        if self._can_erase and self._is_at_start and not self._is_held:
            shown = lines[-max(1, self._rows // 2) :]
            self._put(self._erase() + '\n'.join(map(self.cut, shown)))
            self._passing = len(shown)

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold output back until the `with` block ends, so that a question stays at the end of the screen."""
        self._put(self._erase())
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            waiting, self._waiting = ''.join(self._waiting), []
            self.write_now(waiting)

    def _erase(self) -> str:
        rows, self._passing = self._passing, 0
        if rows < 2:
            return '\r\x1b[K' if rows else ''
        return f'\r\x1b[{rows - 1}A\x1b[J'

    def _put(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()


_UNITS = re.compile(' +|[^ ]+')
_SIGNS = re.compile(r'`|\*\*')
_HEADING = re.compile('#{1,6}')
_ITEM = re.compile(r'[-*+]|[0-9]{1,3}[.)]')
_FENCE = re.compile('```+|~~~+')

_BOLD, _DIM, _PLAIN = '\x1b[1m', '\x1b[2m', '\x1b[0m'
"""Styles for the model's text. None of the styles is a colour, because only the lines of this program are coloured."""


class StreamWrapper:
    """Writes the model's text, wrapped to the width of the terminal. The text is indented, because only the lines of
    this program start in the first column.

    Markdown headings and text in `**` are bold, code fences are dim, and the wrapped lines of a list item are aligned.
    Markdown characters stay visible, because they may be part of a name.
    """

    def __init__(self, screen: Screen) -> None:
        """Write to `screen`."""
        self._screen = screen
        self._word = self._gap = ''
        self._column = 0
        self._has_begun = False
        self._fence = ''
        self._begin_line()

    def add(self, text: str) -> None:
        """Write the complete words. The last word is written later, because the next text may continue the word."""
        *lines, last = f'{self._word}{text}'.split('\n')
        shown = ''.join(self._placed(line) + self._end_line() for line in lines)
        words, blank, self._word = last.rpartition(' ')
        if len(self._word) > self._screen.columns - 2:  # longer than a row, so it is broken as it arrives
            words, blank, self._word = last, '', ''
        self._screen.write(shown + self._placed(words + blank))

    def end(self) -> None:
        """Write the remaining text, and end the line."""
        shown = self._placed(self._word)
        self._screen.write(f'{shown}\n' if self._column else '')
        self._word = self._gap = self._fence = ''
        self._column = 0
        self._has_begun = False
        self._begin_line()

    def _placed(self, text: str) -> str:
        room, placed = self._screen.columns - 2, list[str]()
        for unit in _UNITS.findall(text):
            if unit[0] == ' ':
                self._gap = unit
                continue
            style = self._style(unit)
            shown = self._screen.escaped(unit)
            if self._column and self._column + len(self._gap) + cell_width(shown) > room:
                placed.append(self._new_row())
            if self._has_begun:
                shown = f'{self._gap}{shown}'
            for number, (start, end) in enumerate(wrap(shown, room - self._hang)):
                if number:
                    placed.append(self._new_row())
                if not self._column:
                    bullet = '* ' if self._screen.ascii_only else '\N{BLACK CIRCLE} '
                    placed.append(f'{"  " if self._has_begun else bullet}{" " * self._hang}')
                    self._column = self._hang
                placed.append(f'{style}{shown[start:end]}{_PLAIN if style else ""}')
                self._column += cell_width(shown[start:end])
                self._has_begun = True
            self._gap = ''
            self._hang = self._item
        return ''.join(placed)

    def _style(self, unit: str) -> str:
        """Return the style of the next word, and record whether a style begins or ends in the word."""
        if self._is_first:
            self._is_first = False
            fence = _FENCE.match(unit)
            if fence is not None and self._fence in ('', fence[0]):
                self._fence = '' if self._fence else fence[0]
                self._is_fence = True
            elif not self._fence:
                self._is_heading = _HEADING.fullmatch(unit) is not None
                if _ITEM.fullmatch(unit):
                    self._item = min(len(self._gap) + len(unit) + 1, self._screen.columns // 4)
        is_bold = self._is_heading or self._is_strong
        if not self._fence and not self._is_fence:
            for sign in _SIGNS.finditer(unit):
                before, after = unit[: sign.start()][-1:], unit[sign.end() :][:1]
                if sign[0] == '`':
                    self._is_code = not self._is_code
                elif self._is_strong and before and not self._is_code:
                    self._is_strong = False
                elif after.isalnum() and not before.isalnum() and not self._is_code:
                    self._is_strong = is_bold = True
        if not self._screen.has_styles:
            return ''
        return _DIM if self._is_fence else _BOLD if is_bold else ''

    def _begin_line(self) -> None:
        self._is_first = True
        self._is_heading = self._is_strong = self._is_code = self._is_fence = False
        self._hang = self._item = 0

    def _end_line(self) -> str:
        self._begin_line()
        return self._new_row()

    def _new_row(self) -> str:
        self._column, self._gap = 0, ''
        return '\n' if self._has_begun else ''  # leave out empty lines before the first word
