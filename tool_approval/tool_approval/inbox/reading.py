"""Reads rows for many callers at once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Collection
from typing import TypeAlias

from .store import InboxStore, Row
from .worker import Worker

AT_ONCE = 20
"""Chosen: thousands of calls that begin to wait, or are woken, at once take a few hundred looks at the store, and few
rows are in memory at a time: one may have some megabytes."""

_Ended: TypeAlias = 'asyncio.Future[Row | BaseException | None]'


class Reader:
    """Collects the ids that are asked for while the worker is busy, and reads them with one look."""

    def __init__(self, store: InboxStore, worker: Worker) -> None:
        """Nothing is read yet."""
        self._store = store
        self._worker = worker
        self._lock = threading.Lock()
        self._asked: dict[str, list[_Ended]] = {}
        self._is_reading = False

    async def read(self, request_id: str) -> Row | None:
        """The row of that id as it is now, or later; `None` if there is none.

        Raises:
            InboxError: The store cannot be read, or the inbox is closed.
        """
        ended: _Ended = asyncio.get_running_loop().create_future()
        with self._lock:
            self._asked.setdefault(request_id, []).append(ended)
        self._read_on()
        found = await ended
        if isinstance(found, BaseException):
            raise found
        return found

    def _read_on(self) -> None:
        with self._lock:
            if self._is_reading or not self._asked:
                return
            self._is_reading = True
        try:
            self._worker.submit(self._take_and_read, self._done)
        except BaseException as error:  # noqa: BLE001 - it has to reach all who ask
            self._done(None, error)

    def _take_and_read(self) -> None:
        """In the worker's thread. What is asked for after this has begun is read by the next look."""
        with self._lock:
            taken = {request_id: self._asked.pop(request_id) for request_id in list(self._asked)[:AT_ONCE]}
        error: BaseException | None = None
        rows: dict[str, Row] = {}
        try:
            rows = {row.id: row for row in self._store.get(list(taken))}
        except BaseException as e:
            error = e
            raise
        finally:
            for request_id, waiting in taken.items():
                _end(waiting, rows.get(request_id) if error is None else error)

    def _done(self, _: None, error: BaseException | None) -> None:
        with self._lock:
            self._is_reading = False
            failed = [] if error is None else list(self._asked.values())
            if error is not None:
                # The store is away: who asked meanwhile is told at once.
                self._asked.clear()
        for waiting in failed:
            _end(waiting, error)
        self._read_on()


def _end(waiting: Collection[_Ended], found: Row | BaseException | None) -> None:
    for each in waiting:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            each.get_loop().call_soon_threadsafe(_set, each, found)


def _set(ended: _Ended, found: Row | BaseException | None) -> None:
    if not ended.done():
        ended.set_result(found)
