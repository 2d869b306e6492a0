"""Post requests to an inbox, where approvers answer them in a browser, a chat or another process."""

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

from tool_approval.core.approvers import Approver, ApproverRule
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import check_methods, check_type
from tool_approval.core.request import ApprovalRequest

from .entry import Answer, Content, InboxEntry, already_settled, read_entry, write_answer, write_content
from .errors import InboxError, InboxUnavailable, OtherContent, UnknownRequest
from .keeper import Keeper, Waiting, follow
from .store import InboxStore, Row, Settled
from .worker import RowReader, Worker

KEEP_HISTORY = timedelta(days=30)
"""Settled requests are kept long enough to look up last month's answers. Older decisions are in the audit log."""

GRACE_S = 5.0
"""Seconds to wait, after the timeout, for the store to report whether an answer came in time."""

_ID = re.compile(r'[A-Za-z0-9_-]{43}')
"""Format of an id made by `secrets.token_urlsafe(32)`."""

_log = logging.getLogger('tool_approval')


class Entries(list[InboxEntry]):
    """The requests of a list that can be read."""

    def __init__(self) -> None:
        super().__init__()
        self.damaged: list[str] = []
        """Ids of the requests that cannot be read, and so cannot be answered. They are not among the entries."""


class Inbox:
    """Posts requests, waits for answers and accepts answers. Any number of runs, threads and event loops can use it.

    Create one inbox for each store and process, after forking. Nothing is opened or started before the first call.
    """

    def __init__(
        self,
        store: InboxStore,
        *,
        keep_history: timedelta = KEEP_HISTORY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an inbox on a store.

        Args:
            store: Store of the requests. The inbox closes the store.
            keep_history: Time after which settled requests are deleted.
            now: Clock that returns the time of day, to record times and to apply `keep_history`.
            clock: Monotonic clock in seconds, to measure leases and pauses.

        Raises:
            TypeError: `store` is not a store, but a path, for example; or `keep_history` is not a `timedelta`.
        """
        check_methods('store', store, 'a store such as `SQLiteStore(path)`', 'add', 'settle', 'pending_of', 'watch')
        check_type('keep_history', keep_history, 'a `timedelta`', timedelta)
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
        """Post a request. The request is withdrawn if this process stops sending heartbeats.

        Args:
            request: The request. The store keeps the request and its presentation, to show both to approvers.
            approvers: Rules for who may answer. Every rule must list the approver. If `None`, everyone may answer.
            requester: Id of the person the agent works for.
            forbid_self_approval: Whether the requester is not allowed to answer.
            expires_at: Time from which the store takes no answer any more, by its own clock; see `now`.

        Returns:
            The id of the posted request.

        Raises:
            NotCanonicalError: The arguments have no canonical JSON form.
            RequestTooLarge: The request is too large to be shown.
            InboxUnavailable: The store cannot keep the request.
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
        """Post a request as `post` does, and return its entry."""
        # A new id each time, so that an answer cannot be replayed for another request.
        row = Row(
            id=secrets.token_urlsafe(32), owner=self._owner, content=write_content(content), posted_at=self._moment()
        )
        self._keeper.has_posted = True
        self._keeper.start()
        try:
            await self._worker.run(lambda: self.store.add(row, content.expires_at))
        except BaseException:
            # The store may have kept the request nevertheless, or may be about to.
            self.abandon(row.id)
            raise
        return read_entry(row)

    async def now(self) -> datetime:
        """Return the time by the clock of the store, which decides about deadlines.

        Raises:
            InboxUnavailable: The store cannot be reached.
        """
        return await self._worker.run(self.store.now)

    async def wait(self, request_id: str, timeout: float | None = None, *, digest: str | None = None) -> InboxEntry:
        """Wait until a request is settled, even while the store cannot be reached.

        Args:
            request_id: Id of the request.
            timeout: Seconds after which the unanswered request expires; `None` waits without limit.
            digest: `InboxEntry.digest` of the posted entry. An answer with a different digest raises `OtherContent`.

        Returns:
            The settled request.

        Raises:
            UnknownRequest: The store does not have the request, or no longer has it.
            InboxUnavailable: After the timeout, the store was asked whether the request was answered, and did not reply
                within 5 seconds. The request expires as soon as the store can be reached again.
            OtherContent: The digest in the answer is not that of the posted content, so the store was tampered with.
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
        """Answer a request. Only the first valid answer counts.

        Args:
            request_id: Id of the request.
            decision: The decision. The inbox fills in `decided_by` and `decided_at`.
            by: The approver, whom the caller has authenticated.
            digest: Digest of the content that the approver was shown (`InboxEntry.digest`).

        Returns:
            The request with this answer.

        Raises:
            UnknownRequest: No request has this id.
            AlreadySettled: The request is no longer open. The error says who answered, and when, or that the deadline
                has passed.
            OtherContent: The digest differs from the digest of the request's content.
            NotAnApprover: The approver is not allowed to answer this request.
            InvalidAnswer: The request does not offer this answer.
            InboxUnavailable: The store cannot save the answer, so the answer does not count.
        """
        entry = await self.get(request_id)
        entry.check_open(digest)
        entry.check_approver(by, self._now())
        entry.check_vote(by, decision)
        at = self._moment()
        decision = entry.check_decision(decision).model_copy(update={'decided_by': (by.id,), 'decided_at': at})
        answer = Answer(decision=decision, by=by, digest=entry.digest)
        written = write_answer(answer)
        state: Settled = 'approved' if decision.approved else 'denied'
        if not await self._worker.run(lambda: self.store.settle(request_id, state, at=at, answer=written)):
            raise already_settled(await self.get(request_id))
        return entry.model_copy(update={'state': state, 'settled_at': at, 'answer': answer})

    async def withdraw(self, request_id: str) -> None:
        """Withdraw a request whose answer is no longer needed.

        Raises:
            UnknownRequest: No request has this id.
            AlreadySettled: The request is no longer open.
            InboxUnavailable: The store cannot be reached. `abandon` retries until the store can be reached.
        """
        await self._row(request_id)
        at = self._moment()
        if not await self._worker.run(lambda: self.store.settle(request_id, 'withdrawn', at=at)):
            raise already_settled(await self.get(request_id))

    def abandon(self, request_id: str, state: Settled = 'withdrawn', *, answer: Answer | None = None) -> None:
        """Settle a request in the background as soon as the store can be reached. Any thread may call this method.

        Args:
            request_id: Id of the request.
            state: New state of the request.
            answer: Answer that was given in another UI; it must fit `state`. If the store is unavailable, the answer
                is dropped, and the request is withdrawn.
        """
        at = self._moment()
        written = None if answer is None else write_answer(answer)

        def done(_: bool | None, error: BaseException | None) -> None:
            if error is not None:
                self._keeper.settle_later(request_id, state if written is None else 'withdrawn')

        with contextlib.suppress(InboxError):  # closed: another process withdraws it when the lease ends
            self._worker.submit(lambda: self.store.settle(request_id, state, at=at, answer=written), done)

    async def get(self, request_id: str) -> InboxEntry:
        """Return a request in its current state.

        Raises:
            UnknownRequest: No request has this id, or the request cannot be read.
            InboxUnavailable: The store cannot be reached.
        """
        return _read(await self._row(request_id))

    async def open(self, limit: int = 1000) -> Entries:
        """Return open requests, oldest first, and the ids of those that cannot be read.

        Raises:
            InboxUnavailable: The store cannot be reached.
        """
        self._keeper.start()
        return _readable(await self._worker.run(lambda: self.store.open(limit)))

    async def history(self, limit: int = 100, before: datetime | None = None, *, after: str | None = None) -> Entries:
        """Return settled requests, newest first.

        Args:
            limit: Maximum number of requests.
            before: Return only requests settled before this time.
            after: Return only requests that follow the request with this id in the history. For the next page, pass the
                last id of the previous page instead of a time, because several requests may have the same time. The
                result is empty if the request is open or unknown.

        Raises:
            InboxUnavailable: The store cannot be reached.
        """
        if after is not None and _ID.fullmatch(after) is None:
            return Entries()  # some stores fail on malformed ids
        return _readable(await self._worker.run(lambda: self.store.history(limit, before, after)))

    def changes(self) -> AsyncGenerator[frozenset[str] | None]:
        """Follow the requests that any process posts or settles, or that others may answer from now on.

        Yields:
            Ids of such requests, possibly repeated. The first item, and the first item after an interruption, is
            `None`, because any request may have changed.
        """
        self._keeper.start()
        return follow(self._keeper)

    def close(self) -> None:
        """Stop the inbox's threads and close the store. Pending `wait` calls raise an `InboxError`."""
        self._keeper.close()
        self._worker.close(GRACE_S)
        self.store.close()
        self._waiting.wake(self._waiting.ids())

    def __enter__(self) -> Self:
        """Return the inbox itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the inbox."""
        self.close()

    async def _settled(self, request_id: str) -> InboxEntry:
        while True:
            # Registered before reading, so that no later change is missed.
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
            problem = error.problem if isinstance(error, InboxUnavailable) else 'the store does not respond'
            raise InboxUnavailable(self.store.place, problem) from None

    async def _row(self, request_id: str) -> Row:
        if _ID.fullmatch(request_id) is None:
            raise UnknownRequest  # some stores fail on malformed ids
        row = await self._reader.read(request_id)
        if row is None:
            raise UnknownRequest
        return row

    def _moment(self) -> datetime:
        """Return the current time in whole milliseconds, which every store can save."""
        now = self._now().astimezone(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)


def _read(row: Row) -> InboxEntry:
    try:
        return read_entry(row)
    except ValueError:
        # The request cannot be answered, so it will expire.
        _log.error('A request in the inbox cannot be read: another program changed it, or a later version wrote it')
        raise UnknownRequest from None


def _readable(rows: Sequence[Row]) -> Entries:
    entries = Entries()
    for row in rows:
        try:
            entries.append(_read(row))
        except UnknownRequest:  # one that cannot be read must not hide the others
            entries.damaged.append(row.id)
    return entries


def check_inbox(inbox: object) -> None:
    """Reject what is not an inbox; see `check_methods`.

    Raises:
        TypeError: `inbox` is not an inbox, but a store, for example.
    """
    check_methods('inbox', inbox, 'an `Inbox`; give a store to `Inbox(store)`', 'post_entry', 'decide', 'changes')
