"""The last lines on the screen, which are written anew while a person answers. All above them stays as it is."""

from __future__ import annotations

from collections.abc import Sequence

from tool_approval.display import cell_width

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


def fitted(text: str, columns: int) -> str:
    """The text, or its beginning and an ellipsis, in so many columns."""
    if cell_width(text) <= columns:
        return text
    text = text[: 2 * columns]
    while text and cell_width(text) > columns - 3:
        text = text[:-1]
    return f'{text}...'
