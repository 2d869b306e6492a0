"""Print the output of commands and define exit statuses. Untrusted text in the output cannot control the terminal."""

from __future__ import annotations

import json
import sys
from typing import Any, Final, TextIO

FAILED: Final = 2
"""Exit status of a command that failed or was called wrongly."""
INTERRUPTED: Final = 130
"""Exit status after Ctrl-C. Shells use the same status."""
NOBODY_READS: Final = 141
"""Exit status if the program that reads the output, such as `head`, has ended. Shells use the same status."""


class UsageError(Exception):
    """A command was called wrongly and did nothing."""


class Output:
    """Writes answers to standard output, and everything else to standard error. A stream may be closed.

    Writing to a failed stream raises `OSError`, and writing to a closed pipe raises `BrokenPipeError`.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Use the given streams, or else those of the process."""
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err

    def line(self, text: str) -> None:
        """Write one line of an answer. Line ends and other invisible characters are escaped."""
        _write(self._out, text)

    def json(self, value: Any) -> None:
        """Write one JSON value on one line, in ASCII, and flush the stream."""
        # JSON does not escape DEL.
        _write(self._out, json.dumps(value).replace('\x7f', '\\u007f'))
        self.flush()

    def note(self, text: str) -> None:
        """Write one line for the user to standard error."""
        _write(self._err, f'tool-approval: {text}')

    def confirm(self, question: str, otherwise: str, *, enter: bool = False) -> bool:
        """Return whether the user presses `y` at the terminal. If not, write the text given as `otherwise`.

        With `enter`, the Enter key means `y`, too.
        """
        self.flush()
        key = pressed_key(f'{shown(question, self._out)} [{"Y/n" if enter else "y/N"}] ', enter=enter)
        agrees = key in ('y', 'Y') or (enter and key == 'enter')
        if not agrees:
            self.note(otherwise)
        return agrees

    def agrees(self, question: str, otherwise: str) -> bool:
        """Ask the question with `confirm`, for a command that has the option `--yes`.

        Raises:
            UsageError: Standard input or output is not a terminal.
        """
        self.check_terminal(otherwise)
        return self.confirm(question, otherwise)

    def check_terminal(self, otherwise: str) -> None:
        """Raise an exception if no user can answer questions at the terminal.

        Raises:
            UsageError: Standard input or output is not a terminal.
        """
        if not self.is_terminal:
            raise UsageError(f'without a terminal, the command cannot ask, so {otherwise}; use a terminal, or `--yes`')

    @property
    def is_terminal(self) -> bool:
        """Whether standard input and output are a terminal."""
        return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))

    def flush(self) -> None:
        """Flush standard output."""
        if self._out is not None:
            self._out.flush()


def pressed_key(question: str, *, enter: bool = False, device: str = '/dev/tty') -> str | None:
    """Show a question at the terminal, and wait for one key. The question must be escaped already. Pasted text is
    ignored, and so are keys that were typed before the question.

    Returns:
        The key's name, or `None` if there is no terminal or the terminal was closed.

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
            terminal.write('y\n' if key in ('y', 'Y') or (enter and key == 'enter') else '?\n' if key == '?' else 'n\n')
            return key
    except Stopped:
        raise KeyboardInterrupt from None
    except (NoTerminal, TerminalClosed):
        return None


def shown(text: str, stream: TextIO | None) -> str:
    """Return the text, escaped, as one line that is safe to print."""
    if text.isascii() and text.isprintable() and '<U+' not in text:
        return text
    # Attack: a file name or an argument moves the cursor, reverses text, or hides what follows (test_output.py).
    # Imported here, because most text is plain.
    from tool_approval.display.escape import escape_line

    encoding = (getattr(stream, 'encoding', None) or 'ascii').lower()
    return escape_line(text, ascii_only=encoding.replace('-', '') != 'utf8')


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(f'{shown(text, stream)}\n')
