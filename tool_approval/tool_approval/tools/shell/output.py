"""What is kept of a command's output, however much there is."""

from __future__ import annotations

from collections import deque


class BoundedOutput:
    """The beginning and the end of a stream of bytes."""

    def __init__(self, max_bytes: int) -> None:
        """Keep at most `max_bytes`: half from the beginning, half from the end."""
        self._head_room = max_bytes // 2
        self._tail_room = max_bytes - max_bytes // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        self.total += len(data)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data[-self._tail_room :])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= self._tail_room:
            self._tail_bytes -= len(self._tail.popleft())

    @property
    def is_cut(self) -> bool:
        """Whether something in the middle is missing."""
        return self.total > self._head_room + self._tail_room

    def text(self) -> str:
        """What was kept, with a line in the middle that says how much was left out.

        Bytes that are no UTF-8 become U+FFFD; output with NUL bytes in it is told by size alone.
        """
        tail = b''.join(self._tail)[-self._tail_room :] if self._tail_room else b''
        if b'\0' in self._head or b'\0' in tail:
            return f'[binary output, {self.total} bytes]'
        if not self.is_cut:
            return (bytes(self._head) + tail).decode(errors='replace')
        left_out = self.total - len(self._head) - len(tail)
        head, end = bytes(self._head).decode(errors='replace'), tail.decode(errors='replace')
        return f'{head}\n... [{left_out} bytes left out] ...\n{end}'
