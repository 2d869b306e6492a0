"""Execute each approved call at most once, and report calls whose outcome is unknown."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast

from pydantic_core import to_json

from tool_approval.core.calls import ExecutedCall, Kept
from tool_approval.core.canonical import canonical_json, whole_characters
from tool_approval.core.errors import check_methods, without_text
from tool_approval.core.threads import call_sync_or_async
from tool_approval.core.tool_checks import CurrentCall, executing_call
from tool_approval.display import escape_line
from tool_approval.inbox.entry import MAX_BYTES
from tool_approval.inbox.errors import InboxError, InboxUnavailable
from tool_approval.inbox.keeper import LEASE_S, Leases
from tool_approval.inbox.worker import Worker

from .rows import ExecutionRow, ExecutionState
from .store import DurableStore

T = TypeVar('T')

POLL_S = 0.2
"""Seconds between two checks of an execution that another worker holds."""

PATIENCE_S = 30.0
"""Seconds that a call waits if the store is unavailable. After this time, the call is not run."""

RETRY_S = 0.5
"""Seconds between two attempts to reach an unavailable store."""

_log = logging.getLogger('tool_approval')


class UnknownCall(NamedTuple):
    """A call that may or may not have happened."""

    tool_name: str
    """Name of the tool."""
    args: Mapping[str, Any]
    """Arguments of the call."""
    tool_call_id: str
    """Id of the call in the run."""
    run_id: str
    """Id of the run."""
    attempt: int
    """Number of this attempt, from 1."""
    idempotency_key: str
    """Idempotency key that `current_call()` gave to the tool."""
    started_at: datetime | None
    """Time at which the attempt began, or `None` if not recorded."""


class Done(NamedTuple):
    """The call happened."""

    result: Any = None
    """Result for the model."""


Reconciled: TypeAlias = Done | Literal['not_done', 'unknown']
"""A tool's report on its call, whose outcome was unknown. After `not_done`, the call runs again.

Return `not_done` only if no worker can still run the call, not even a worker that seems dead.
"""

Reconcile: TypeAlias = Callable[[UnknownCall], Reconciled | Awaitable[Reconciled]]
"""Function that determines the outcome of a call, for example by asking a remote service about the idempotency key."""


class Ledger:
    """Records the outcome of each approved call. A ledger may be shared between runs, threads and event loops.

    Create a ledger in each process, after forking. A ledger starts no thread before the first call.
    """

    def __init__(
        self,
        store: DurableStore,
        *,
        reconcile: Mapping[str, Reconcile] | None = None,
        lease_s: float = LEASE_S,
        beats: bool = True,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Use a store.

        Args:
            store: Store that keeps the executions. The store stays open when the ledger is closed.
            reconcile: Maps a tool name to the function that finds out whether a call of unknown outcome was executed.
            lease_s: Seconds without a heartbeat after which a worker is treated as dead.
            beats: Whether the ledger starts a thread that calls `tick` to send heartbeats.
            clock: Monotonic clock in seconds, to measure the time between heartbeats.
            now: Returns the time of day, which is used only in records.

        Raises:
            TypeError: `store` is not a `DurableStore`.
        """
        check_methods('store', store, 'a `DurableStore`; see `open_store`', 'add_execution', 'move')
        self.store = store
        self.worker_id = secrets.token_urlsafe(16)
        """Unique id of this worker, never reused. Only the worker that holds an execution can change that execution."""
        self._reconcile = dict(reconcile or {})
        self._lease_s = lease_s
        self._has_thread = beats
        self._now = now
        self._leases = Leases(clock, lease_s)
        self._worker = Worker(store.place, clock, together=store.together)
        self._beats = 0
        self._secret = b''
        self._lock = threading.Lock()
        self._in_hand: set[str] = set()
        self._pending: dict[str, Callable[[], object]] = {}
        self._failed: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def reconciling(self, reconcile: Mapping[str, Reconcile]) -> Ledger:
        """Return a ledger of the same worker that uses other functions to find out unknown outcomes."""
        other = copy.copy(self)
        other._reconcile = dict(reconcile)
        return other

    async def execute(
        self,
        call: ExecutedCall,
        run: Callable[[], Awaitable[T]],
        *,
        check: Callable[[], str | None] = lambda: None,
        ask: Callable[[str], Awaitable[bool | None]] | None = None,
        dump: Callable[[T], object] = lambda result: result,
        text_of: Callable[[Exception], str] = lambda error: f'The call failed ({type(error).__name__}).',
        not_begun: tuple[type[Exception], ...] = (),
        tried_again: Callable[[str], None] = lambda by: None,
    ) -> T | Kept:
        """Execute a call, unless its outcome is recorded.

        Args:
            call: The call.
            run: Function that executes the call.
            check: Function that is called immediately before the execution, and returns why the call must not run, or
                `None`.
            ask: Function that asks an approver about an unknown call: `True` runs the call again, `False` gives it up,
                and `None` means no answer.
            dump: Function that converts the result to the JSON value to keep.
            text_of: Function that turns an error into the text to keep.
            not_begun: Exceptions which show that `run` has not done anything yet.
            tried_again: Function that is called before the repeated attempt, if a person outside the run decided to
                repeat the call. The argument is the person's name.

        Returns:
            The result of `run`. If an outcome is already recorded, `run` is not called, and that outcome is returned.

        Raises:
            InboxError: The store cannot be used. The call did not run.
            BaseException: Any exception that `run` raises.
        """
        self.start()
        if not self._secret:
            self._secret = await self._patiently(self.store.secret)
        key = self._digest(call.identity, 32)
        async with self._alone(key):
            while True:
                row = await self._patiently(lambda: self.store.latest(key))
                match row:
                    case None:
                        await self._add(call, key, 1)
                    case ExecutionRow(state='approved'):
                        if (reason := check()) is not None:
                            await self._change(row, 'refused', _write(text=reason))
                            continue
                        if (by := await self._let_by(row)) is not None:
                            tried_again(by)
                        if (begun := await self._begin(row)) is not None:
                            return await self._run(begun, run, dump, text_of, not_begun)
                    case ExecutionRow(state='reserved', owner=self.worker_id):
                        await self._change(row, 'refused', _write(text='The run has ended, so the call was not run.'))
                    case ExecutionRow(state='reserved' | 'executing'):
                        await asyncio.sleep(POLL_S)
                    case ExecutionRow(state='unknown', result=None):
                        if not await self._settled(row, call, ask):
                            return Kept('unknown', text=unknown_text(row))
                    case _:
                        return _read(row)

    async def unknown(self, run_id: str) -> Sequence[ExecutionRow]:
        """Return a run's executions whose outcome is unknown and was not settled.

        Raises:
            InboxError: The store cannot be used.
        """
        rows = await self._patiently(lambda: self.store.executions_of(escape_line(run_id)))
        return [row for row in rows if row.is_unsettled]

    async def reconcile(self, row: ExecutionRow, args: Mapping[str, Any]) -> bool:
        """Let the tool determine the unknown outcome of its call.

        Returns:
            `True` if the tool settled the call. In this case, the result is recorded or a new attempt is allowed.

        Raises:
            InboxError: The store cannot be used.
        """
        check = self._reconcile.get(row.tool_name)
        if check is None:
            return False
        call = UnknownCall(
            tool_name=row.tool_name,
            args=args,
            tool_call_id=row.tool_call_id,
            run_id=row.run_id,
            attempt=row.attempt,
            idempotency_key=row.idempotency_key,
            started_at=row.started_at,
        )
        try:
            found = cast('Reconciled', await call_sync_or_async(check, call))
        except Exception as error:  # noqa: BLE001 - the outcome stays unknown
            _log.error('Could not find out the outcome of a call of %r: %s', row.tool_name, without_text(error))
            return False
        if isinstance(found, Done):
            return await self.settle(row, found.result)
        return found == 'not_done' and await self.again(row)

    async def settle(self, row: ExecutionRow, result: object, by: str | None = None) -> bool:
        """Record the result of a call whose outcome is unknown. Return `False` if the outcome is no longer unknown.

        Args:
            row: The call, as last read.
            result: The result, a JSON value.
            by: The person who gave the result, or `None` for the tool's own check. A person's name is kept and logged.

        Raises:
            InboxError: The store cannot be used.
        """
        return await self._change(row, 'done', _write_result(result, lambda value: value, by))

    async def again(self, row: ExecutionRow, by: str | None = None) -> bool:
        """Allow another attempt at a call whose outcome is unknown. Return `False` if the outcome is no longer unknown.

        Args:
            row: The call, as last read.
            by: The person who decided to run the call again. The person's name is recorded with the previous attempt.

        Raises:
            InboxError: The store cannot be used.
        """
        if not self._secret:
            self._secret = await self._patiently(self.store.secret)
        attempt = row.attempt + 1
        following = replace(
            row,
            attempt=attempt,
            state='approved',
            owner=None,
            started_at=None,
            changed_at=self._now(),
            idempotency_key=self._idempotency_key(row.key, attempt),
        )
        note = None if by is None else _write(text=f'{unknown_text(row)} The call was tried again.', by=by)
        return await self._patiently(lambda: self.store.retry(following, note))

    async def give_up(self, row: ExecutionRow, by: str | None = None) -> bool:
        """Leave the outcome of a call unknown and do not ask again. Return `False` if the outcome is no longer unknown.

        Raises:
            InboxError: The store cannot be used.
        """
        told = 'The call was not run again.' if by is None else f'{escape_line(by)} decided not to run the call again.'
        text = f'{unknown_text(row)} {told}'
        return await self._change(row, 'unknown', _write(text=text, by=by))

    def start(self) -> None:
        """Start the thread that sends heartbeats, unless the thread is running."""
        with self._lock:
            if self._has_thread and self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._keep_ticking, name='tool-approval-ledger', daemon=True)
                self._thread.start()

    def tick(self, workers: Collection[str] = ()) -> Collection[str]:
        """Send a heartbeat, retry failed writes, and release the executions of dead workers. This call blocks.

        Args:
            workers: Ids of workers that may be dead and have never sent a heartbeat.

        Returns:
            The dead workers. Later calls return the same workers again, until `DurableStore.forget_worker` is called.

        Raises:
            InboxError: The store cannot be used.
        """
        try:
            self._beats += 1
            self.store.beat(self.worker_id, self._beats)
            for key in list(self._failed):
                self._pending[key]()
                self._failed.discard(key)
                del self._pending[key]
            gone = dict(self._leases.gone(dict.fromkeys(workers, 0) | self.store.beats()))
            gone.pop(self.worker_id, None)
            for worker, number in gone.items():
                if self.store.release(worker, number, at=self._now()):
                    _log.warning('A worker has died: the outcome of the calls it was executing is unknown')
        except InboxError:
            self._leases.forget()
            raise
        return gone.keys()

    def close(self) -> None:
        """End the thread, and retry failed writes once. Later, another worker releases the executions that this
        worker still holds.
        """
        self._closing.set()
        self._worker.close(PATIENCE_S)
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
        # A copy, because a heartbeat that outlasted the wait may finish the same writes meanwhile.
        for write in [write for key, write in self._pending.copy().items() if key in self._failed]:
            with contextlib.suppress(InboxError):
                write()

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the ledger."""
        self.close()

    def _keep_ticking(self) -> None:
        is_available = True
        while True:
            try:
                self.tick()
                is_available = True
            except Exception as error:  # noqa: BLE001 - without this thread, others would consider this worker dead
                if is_available:
                    _log.error('%s', error if isinstance(error, InboxError) else type(error).__name__)
                is_available = False
            if self._closing.wait(self._lease_s / 3 if is_available else RETRY_S):
                return

    # Before the tool begins

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncGenerator[None]:
        """Let only one task at a time execute a call. Before that, wait until the call's previous outcome is written.

        Otherwise, a delayed write of one task could release an execution that the next task has begun, because all
        tasks of a worker write as the same owner.
        """
        while True:
            with self._lock:
                if key not in self._in_hand and key not in self._pending:
                    self._in_hand.add(key)
                    break
            await asyncio.sleep(POLL_S)
        try:
            yield
        finally:
            self._in_hand.discard(key)

    async def _add(self, call: ExecutedCall, key: str, attempt: int) -> None:
        row = ExecutionRow(
            key=key,
            attempt=attempt,
            run_id=escape_line(call.run_id),
            tool_name=escape_line(call.tool_name),
            tool_call_id=escape_line(call.tool_call_id),
            idempotency_key=self._idempotency_key(key, attempt),
            changed_at=self._now(),
        )
        await self._patiently(lambda: self.store.add_execution(row))

    async def _let_by(self, row: ExecutionRow) -> str | None:
        """Return the name of the person outside the run who decided to repeat the call, or `None`."""
        if row.attempt == 1:
            return None
        rows = await self._patiently(lambda: self.store.executions_of(row.run_id))
        before = (row.key, row.attempt - 1)
        return next((_read(each).by for each in rows if (each.key, each.attempt) == before), None)

    async def _begin(self, row: ExecutionRow) -> ExecutionRow | None:
        """Reserve an execution and mark it as executing. Return `None` if another worker was faster."""
        try:
            for state in ('reserved', 'executing'):
                if not await self._moved(row, state):
                    return None
                row = replace(row, state=state, owner=self.worker_id)
        except BaseException:
            # The tool has not begun, even if the store has recorded it, or is about to.
            self._free(row)
            raise
        return row

    async def _moved(self, row: ExecutionRow, state: ExecutionState) -> bool:
        """Change the state of an execution. Return whether this worker holds the execution now. An earlier attempt may
        have succeeded although the store's answer was lost.
        """

        def move() -> bool:
            if self.store.move(row, state, owner=self.worker_id, at=self._now()):
                return True
            found = self.store.latest(row.key)
            return found is not None and (found.attempt, found.state, found.owner) == (
                row.attempt,
                state,
                self.worker_id,
            )

        return await self._patiently(move)

    def _free(self, row: ExecutionRow) -> asyncio.Future[None]:
        """Release an execution that this worker has reserved but not begun."""

        def free() -> None:
            for state in ('reserved', 'executing'):
                held = replace(row, state=state, owner=self.worker_id)
                self.store.move(held, 'approved', owner=None, at=self._now())

        return self._soon(row, free)

    # From the beginning of the tool on

    async def _run(
        self,
        row: ExecutionRow,
        run: Callable[[], Awaitable[T]],
        dump: Callable[[T], object],
        text_of: Callable[[Exception], str],
        not_begun: tuple[type[Exception], ...],
    ) -> T:
        token = executing_call.set(CurrentCall(row.tool_name, row.tool_call_id, row.attempt, row.idempotency_key))
        try:
            result = await run()
        except not_begun:
            await self._free(row)
            raise
        except Exception as error:
            await self._ended(row, 'failed', _write_error(error, text_of))
            raise
        except BaseException:
            # Cancelled, or the process ends: the tool may have acted, or may still act in a thread.
            self._soon(row, lambda: self._end(row, 'unknown', None))
            raise
        finally:
            executing_call.reset(token)
        await self._ended(row, 'done', _write_result(result, dump))
        return result

    async def _ended(self, row: ExecutionRow, state: ExecutionState, result: str) -> None:
        """Record the outcome of a call. The run continues even if the store is unavailable."""
        await self._soon(row, lambda: self._end(row, state, result))

    def _end(self, row: ExecutionRow, state: ExecutionState, result: str | None) -> None:
        """Record the outcome. This method runs in the worker's thread.

        A worker that was treated as dead may still record the outcome of its call, unless the call was tried again.
        """
        at = self._now()
        if self.store.move(row, state, owner=row.owner, at=at, result=result) or state == 'unknown':
            return
        if self.store.move(replace(row, state='unknown'), state, owner=row.owner, at=at, result=result):
            return
        found = self.store.latest(row.key)
        if found is None or (found.attempt, found.state, found.owner) != (row.attempt, state, row.owner):
            _log.warning('A call of %r ended after its outcome had been settled; its result was dropped', row.tool_name)

    def _soon(self, row: ExecutionRow, write: Callable[[], object]) -> asyncio.Future[None]:
        """Write in the worker's thread, even if the waiting task is cancelled. If the store is unavailable, retry
        later.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending[row.key] = write

        def done(_: object, error: BaseException | None) -> None:
            if error is None:
                del self._pending[row.key]
            else:
                self._failed.add(row.key)
            with contextlib.suppress(RuntimeError):  # the loop is closed, so no task waits
                written.get_loop().call_soon_threadsafe(lambda: written.done() or written.set_result(None))

        try:
            self._worker.submit(write, done)
        except InboxError:  # closed: another worker takes the execution over
            written.set_result(None)
        return written

    # Unknown executions

    async def _settled(
        self, row: ExecutionRow, call: ExecutedCall, ask: Callable[[str], Awaitable[bool | None]] | None
    ) -> bool:
        if await self.reconcile(row, call.args):
            return True
        is_again = None if ask is None else await ask(unknown_text(row))
        if is_again is None:
            # It may have been settled while the question was open.
            return await self._patiently(lambda: self.store.latest(row.key)) != row
        await (self.again(row) if is_again else self.give_up(row))
        return True

    async def _change(self, row: ExecutionRow, to: ExecutionState, written: str) -> bool:
        return await self._patiently(lambda: self.store.move(row, to, owner=row.owner, at=self._now(), result=written))

    async def _patiently(self, action: Callable[[], T]) -> T:
        """Run `action` in the worker's thread. Retry for a while if the store is unavailable."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return await self._worker.run(action)
            except InboxUnavailable:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(RETRY_S)

    def _digest(self, value: object, size: int) -> str:
        text = canonical_json(value).encode()
        return blake2b(text, digest_size=size, key=self._secret, person=b'execution').hexdigest()

    def _idempotency_key(self, key: str, attempt: int) -> str:
        return self._digest([key, attempt], 16)


def unknown_text(row: ExecutionRow) -> str:
    """Describe a call whose outcome is unknown."""
    began = '' if row.started_at is None else f' at {row.started_at:%Y-%m-%d %H:%M:%S} UTC'
    return (
        f'The call of {row.tool_name!r} was started{began}, but its end was not recorded: its worker died, or the run '
        'was cancelled. The call may have happened.'
    )


def _read(row: ExecutionRow) -> Kept:
    """Return the recorded outcome. The call does not run again, even if another program has changed the record."""
    state = cast("Literal['done', 'failed', 'refused', 'unknown']", row.state)
    try:
        kept: object = json.loads(row.result or '')
    except (ValueError, RecursionError):
        kept = None
    match cast('Any', kept):
        case {'value': value, **rest}:
            return Kept(state, value=value, by=_person(rest.get('by')))
        case {'text': str(text), **rest}:
            return Kept(state, text=text, by=_person(rest.get('by')))
        case _:
            return Kept(
                state, text=f'The call of {row.tool_name!r} ended ({row.state}); its recorded result is unreadable.'
            )


def _person(kept: object) -> str | None:
    return kept if isinstance(kept, str) else None


def _write(*, by: str | None = None, **kept: object) -> str:
    kept = kept if by is None else {**kept, 'by': by}
    return json.dumps(json.loads(to_json(kept, inf_nan_mode='constants')), separators=(',', ':'))


def _write_error(error: Exception, text_of: Callable[[Exception], str]) -> str:
    try:
        return _write(text=whole_characters(text_of(error)))
    except Exception:  # noqa: BLE001 - an error may create its text with any code
        return _write(text='The call failed.')


def _write_result(result: T, dump: Callable[[T], object], by: str | None = None) -> str:
    try:
        written = _write(value=dump(result), by=by)
    except Exception as error:  # noqa: BLE001 - a result may serialize itself with any code
        return _write(text=f'The call was executed, but its result has no JSON form ({type(error).__name__}).')
    if len(written) > MAX_BYTES:
        return _write(text=f'The call was executed, but its result is too large to be stored ({len(written)} bytes).')
    return written
