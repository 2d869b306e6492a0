"""What a command writes: nothing that comes from outside can draw on the terminal."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO


class Output:
    """Standard output for answers, standard error for everything else. Either may be closed."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Write to the process's own streams, unless others are given."""
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err

    def line(self, text: str = '') -> None:
        """One line of an answer. What is no plain visible character is escaped, line ends too.

        Raises:
            OSError: It cannot be written; `BrokenPipeError` if nobody reads it any more.
        """
        _write(self._out, text)

    def json(self, value: Any) -> None:
        """One JSON value on one line, in ASCII, and out of this process when this returns.

        Raises:
            OSError: As for `line`.
        """
        # JSON leaves DEL as it is.
        _write(self._out, json.dumps(value).replace('\x7f', '\\u007f'))
        self.flush()

    def note(self, text: str) -> None:
        """One line for the person, beside the answer."""
        _write(self._err, f'tool-approval: {text}')

    def ask(self, question: str) -> str:
        """Ask the person at the terminal. The answer is what was typed, without blanks around it; empty at its end."""
        if self._out is not None:
            self._out.write(f'{shown(question, self._out)} ')
        self.flush()
        return sys.stdin.readline().strip()

    def confirm(self, question: str) -> bool:
        """Whether the person at the terminal answers `y` or `yes`; everything else is a no."""
        return self.ask(f'{question} [y/N]').lower() in ('y', 'yes')

    def flush(self) -> None:
        """Hand everything over.

        Raises:
            OSError: As for `line`.
        """
        if self._out is not None:
            self._out.flush()


def shown(text: str, stream: TextIO | None) -> str:
    """Text from anywhere, as one line that draws itself and nothing else."""
    if text.isascii() and text.isprintable() and '<U+' not in text:
        return text
    # Attack: a file name or an argument that moves the cursor, reads backwards, or hides what follows
    # (test_output.py). Imported here: most text is plain.
    from tool_approval.display.escape import escape_line

    encoding = (getattr(stream, 'encoding', None) or 'ascii').lower()
    return escape_line(text, ascii_only=encoding.replace('-', '') != 'utf8')


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(f'{shown(text, stream)}\n')
