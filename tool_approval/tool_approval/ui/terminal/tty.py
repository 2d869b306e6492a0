"""Open the controlling terminal, use it in raw mode, and always restore its mode."""

from __future__ import annotations

import codecs
import contextlib
import errno
import locale
import os
import selectors
import signal
import sys
import termios
import threading
from collections.abc import Generator, Mapping
from types import FrameType

TTY = '/dev/tty'
"""Path of the controlling terminal, independent of standard input and output."""

_ROOM = 80, 24
"""Columns and lines of a terminal that does not report its size."""

_LOST = 'this program was moved to the background of its terminal'
_PASTE_ON, _PASTE_OFF = '\x1b[?2004h', '\x1b[?2004l'
_CURSOR_ON, _CURSOR_OFF = '\x1b[?25h', '\x1b[?25l'


def is_dumb(environment: Mapping[str, str]) -> bool:
    """Return whether `TERM` names a type of terminal that cannot move its cursor."""
    return environment.get('TERM', 'dumb') in ('', 'dumb', 'unknown')


class NoTerminal(Exception):
    """There is no terminal for questions. The message gives the reason."""


class TerminalClosed(Exception):
    """The terminal was closed during a question, or another program took it over."""


class Withdrawn(Exception):
    """The answer is no longer needed."""


class Terminal:
    """A terminal, opened for one question. Other threads may call only `wake` and `restore`.

    After a call of `wake`, every method that waits raises `Withdrawn`. If the terminal is closed, or if another program
    uses the terminal, such a method raises `TerminalClosed`.
    """

    def __init__(self, device: str = TTY, *, is_dumb: bool = False) -> None:
        """Open the terminal.

        Args:
            device: Path of the terminal device. Opening the device does not make it the controlling terminal.
            is_dumb: Whether the terminal cannot move its cursor. A dumb terminal gets no control sequences.

        Raises:
            NoTerminal: There is no terminal, or this program runs in the background.
        """
        self._saved: list[int | list[bytes | int]] | None = None
        self.is_dumb = is_dumb
        try:
            # A separate open file: non-blocking mode does not affect standard input and output.
            self._fd = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise NoTerminal(f'there is no terminal ({os.strerror(error.errno or errno.ENXIO)})') from None
        self._wake_read, self._wake_write = os.pipe()
        # Attack: in a terminal without UTF-8, the bytes of a harmless letter can be a control character.
        is_utf8 = codecs.lookup(locale.getpreferredencoding(False)).name == 'utf-8'
        self.encoding = 'utf-8' if is_utf8 else 'ascii'
        problem = None
        if not os.isatty(self._fd):
            problem = f'{device} is not a terminal'
        elif self.is_background:
            problem = 'this program runs in the background of its terminal'
        if problem is not None:
            self.close()
            raise NoTerminal(problem)

    @property
    def is_plain(self) -> bool:
        """Whether to write only ASCII."""
        return self.is_dumb or self.encoding == 'ascii'

    def close(self) -> None:
        """Restore the mode and close the terminal."""
        self.restore()
        for fd in (self._fd, self._wake_read, self._wake_write):
            os.close(fd)

    def wake(self) -> None:
        """Make all current and later reads and writes raise `Withdrawn`. Any thread may call this method."""
        os.write(self._wake_write, b'!')

    @property
    def is_background(self) -> bool:
        """Whether another program controls the terminal. Always `False` if the terminal is not the controlling
        terminal.
        """
        try:
            return os.tcgetpgrp(self._fd) != os.getpgrp()
        except OSError:
            return False

    @property
    def size(self) -> tuple[int, int]:
        """Current columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            return _ROOM
        return columns or _ROOM[0], lines or _ROOM[1]

    @contextlib.contextmanager
    def raw(self) -> Generator[None]:
        """Use raw mode in the block: keys are read one by one and not echoed."""
        with stops(signal.SIG_BLOCK):
            self.enter()
            try:
                yield
            finally:
                self.restore()

    @contextlib.contextmanager
    def lent(self) -> Generator[int]:
        """Restore the terminal's original mode for another program, and yield the terminal's file descriptor."""
        self.restore()
        os.set_blocking(self._fd, True)
        try:
            yield self._fd
        finally:
            os.set_blocking(self._fd, False)
            self.enter()

    def enter(self) -> None:
        """Enter raw mode, whatever the current mode is."""
        if self.is_background:
            raise TerminalClosed(_LOST)
        try:
            if self._saved is None:
                self._saved = termios.tcgetattr(self._fd)
            termios.tcsetattr(self._fd, termios.TCSANOW, _raw(self._saved, self._fd))
        except termios.error:
            raise TerminalClosed('the terminal is gone') from None
        # The cursor stays hidden until keys count.
        self.control(f'{_CURSOR_OFF}{_PASTE_ON}')

    def restore(self) -> None:
        """Restore the original mode. This method may be called repeatedly, and from a signal handler."""
        saved = self._saved
        if saved is None or self.is_background:
            # In the background, another program owns the mode.
            return
        self._saved = None
        with contextlib.suppress(OSError):
            os.write(self._fd, b'' if self.is_dumb else f'{_PASTE_OFF}{_CURSOR_ON}'.encode())
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSANOW, saved)

    @property
    def is_raw(self) -> bool:
        """Whether raw mode is still on. The shell may have turned raw mode off while this program was stopped."""
        if self._saved is None:
            return False
        try:
            return termios.tcgetattr(self._fd)[3] == _raw(self._saved, self._fd)[3]
        except termios.error:
            return True  # closed: reading reports it

    def show_cursor(self, *, is_shown: bool) -> None:
        """Show or hide the cursor. A hidden cursor shows the approver that keys are ignored."""
        self.control(_CURSOR_ON if is_shown else _CURSOR_OFF)

    def control(self, sequence: str) -> None:
        """Write a control sequence, except to a dumb terminal."""
        if not self.is_dumb:
            self.write(sequence)

    def write(self, text: str) -> None:
        """Write a text completely."""
        rest = text.encode(self.encoding, errors='backslashreplace')
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                # Stopped output or a slow line must not prevent withdrawing the question.
                self._wait(for_output=True, timeout_s=None)
            except OSError:
                raise TerminalClosed('the terminal is gone') from None

    def read(self, timeout_s: float) -> bytes | None:
        """Return typed bytes, or `None` after `timeout_s` seconds without input."""
        if not self._wait(for_output=False, timeout_s=timeout_s):
            if self.is_background:
                raise TerminalClosed(_LOST)
            return None
        try:
            data = os.read(self._fd, 4096)
        except BlockingIOError:
            return None
        except OSError:
            data = b''
        if not data:
            raise TerminalClosed(_LOST if self.is_background else 'the terminal was closed')
        return data

    def drop_input(self) -> None:
        """Discard unread input."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def pause(self, seconds: float) -> None:
        """Wait without reading."""
        if _ready([self._wake_read], [], seconds):
            raise Withdrawn

    def _wait(self, *, for_output: bool, timeout_s: float | None) -> bool:
        reading, writing = ([], [self._fd]) if for_output else ([self._fd], [])
        ready = _ready([self._wake_read, *reading], writing, timeout_s)
        if self._wake_read in ready:
            raise Withdrawn
        return bool(ready)


def _ready(reading: list[int], writing: list[int], timeout_s: float | None) -> set[int]:
    # `select` fails with more than a thousand open files, and `poll` on terminals is unreliable outside Linux.
    with selectors.PollSelector() if sys.platform == 'linux' else selectors.SelectSelector() as selector:
        for fds, events in ((reading, selectors.EVENT_READ), (writing, selectors.EVENT_WRITE)):
            for fd in fds:
                selector.register(fd, events)
        return {key.fd for key, _ in selector.select(timeout_s)}


@contextlib.contextmanager
def stops(how: int) -> Generator[None]:
    """Set, within a `with` block, whether signals stop a background process that uses the terminal.

    While these signals are blocked, a background process is not stopped. The process can change the terminal's mode,
    but cannot read from the terminal. Programs that this process starts inherit the blocked signals.

    Args:
        how: `signal.SIG_BLOCK` or `signal.SIG_UNBLOCK`.
    """
    before = signal.pthread_sigmask(how, (signal.SIGTTIN, signal.SIGTTOU))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _raw(saved: list[int | list[bytes | int]], fd: int) -> list[int | list[bytes | int]]:
    """Return the settings of raw mode. Keys, including Ctrl-C, arrive one by one. Ctrl-Z still stops the program."""
    raw = [list(part) if isinstance(part, list) else part for part in saved]
    iflag, _, _, lflag, _, _, characters = raw
    assert isinstance(iflag, int) and isinstance(lflag, int) and isinstance(characters, list)
    raw[0] = iflag & ~(termios.IXON | termios.INLCR | termios.IGNCR | termios.ISTRIP) | termios.ICRNL
    raw[3] = lflag & ~(termios.ICANON | termios.ECHO | termios.IEXTEN) | termios.ISIG
    disabled = bytes([os.fpathconf(fd, 'PC_VDISABLE') & 0xFF])
    characters[termios.VINTR] = characters[termios.VQUIT] = disabled
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    return raw


@contextlib.contextmanager
def raw_terminal(device: str = TTY) -> Generator[Terminal]:
    """Yield the terminal in raw mode. The environment variable `TERM` says whether the terminal can move its cursor."""
    terminal = Terminal(device, is_dumb=is_dumb(os.environ))
    with contextlib.closing(terminal), restored_at_signals(terminal), terminal.raw():
        yield terminal


_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


@contextlib.contextmanager
def restored_at_signals(terminal: Terminal) -> Generator[None]:
    """Restore the terminal if a signal is about to end or stop this process during the `with` block.

    A signal for which the program has a handler keeps that handler. Outside of the main thread, this function does
    nothing. After the program is stopped and continued, `Terminal.is_raw` is `False`.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        terminal.restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # Reached after SIGTSTP, when the program is continued.
        signal.signal(number, handle)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
