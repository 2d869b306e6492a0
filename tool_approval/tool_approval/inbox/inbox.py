"""Open requests that are answered elsewhere: in a browser, in a chat, by another process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from types import TracebackType
from typing import Self

from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.request import ApprovalRequest

from .approvers import Approver, ApproverRule
from .entry import Answer, Content, InboxEntry, already_settled, read_entry, write_answer, write_content
from .errors import InboxError, InboxUnavailable, OtherContent, UnknownRequest
from .keeper import Keeper, Waiting, follow
from .store import InboxStore, Row, Settled
from .worker import RowReader, Worker

KEEP_HISTORY = timedelta(days=30)
"""Chosen: long enough to look up last month's answers. What must last is in the audit log."""

GRACE_S = 5.0
"""Chosen: seconds that a store may take to say whether an answer came before the time was up."""

_ID = re.compile(r'[A-Za-z0-9_-]{43}')
"""What `secrets.token_urlsafe(32)` makes."""

_log = logging.getLogger('tool_approval')


class Inbox:
    """Posts requests, waits for answers, and takes them. Safe to share between runs, threads and event loops.

    Make one for each store and process, after forking. Nothing is opened or started before the first call.
    """

    def __init__(
        self,
        store: InboxStore,
        *,
        keep_history: timedelta = KEEP_HISTORY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use a store.

        Args:
            store: Where the requests are. The inbox closes it.
            keep_history: Settled requests are forgotten after this time.
            now: The time of day, to be written down. Nothing is decided by it.
            clock: Seconds that never go back, for leases and pauses.
        """
        self.store = store
        self._now = now
        self._owner = secrets.token_urlsafe(16)
        self._waiting = Waiting()
        self._worker = Worker(store.place, clock)
        self._reader = RowReader(store, self._worker)
        self._keeper = Keeper(
            store, self._worker, self._waiting, owner=self._owner, clock=clock, now=now, keep_history=keep_history
        )

    async def post(
        self,
        request: ApprovalRequest,
        *,
        approvers: tuple[ApproverRule, ...] | None = None,
        requester: str | None = None,
        forbid_self_approval: bool = False,
        expires_at: datetime | None = None,
    ) -> str:
        """Put a request into the inbox. From now on it is kept open by this process's heartbeat.

        Args:
            request: What to decide on, with its presentation: all of it is kept for whoever opens the inbox.
            approvers: All of these have to list whoever answers; `None` lets everybody answer.
            requester: The id of the person for whom the agent works.
            forbid_self_approval: Whether that person may not answer.
            expires_at: When the wait is to end; only to be shown.

        Returns:
            Its id.

        Raises:
            NotCanonicalError: The arguments have no single JSON form.
            RequestTooLarge: It is more than a person can be shown.
            InboxUnavailable: The store cannot keep it.
        """
        entry = await self.post_entry(
            Content(
                request=request,
                approvers=approvers,
                requester=requester,
                forbid_self_approval=forbid_self_approval,
                expires_at=expires_at,
            )
        )
        return entry.id

    async def post_entry(self, content: Content) -> InboxEntry:
        """As `post`, and return what was kept."""
        # A new id each time: an answer to one request can never be sent again for another.
        row = Row(
            id=secrets.token_urlsafe(32), owner=self._owner, content=write_content(content), posted_at=self._moment()
        )
        self._keeper.has_posted = True
        self._keeper.start()
        try:
            await self._worker.run(lambda: self.store.add(row))
        except BaseException:
            # It may be in the store nevertheless, or about to be.
            self.abandon(row.id)
            raise
        return read_entry(row)

    async def wait(self, request_id: str, timeout: float | None = None, *, digest: str | None = None) -> InboxEntry:
        """Wait until a request is settled. While the store cannot be reached, the wait goes on.

        Args:
            request_id: Its id.
            timeout: Seconds until it expires; `None` waits on. An answer that comes first holds.
            digest: What was posted, as the entry has it. An answer to something else is an error then.

        Returns:
            The request as it was settled.

        Raises:
            UnknownRequest: It is not in the store, or not any more.
            InboxUnavailable: The time was up, and the store did not say in 5 seconds whether somebody has answered.
                The request will expire as soon as the store can be reached.
            OtherContent: The answer is to something else than what was posted: somebody has changed the store.
        """
        self._keeper.start()
        try:
            async with asyncio.timeout(timeout):
                entry = await self._settled(request_id)
        except TimeoutError:
            entry = await self._expired(request_id)
        if entry.answer is not None and not compare_digest(entry.answer.digest, digest or entry.digest):
            raise OtherContent
        return entry

    async def decide(self, request_id: str, decision: ApprovalDecision, *, by: Approver, digest: str) -> InboxEntry:
        """Answer a request. The first valid answer holds.

        Args:
            request_id: Its id.
            decision: What was decided. `decided_by` and `decided_at` are filled in.
            by: Who decided. The caller has made sure that it is this person.
            digest: `InboxEntry.digest` of what this person was shown.

        Returns:
            The request, with this answer.

        Raises:
            UnknownRequest: There is none of that id.
            AlreadySettled: It is no longer open; the error says who was first, and when.
            OtherContent: It shows something else than what the digest is of.
            NotAnApprover: This person may not answer it.
            InvalidAnswer: It offers no such answer.
            InboxUnavailable: The store cannot keep the answer. It was not given.
        """
        entry = await self.get(request_id)
        entry.check_open(digest)
        entry.check_approver(by)
        at = self._moment()
        decision = entry.check_decision(decision).model_copy(update={'decided_by': by.id, 'decided_at': at})
        answer = Answer(decision=decision, by=by, digest=entry.digest)
        written = write_answer(answer)
        state: Settled = 'approved' if decision.approved else 'denied'
        if not await self._worker.run(lambda: self.store.settle(request_id, state, at=at, answer=written)):
            raise already_settled(await self.get(request_id))
        return entry.model_copy(update={'state': state, 'settled_at': at, 'answer': answer})

    async def withdraw(self, request_id: str) -> None:
        """Take back a request: nobody needs the answer any more.

        Raises:
            UnknownRequest: There is none of that id.
            AlreadySettled: It is no longer open.
            InboxUnavailable: The store cannot be reached. `abandon` tries until it can.
        """
        await self._row(request_id)
        at = self._moment()
        if not await self._worker.run(lambda: self.store.settle(request_id, 'withdrawn', at=at)):
            raise already_settled(await self.get(request_id))

    def abandon(self, request_id: str, state: Settled = 'withdrawn', *, answer: Answer | None = None) -> None:
        """As `withdraw`, without waiting for it; as soon as the store can be reached. May be called from any thread.

        Args:
            request_id: Its id.
            state: What it becomes.
            answer: What was answered elsewhere, with the state that says so. If the store is away, the request is
                withdrawn without it.
        """
        at = self._moment()
        written = None if answer is None else write_answer(answer)

        def done(_: bool | None, error: BaseException | None) -> None:
            if error is not None:
                self._keeper.settle_later(request_id, state if written is None else 'withdrawn')

        with contextlib.suppress(InboxError):  # closed: others withdraw it, after the lease
            self._worker.submit(lambda: self.store.settle(request_id, state, at=at, answer=written), done)

    async def get(self, request_id: str) -> InboxEntry:
        """One request as it is now.

        Raises:
            UnknownRequest: There is none of that id, or none that can be read.
            InboxUnavailable: The store cannot be reached.
        """
        return _read(await self._row(request_id))

    async def open(self, limit: int = 1000) -> list[InboxEntry]:
        """Open requests, the oldest first.

        Raises:
            InboxUnavailable: The store cannot be reached.
        """
        self._keeper.start()
        return _readable(await self._worker.run(lambda: self.store.open(limit)))

    async def history(
        self, limit: int = 100, before: datetime | None = None, *, after: str | None = None
    ) -> list[InboxEntry]:
        """Settled requests, the newest first.

        Args:
            limit: How many at most.
            before: Only those settled before this moment.
            after: Only those that follow the request of this id in the history: that of the last one, to go on from it.
                Many may have been settled at one moment. Nothing follows one that is open or no longer known.

        Raises:
            InboxUnavailable: The store cannot be reached.
        """
        if after is not None and _ID.fullmatch(after) is None:
            return []  # before any store meets what it cannot take
        return _readable(await self._worker.run(lambda: self.store.history(limit, before, after)))

    def changes(self) -> AsyncGenerator[frozenset[str] | None]:
        """Follow the inbox: the ids of requests that were posted or settled, by whatever process, as it happens.

        Yields:
            Some ids, each maybe more than once; or `None`, first and after each interruption: any may have changed.
        """
        self._keeper.start()
        return follow(self._keeper)

    def close(self) -> None:
        """End the inbox's threads and close the store. Who still waits meets an `InboxError`."""
        self._keeper.close()
        self._worker.close(GRACE_S)
        self.store.close()
        self._waiting.wake(self._waiting.ids())

    def __enter__(self) -> Self:
        """The inbox itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    async def _settled(self, request_id: str) -> InboxEntry:
        while True:
            # Before the look: what happens after it then wakes.
            waiter = self._waiting.add(request_id)
            try:
                self._keeper.nudge()
                try:
                    row = await self._row(request_id)
                except InboxUnavailable:
                    self._keeper.recheck()
                else:
                    if row.state != 'pending':
                        return _read(row)
                await waiter
            finally:
                self._waiting.remove(request_id, waiter)

    async def _expired(self, request_id: str) -> InboxEntry:
        at = self._moment()
        try:
            async with asyncio.timeout(GRACE_S):
                await self._worker.run(lambda: self.store.settle(request_id, 'expired', at=at))
                return await self.get(request_id)
        except (InboxUnavailable, TimeoutError) as error:
            self.abandon(request_id, 'expired')
            problem = error.problem if isinstance(error, InboxUnavailable) else 'it does not answer'
            raise InboxUnavailable(self.store.place, problem) from None

    async def _row(self, request_id: str) -> Row:
        if _ID.fullmatch(request_id) is None:
            raise UnknownRequest  # before any store meets what it cannot take
        row = await self._reader.read(request_id)
        if row is None:
            raise UnknownRequest
        return row

    def _moment(self) -> datetime:
        """The time of day in whole milliseconds, which every store can keep."""
        now = self._now().astimezone(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)


def _read(row: Row) -> InboxEntry:
    try:
        return read_entry(row)
    except ValueError:
        # Nobody can answer it, so it will expire.
        _log.error('A request in the inbox cannot be read: it was changed, or written by a later version')
        raise UnknownRequest from None


def _readable(rows: Sequence[Row]) -> list[InboxEntry]:
    entries: list[InboxEntry] = []
    for row in rows:
        with contextlib.suppress(UnknownRequest):  # one that cannot be read must not hide the others
            entries.append(_read(row))
    return entries
