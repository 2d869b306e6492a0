"""Edit a text of several lines at the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tool_approval.display import cell_width, escape_line, wrap

from .keyboard import Event, Key, Paste
from .line import MOVES, Line
from .tty import Terminal

LONGEST_DRAFT = 1_000_000
"""Maximum number of characters in a text. Models do not accept longer messages."""

_ACROSS_LINES = frozenset({'left', 'right', 'backspace', 'delete'})
_ABOVE, _BELOW, _LEFT_OUT = '[more above]', '[more below]', '[too long: the rest was left out]'


class Draft:
    """An editable text with a cursor. Pasted control characters are shown escaped.

    On a terminal that cannot move its cursor, only the current line is redrawn.
    """

    def __init__(self, terminal: Terminal, prompt: str) -> None:
        """Start with an empty text. The first row begins with `prompt`, and all other rows are indented by blanks."""
        self._terminal = terminal
        self._prompt = prompt
        self._size = terminal.size
        self._row = 0
        self.text = ''
        self._at = 0
        self._is_cut = False

    def set(self, text: str) -> None:
        """Replace the text, and move the cursor to its end."""
        self.text = text[:LONGEST_DRAFT]
        self._at = len(self.text)
        self._is_cut = False

    def take(self, events: Sequence[Event]) -> None:
        """Apply typed keys and pastes. Enter begins a new line. Text beyond the limit is ignored."""
        typed = ''
        for event in events:
            match event:
                case Paste(text):
                    typed += text
                case Key('enter' | 'alt_enter'):
                    typed += '\n'
                case Key('tab'):
                    typed += '\t'
                case Key(name) if len(name) == 1:
                    typed += name
                case _:
                    self._insert(typed)
                    typed = ''
                    self._edit(event.name)
        self._insert(typed)

    def move_line(self, by: int) -> bool:
        """Move the cursor to the previous line (-1) or the next line (1), and return whether that line exists."""
        lines, number = self.text.split('\n'), self.text.count('\n', 0, self._at)
        if not 0 <= number + by < len(lines):
            return False
        column = self._at - self._line_start()
        self._at = sum(len(line) + 1 for line in lines[: number + by]) + min(column, len(lines[number + by]))
        return True

    def ends_in_backslash(self) -> bool:
        """Delete a backslash before the cursor, and return whether there was one."""
        if self.text[: self._at][-1:] != '\\':
            return False
        self._edit('backspace')
        return True

    def draw(self) -> None:
        """Redraw the text."""
        if self._terminal.is_dumb:
            self._draw_line()
            return
        columns, height = self._size = self._terminal.size
        rows, row, column = self._rows(max(10, columns - 3), max(3, height - 2))
        back = len(rows) - 1 - row
        shown = '\n'.join(rows)
        up = f'\x1b[{back}A' if back else ''
        self._terminal.write(f'{self._start()}{shown}{up}\r\x1b[{column}C')
        self._row = row

    def erase(self) -> None:
        """Erase the text from the screen, so that other output can take its place."""
        self._terminal.write('\n' if self._terminal.is_dumb else self._start())
        self._row = 0

    def end(self) -> None:
        """Leave the text on the screen, and continue below it."""
        self._at = len(self.text)
        self.draw()
        self._terminal.write('\n')
        self._row = 0

    @property
    def is_resized(self) -> bool:
        """Whether the terminal was resized after the text was drawn."""
        return not self._terminal.is_dumb and self._size != self._terminal.size

    def _start(self) -> str:
        """Return the control sequence that moves the cursor to the first row and clears the screen below."""
        return (f'\r\x1b[{self._row}A' if self._row else '\r') + '\x1b[J'

    def _insert(self, text: str) -> None:
        added = text[: LONGEST_DRAFT - len(self.text)]
        self._is_cut |= len(added) < len(text)
        self.text = f'{self.text[: self._at]}{added}{self.text[self._at :]}'
        self._at += len(added)

    def _edit(self, name: str) -> None:
        move = MOVES.get(name)
        if move is None:
            return
        start, end = 0, len(self.text)
        if name not in _ACROSS_LINES:
            start = self._line_start()
            end = start + len(self.text[start:].split('\n', 1)[0])
        line, at = move(self.text[start:end], self._at - start)
        self.text = f'{self.text[:start]}{line}{self.text[end:]}'
        self._at = start + at

    def _line_start(self) -> int:
        return self.text.rfind('\n', 0, self._at) + 1

    def _escaped(self, text: str) -> str:
        return escape_line(text, ascii_only=self._terminal.is_plain)

    def _rows(self, room: int, height: int) -> tuple[list[str], int, int]:
        """Return the visible rows with their prompts, and the cursor's row and column."""
        reach = room * height  # text further from the cursor is not on the screen
        first = max(0, self._at - reach)
        before, after = self.text[first : self._at].split('\n'), self.text[self._at : self._at + reach].split('\n')
        typed = self._escaped(before.pop())
        line = typed + self._escaped(after.pop(0))
        parts = wrap(line, room)
        rows = [row for each in before for row in self._broken(each, room)]
        row = len(rows) + max(number for number, (start, _) in enumerate(parts) if start <= len(typed))
        column = cell_width(line[parts[row - len(rows)][0] : len(typed)])
        rows += [line[start:end] for start, end in parts]
        rows += [row for each in after for row in self._broken(each, room)]
        has_more = self._at + reach < len(self.text)
        top = max(0, min(row - height // 2, len(rows) - height))
        shown = rows[top : top + height]
        if first or top:
            shown[0] = _ABOVE
        if has_more or top + height < len(rows):
            shown[-1] = _BELOW
        indent = ' ' * len(self._prompt)
        if self._is_cut:
            shown.append(_LEFT_OUT[:room])
        shown = [f'{indent if number or top else self._prompt}{each}' for number, each in enumerate(shown)]
        return shown, row - top, column + len(self._prompt)

    def _broken(self, line: str, room: int) -> list[str]:
        escaped = self._escaped(line)
        return [escaped[start:end] for start, end in wrap(escaped, room)]

    def _draw_line(self) -> None:
        *before, _ = self.text[: self._at].split('\n')
        for number, line in enumerate(before[self._row :], start=self._row):
            self._terminal.write(f'\r{self._indent(number)}{self._escaped(line)}\n')
        self._row = max(self._row, len(before))
        start = self._line_start()
        line = Line(self.text[start:].split('\n', 1)[0], ascii_only=True)
        line.at = self._at - start
        line.draw(self._terminal, self._indent(len(before)))

    def _indent(self, number: int) -> str:
        return ' ' * len(self._prompt) if number else self._prompt
