"""What a command writes, and what ends it: nothing that comes from outside can draw on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final, TextIO

FAILED: Final = 2
"""It was called wrongly, or could not be done."""
INTERRUPTED: Final = 130
"""Ctrl-C; the shell's own number for it."""
NOBODY_READS: Final = 141
"""The reader of the output has gone, as `head` does; the shell's own number for it."""


class UsageError(Exception):
    """A command was called wrongly. Nothing has happened."""


class Output:
    """Standard output for answers, standard error for everything else. Either may be closed.

    Writing raises an `OSError` where the stream cannot take it; `BrokenPipeError` if its reader has gone.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Write to the process's own streams, unless others are given."""
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err

    def line(self, text: str) -> None:
        """One line of an answer. Whatever is not a plain visible character is escaped, line ends too."""
        _write(self._out, text)

    def json(self, value: Any) -> None:
        """One JSON value on one line, in ASCII, and out of this process when this returns."""
        # JSON leaves DEL as it is.
        _write(self._out, json.dumps(value).replace('\x7f', '\\u007f'))
        self.flush()

    def note(self, text: str) -> None:
        """One line for the person, beside the answer."""
        _write(self._err, f'tool-approval: {text}')

    def confirm(self, question: str, otherwise: str, details: Sequence[str] = ()) -> bool:
        """Whether the person at the terminal presses `y`; after every other key, a note says `otherwise`.

        If there are `details`, `?` shows them, a line each, and asks again.
        """
        self.flush()
        asked = f'{shown(question, self._out)} [y/N{", ? for details" if details else ""}] '
        key = pressed_key(asked)
        while key == '?' and details:
            key = pressed_key(''.join(f'{shown(line, self._out)}\n' for line in details) + asked)
        agrees = key in ('y', 'Y')
        if not agrees:
            self.note(otherwise)
        return agrees

    def agrees(self, question: str, otherwise: str, details: Sequence[str] = ()) -> bool:
        """As `confirm`, for a command that takes `--yes`.

        Raises:
            UsageError: Standard input or output is not a terminal.
        """
        self.check_terminal(otherwise)
        return self.confirm(question, otherwise, details)

    def check_terminal(self, otherwise: str) -> None:
        """Check that there is a person to ask.

        Raises:
            UsageError: Standard input or output is not a terminal.
        """
        if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
            raise UsageError(f'nobody can be asked here, so {otherwise}; use a terminal, or `--yes`')

    def flush(self) -> None:
        """Hand everything over."""
        if self._out is not None:
            self._out.flush()


def pressed_key(question: str, *, device: str = '/dev/tty') -> str | None:
    """Ask an escaped question at the terminal, and wait for one key; keys typed ahead and pastes answer nothing.

    Returns:
        The key's name; `None` where there is no terminal, or where it was closed.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    from tool_approval.ui.terminal.keyboard import Keyboard, Stopped
    from tool_approval.ui.terminal.tty import NoTerminal, TerminalClosed, raw_terminal

    try:
        with raw_terminal(device) as terminal:
            terminal.write(question)
            keyboard = Keyboard(terminal)
            keyboard.settle()
            while (key := keyboard.press()) in (None, 'paste'):
                terminal.control('' if key is None else '\a')
            terminal.write('y\n' if key in ('y', 'Y') else '?\n' if key == '?' else 'n\n')
            return key
    except Stopped:
        raise KeyboardInterrupt from None
    except (NoTerminal, TerminalClosed):
        return None


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
