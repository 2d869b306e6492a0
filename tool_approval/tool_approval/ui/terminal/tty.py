"""The controlling terminal: opened by name, put into raw mode, and always put back."""

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
"""The controlling terminal, whatever standard input and output are."""

_ROOM = 80, 24
"""Columns and lines of a terminal that does not tell."""

_LOST = 'this program went into the background of its terminal'
_PASTE_ON, _PASTE_OFF = '\x1b[?2004h', '\x1b[?2004l'
_CURSOR_ON, _CURSOR_OFF = '\x1b[?25h', '\x1b[?25l'


def is_dumb(environment: Mapping[str, str]) -> bool:
    """Whether the terminal that `TERM` names cannot move its cursor."""
    return environment.get('TERM', 'dumb') in ('', 'dumb', 'unknown')


class NoTerminal(Exception):
    """There is no terminal to ask on; the text says why, for a person."""


class TerminalClosed(Exception):
    """The terminal went away while somebody was asked, or this program lost it to another."""


class Withdrawn(Exception):
    """Nobody waits for the answer any more."""


class Terminal:
    """One terminal, for one question. Not safe to share, but for `wake` and `restore`.

    What waits for it raises `Withdrawn` once `wake` was called, and `TerminalClosed` where it is gone or another
    program has it.
    """

    def __init__(self, device: str = TTY, *, is_dumb: bool = False) -> None:
        """Open it.

        Args:
            device: Its name. It never becomes the controlling terminal by this.
            is_dumb: Whether it cannot move its cursor: it is sent text alone then.

        Raises:
            NoTerminal: There is none, or this program is in its background.
        """
        self._saved: list[int | list[bytes | int]] | None = None
        self.is_dumb = is_dumb
        try:
            # A description of our own: that it does not block changes nothing for standard input and output.
            self._fd = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise NoTerminal(f'there is no terminal ({os.strerror(error.errno or errno.ENXIO)})') from None
        self._wake_read, self._wake_write = os.pipe()
        # Attack: in a terminal that is not UTF-8, the bytes of a harmless letter can be a control character.
        is_utf8 = codecs.lookup(locale.getpreferredencoding(False)).name == 'utf-8'
        self.encoding = 'utf-8' if is_utf8 else 'ascii'
        problem = None
        if not os.isatty(self._fd):
            problem = f'{device} is no terminal'
        elif self.is_background:
            problem = 'this program runs in the background of its terminal'
        if problem is not None:
            self.close()
            raise NoTerminal(problem)

    @property
    def is_plain(self) -> bool:
        """Whether it is better sent ASCII alone."""
        return self.is_dumb or self.encoding == 'ascii'

    def close(self) -> None:
        """Put the terminal back and let go of it."""
        self.restore()
        for fd in (self._fd, self._wake_read, self._wake_write):
            os.close(fd)

    def wake(self) -> None:
        """Let the read or write that waits, and all later ones, raise `Withdrawn`. May be called from any thread."""
        os.write(self._wake_write, b'!')

    @property
    def is_background(self) -> bool:
        """Whether another program has the terminal. One that is not the controlling terminal is always ours."""
        try:
            return os.tcgetpgrp(self._fd) != os.getpgrp()
        except OSError:
            return False

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            return _ROOM
        return columns or _ROOM[0], lines or _ROOM[1]

    @contextlib.contextmanager
    def raw(self) -> Generator[None]:
        """Each key is read as it is pressed and not echoed, until the block ends."""
        with stops(signal.SIG_BLOCK):
            self.enter()
            try:
                yield
            finally:
                self.restore()

    @contextlib.contextmanager
    def lent(self) -> Generator[int]:
        """The terminal as it was before, for another program; yields its descriptor."""
        self.restore()
        os.set_blocking(self._fd, True)
        try:
            yield self._fd
        finally:
            os.set_blocking(self._fd, False)
            self.enter()

    def enter(self) -> None:
        """Go into raw mode, whatever mode it was put into meanwhile."""
        if self.is_background:
            raise TerminalClosed(_LOST)
        try:
            if self._saved is None:
                self._saved = termios.tcgetattr(self._fd)
            termios.tcsetattr(self._fd, termios.TCSANOW, _raw(self._saved, self._fd))
        except termios.error:
            raise TerminalClosed('the terminal is gone') from None
        # In one piece: what is typed before a question is drawn answers nothing.
        self.control(f'{_CURSOR_OFF}{_PASTE_ON}')

    def restore(self) -> None:
        """Put the terminal back as it was. May be called again, and from a signal handler."""
        saved = self._saved
        if saved is None or self.is_background:
            # In the background its state is another program's.
            return
        self._saved = None
        with contextlib.suppress(OSError):
            os.write(self._fd, b'' if self.is_dumb else f'{_PASTE_OFF}{_CURSOR_ON}'.encode())
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSANOW, saved)

    @property
    def is_raw(self) -> bool:
        """Whether it is still in the mode of `enter`: a shell that stopped and continued us may have changed it."""
        if self._saved is None:
            return False
        try:
            return termios.tcgetattr(self._fd)[3] == _raw(self._saved, self._fd)[3]
        except termios.error:
            return True  # gone: reading says so

    def show_cursor(self, *, is_shown: bool) -> None:
        """A hidden cursor means: what is typed now answers nothing."""
        self.control(_CURSOR_ON if is_shown else _CURSOR_OFF)

    def control(self, sequence: str) -> None:
        """Write a control sequence of ours, which a dumb terminal is spared."""
        if not self.is_dumb:
            self.write(sequence)

    def write(self, text: str) -> None:
        """Write all of it."""
        rest = text.encode(self.encoding, errors='backslashreplace')
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                # Stopped output, or a slow line: it must not keep the question from being withdrawn.
                self._wait(for_output=True, timeout_s=None)
            except OSError:
                raise TerminalClosed('the terminal is gone') from None

    def read(self, timeout_s: float) -> bytes | None:
        """What was typed, or `None` when nothing was for so many seconds."""
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
        """Forget what was typed and not yet read."""
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
    # `select` fails where a process has more than a thousand files open; but where it is not Linux, polling a terminal
    # is not to be relied on.
    with selectors.PollSelector() if sys.platform == 'linux' else selectors.SelectSelector() as selector:
        for fds, events in ((reading, selectors.EVENT_READ), (writing, selectors.EVENT_WRITE)):
            for fd in fds:
                selector.register(fd, events)
        return {key.fd for key, _ in selector.select(timeout_s)}


@contextlib.contextmanager
def stops(how: int) -> Generator[None]:
    """Until the block ends, block the signals that stop what is in the background, or unblock them.

    Blocked, reading there fails and changing the mode is allowed, where it would stop the whole process. A program that
    is started inherits what its thread blocks.

    Args:
        how: `signal.SIG_BLOCK` or `signal.SIG_UNBLOCK`.
    """
    before = signal.pthread_sigmask(how, (signal.SIGTTIN, signal.SIGTTOU))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _raw(saved: list[int | list[bytes | int]], fd: int) -> list[int | list[bytes | int]]:
    """The mode in which keys arrive one by one. Ctrl-C is a key; Ctrl-Z still stops the program."""
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
    """The terminal in raw mode, until the block ends; `TERM` of the process says what it can do."""
    terminal = Terminal(device, is_dumb=is_dumb(os.environ))
    with contextlib.closing(terminal), restored_at_signals(terminal), terminal.raw():
        yield terminal


_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


@contextlib.contextmanager
def restored_at_signals(terminal: Terminal) -> Generator[None]:
    """Until the block ends, a signal that nobody handles puts the terminal back before it does what it does.

    Only Python's main thread may handle signals; in another, and for those that the program handles itself, nothing is
    done here. A program that was stopped and continued finds out for itself; see `Terminal.is_raw`.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        terminal.restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # After SIGTSTP, this is when the program goes on.
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
