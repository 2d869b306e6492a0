"""Somebody at a pseudo-terminal, in a thread: reads the screen and types what was prepared."""

import asyncio
import fcntl
import os
import pty
import select
import struct
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import pyte
from tool_approval.core.protocols import Presenter
from tool_approval.ui.terminal.terminal_ui import TerminalUI

from tool_approval import ApprovalDecision, ApprovalMemory, ApprovalRequest

Step = tuple[str | tuple[str, ...], str | bytes | Callable[['Person'], object]]
"""What the line of the cursor has to begin with, and what is typed or done then."""


PATIENCE_S = 8.0
"""Only a test that fails waits so long."""


class Person:
    def __init__(self, steps: Sequence[Step], *, columns: int = 80, lines: int = 40, types_again: bool = False) -> None:
        """Sit down.

        Args:
            steps: What to do, in this order.
            columns: Of the terminal.
            lines: Of the terminal.
            types_again: Whether to type once more what nothing came of: a dumb terminal does not show, by hiding its
                cursor, when a key is too early to count.
        """
        self.master, self.slave = pty.openpty()
        self.device = os.ttyname(self.slave)
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._steps = list(steps)
        self._others: list[Step] = []
        self._types_again = types_again
        self._typed = b''
        self.sent = b''
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self.slave)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            os.close(self.slave)
        self._thread.join(30)
        with suppress(OSError):
            os.close(self.master)

    @property
    def text(self) -> str:
        return '\n'.join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def left(self) -> list[Step]:
        return self._steps

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))

    def hang_up(self) -> None:
        """Close the terminal."""
        master, self.master = self.master, -1
        os.close(master)

    def also(self, steps: Sequence[Step]) -> None:
        """What to do instead of the first step where that is asked; for whoever does not know what is asked."""
        self._others = list(steps)

    def assert_done(self) -> None:
        assert self._steps == [], f'never asked; the screen shows:\n{self.text}'
        assert termios.tcgetattr(self.slave) == self.before, 'the terminal was not put back'

    def _read(self) -> None:
        while True:
            if self._types_again and not select.select([self.master], [], [], 0.3)[0]:
                os.write(self.master, self._typed)
                continue
            try:
                data = os.read(self.master, 65_536)
            except OSError:  # the other side is closed
                return
            self.sent += data
            self._typed = b''
            self._stream.feed(data)
            self._act()

    def _act(self) -> None:
        cursor = self.screen.cursor
        if cursor.hidden:
            return
        if self._others and self.screen.display[cursor.y].startswith(self._others[0][0]):
            self._steps, self._others = self._others, []
        if not self._steps:
            return
        awaited, keys = self._steps[0]
        if self.screen.display[cursor.y].startswith(awaited):
            del self._steps[0]
            if callable(keys):
                keys(self)
            else:
                self._typed = keys.encode() if isinstance(keys, str) else keys
                os.write(self.master, self._typed)


def looking(seen: list[str], keys: str) -> Callable[[Person], object]:
    """A step that keeps what the screen shows, and then types."""

    def look(person: Person) -> None:
        seen.append(person.text)
        os.write(person.master, keys.encode())

    return look


def ask(
    *requests: ApprovalRequest, steps: Sequence[Step], memory: ApprovalMemory | None = None, columns: int = 80,
    lines: int = 40, presenters: Mapping[str, Presenter] | None = None, **environment: str,
) -> tuple[list[ApprovalDecision], Person]:  # fmt: skip
    """What `TerminalUI` decides with such a person."""
    with Person(steps, columns=columns, lines=lines) as person:
        ui = make_ui(person, memory=memory, presenters=presenters, **environment)

        async def main() -> Any:
            # Not `wait_for`, whose second task would keep a `KeyboardInterrupt` until it is collected, and log it then.
            async with asyncio.timeout(PATIENCE_S):
                if len(requests) == 1:
                    return [await ui.choose(requests[0], mode='interactive')]
                return await ui.choose_group(requests, mode='interactive')

        try:
            decisions = asyncio.run(main())
        except TimeoutError:
            raise AssertionError(f'steps left: {person.left}; the screen shows:\n{person.text}') from None
        person.assert_done()
    return decisions, person


def make_ui(
    person: Person,
    *,
    memory: ApprovalMemory | None = None,
    presenters: Mapping[str, Presenter] | None = None,
    **environment: str,
) -> TerminalUI:
    return TerminalUI(
        memory=memory,
        presenters=presenters,
        person='ada',
        device=person.device,
        environment={'TERM': 'xterm', **environment},
        quiet_s=0,
    )
