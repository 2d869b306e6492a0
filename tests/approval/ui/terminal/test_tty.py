"""The terminal itself: lost, stopped, changed by others."""

import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Generator
from contextlib import suppress

import pytest
from tool_approval.ui.terminal.dialogue import Dialogue, page
from tool_approval.ui.terminal.keyboard import Event, Key, Keyboard, Paste
from tool_approval.ui.terminal.tty import NoTerminal, Terminal, TerminalClosed, Withdrawn, restored_at_signals


class Line:
    """Both ends of a pseudo-terminal."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.device = os.ttyname(self.slave)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))

    def hang_up(self) -> None:
        master, self.master = self.master, -1
        os.close(master)

    def shown(self, last: str) -> str:
        """What was written, up to `last`."""
        told = ''
        while last not in told:
            told += os.read(self.master, 65_536).decode()
        return told

    def mode(self) -> object:
        return termios.tcgetattr(self.slave)


@pytest.fixture
def line() -> Generator[Line]:
    made = Line()
    yield made
    for fd in (made.master, made.slave):
        with suppress(OSError):
            os.close(fd)


@pytest.fixture
def terminal(line: Line) -> Generator[Terminal]:
    made = Terminal(line.device)
    yield made
    made.close()


@pytest.fixture
def in_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'tcgetpgrp', lambda fd: os.getpgrp() + 1)


def test_background_process_has_no_terminal(line: Line, in_background: None) -> None:
    with pytest.raises(NoTerminal, match='runs in the background of its terminal'):
        Terminal(line.device)


def test_a_program_that_goes_into_the_background_cannot_ask(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, 'tcgetpgrp', lambda fd: os.getpgrp() + 1)

    with pytest.raises(TerminalClosed, match='background'):
        terminal.enter()
    with pytest.raises(TerminalClosed, match='background'):
        terminal.read(0)


def test_closed_terminal_raises_terminal_closed(line: Line, terminal: Terminal) -> None:
    terminal.enter()

    line.hang_up()

    assert terminal.size == (80, 24)
    assert terminal.is_raw
    with pytest.raises(TerminalClosed, match='the terminal was closed'):
        terminal.read(0)
    with pytest.raises(TerminalClosed, match='the terminal is gone'):
        terminal.write('x')


def test_closed_terminal_cannot_be_entered(line: Line, terminal: Terminal) -> None:
    line.hang_up()

    with pytest.raises(TerminalClosed, match='the terminal is gone'):
        terminal.enter()


def test_terminal_is_raw_only_inside_the_context(line: Line, terminal: Terminal) -> None:
    before = line.mode()

    with terminal.raw():
        assert terminal.is_raw
        assert line.mode() != before

    assert not terminal.is_raw
    assert line.mode() == before


def test_unread_output_does_not_block_a_withdrawal(terminal: Terminal) -> None:
    terminal.wake()

    with pytest.raises(Withdrawn):
        terminal.write('x' * 1_000_000)


def test_nothing_is_read_where_another_was_faster(
    line: Line, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(fd: int, count: int) -> bytes:
        raise BlockingIOError

    terminal.enter()
    os.write(line.master, b'y')

    with monkeypatch.context() as patched:
        patched.setattr(os, 'read', taken)
        assert terminal.read(10) is None

    assert terminal.read(10) == b'y'


def test_a_read_that_fails_is_a_terminal_that_was_closed(
    line: Line, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(fd: int, count: int) -> bytes:
        raise OSError

    terminal.enter()
    os.write(line.master, b'y')

    with monkeypatch.context() as patched, pytest.raises(TerminalClosed, match='the terminal was closed'):
        patched.setattr(os, 'read', failing)
        terminal.read(10)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP])
def test_a_signal_finds_the_terminal_as_it_was(
    number: int, line: Line, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, object, object]] = []
    monkeypatch.setattr(os, 'kill', lambda pid, sig: sent.append((sig, signal.getsignal(sig), line.mode())))
    before = line.mode()
    terminal.enter()

    with restored_at_signals(terminal):
        handler = signal.getsignal(number)
        signal.raise_signal(number)
        assert signal.getsignal(number) is handler

    assert sent == [(number, signal.SIG_DFL, before)]
    assert signal.getsignal(number) is signal.SIG_DFL


class Typing:
    """A keyboard: each of its reads is prepared."""

    def __init__(self, *reads: list[Event]) -> None:
        self.reads = list(reads)

    def read(self) -> list[Event]:
        return self.reads.pop(0)


def test_a_pager_waits_where_nothing_happens(line: Line, terminal: Terminal) -> None:
    keyboard = Typing([], [Paste('q')], [Key('q')])

    with terminal.raw():
        page(terminal, keyboard, lambda columns: [f'line {n}' for n in range(100)])

    assert keyboard.reads == []
    assert line.shown('\x1b[?1049l').count('lines 1-23 of 100') == 1


def test_a_pager_is_drawn_again_where_another_program_changed_the_mode(line: Line, terminal: Terminal) -> None:
    before = line.mode()

    class Changing(Typing):
        def read(self) -> list[Event]:
            if len(self.reads) == 2:
                termios.tcsetattr(line.slave, termios.TCSANOW, before)
            return super().read()

    with terminal.raw():
        page(terminal, Changing([], [Key('q')]), lambda columns: ['text'])
        assert terminal.is_raw

    assert line.shown('\x1b[?1049l').count('lines 1-1 of 1') == 2


def test_a_pager_on_a_dumb_terminal_needs_no_control_sequence(line: Line) -> None:
    terminal = Terminal(line.device, is_dumb=True)
    try:
        with terminal.raw():
            page(terminal, Typing([Key(' ')], [Key('q')]), lambda columns: [f'line {n}' for n in range(30)])
    finally:
        terminal.close()

    shown = line.shown('lines 8-30 of 30')
    assert '\x1b' not in shown
    assert 'lines 1-23 of 30' in shown


def test_on_a_dumb_terminal_the_question_is_asked_again_below_instead_of_in_its_place(line: Line) -> None:
    terminal = Terminal(line.device, is_dumb=True)
    try:
        with terminal.raw():
            dialogue = Dialogue(terminal, Keyboard(terminal))
            dialogue.draw(lambda *, width, height: 'what it is about\nApprove? ')
            dialogue.show('a hint')
            dialogue.end('Approved.')
    finally:
        terminal.close()

    assert line.shown('Approved.\r\n') == '\r\nwhat it is about\r\nApprove? \r\na hint\r\nApprove? \r\nApproved.\r\n'
