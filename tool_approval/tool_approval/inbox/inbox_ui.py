"""Ask through an inbox, and notify approvers over channels."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from pydantic import ValidationError

from tool_approval.core.approvers import Approver, ApproverRule, timeouts_of, votes_needed
from tool_approval.core.bounds import in_words
from tool_approval.core.count import Count
from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.errors import ApprovalError, NotCanonicalError, check_methods, check_type, without_text
from tool_approval.core.first_of import answered_elsewhere
from tool_approval.core.request import ApprovalRequest, is_same_person
from tool_approval.core.threads import call_sync_or_async

from .approvers import ApproverRules
from .entry import Answer, Content, InboxEntry
from .errors import InboxError, InboxUnavailable, OtherContent, RequestTooLarge, UnknownRequest
from .inbox import GRACE_S, Inbox, check_inbox
from .store import Settled

CHANNEL_S = 30.0
"""Maximum seconds that a channel may take for one notification. The run does not wait for a notification."""

_log = logging.getLogger('tool_approval')


class Channel(Protocol):
    """Notifies approvers of requests, for example in a chat. A channel answers with `Inbox.decide`. Of several answers
    to a request, only the first counts.

    Coroutine functions run on the event loop of the run, other functions in a thread. Exceptions, and calls that take
    longer than 30 seconds, are logged. A failing channel does not affect the other channels or the run. For each
    request, `settled` is called after `posted` has returned or failed. Notifications of different requests come in any
    order.

    If a rule's `escalate` lets others answer after a time, `posted` is called again then, with the same entry.

    Only the process of the run calls the channels, and only until the run ends. A UI that must outlive the run, such as
    the web page, follows `Inbox.changes` in its own process. `notify_channel` does this for a channel.
    """

    def posted(self, entry: InboxEntry) -> Awaitable[None] | None:
        """Notify approvers of a request that is new, or that others may answer from now on."""
        ...  # pragma: no cover - a protocol has no body

    def settled(self, entry: InboxEntry) -> Awaitable[None] | None:
        """Report how a request was settled: `entry.state`, and `entry.answer.by` if a person answered."""
        ...  # pragma: no cover - a protocol has no body


async def _tell(
    channel: Channel, what: Literal['posted', 'settled'], entry: InboxEntry, before: asyncio.Future[bool] | None = None
) -> bool:
    """Notify a channel, and return whether that succeeded."""
    if before is not None:
        await before
    try:
        async with asyncio.timeout(CHANNEL_S):
            await call_sync_or_async(getattr(channel, what), entry)
    except Exception as error:  # noqa: BLE001 - one channel must not stop the others
        _log.error('%s.%s failed with %s', type(channel).__name__, what, without_text(error))
        return False
    return True


LONGEST_PAUSE_S = 60.0
"""Maximum seconds between attempts to read the inbox."""


async def notify_channel(
    inbox: Inbox, channel: Channel, *, report: Callable[[bool], None] = lambda is_notified: None
) -> None:
    """Notify a channel of the requests of all processes, one after another, until cancelled.

    Requests that are open at the start are posted, too. Requests that were posted before are not reported as settled.

    Args:
        inbox: Inbox with the requests.
        channel: Channel to notify. A failure is logged, and not repeated.
        report: Function that is called after each notification with whether it succeeded.
    """
    told: dict[str, int] = {}
    pause_s = RETRY_S
    while True:
        try:
            async with contextlib.aclosing(inbox.changes()) as changes:
                async for changed in changes:
                    for request_id in changed or [*told, *(entry.id for entry in await inbox.open())]:
                        what = await _news(inbox, request_id, told)
                        if what is not None:
                            report(await _tell(channel, *what))
                    pause_s = RETRY_S
        except InboxError as error:
            _log.error('%s; notifications go on in %g seconds', error, pause_s)
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


async def _news(
    inbox: Inbox, request_id: str, told: dict[str, int]
) -> tuple[Literal['posted', 'settled'], InboxEntry] | None:
    """Return the notification that a channel lacks about a request.

    `told` has the open requests that the channel knows, each with the number of times from which others may answer that
    had passed. It is updated.
    """
    try:
        entry = await inbox.get(request_id)
    except UnknownRequest:
        told.pop(request_id, None)
        return None
    if entry.state != 'pending':
        return None if told.pop(request_id, None) is None else ('settled', entry)
    others = sum(at <= datetime.now(UTC) for at in entry.others_at)
    if told.get(request_id, -1) >= others:
        return None
    told[request_id] = others
    return 'posted', entry


TIMEOUT_S = 3600.0
"""Seconds until a request expires. An approver who has not answered for an hour is unlikely to answer soon, and
the waiting run uses resources."""

RETRY_S = 1.0
"""Seconds between attempts to post while the store is unavailable."""


class InboxUI:
    """Posts each request to an inbox and waits for the answer. The controller's modes, memory and audit log apply.

    If an error occurs, the call is denied with a note that says why. If the run is cancelled, the request is withdrawn.
    If another UI of a `FirstOf` answers first, the request is settled with that answer.
    """

    one_at_a_time = False
    """Whether only one request may be open at a time."""
    heeds_approvers = True
    """Whether only the people whom `request.approvers` lists can approve."""

    def __init__(
        self,
        inbox: Inbox,
        *,
        timeout: float = TIMEOUT_S,
        channels: Sequence[Channel] = (),
        approvers: Mapping[str, ApproverRule] | None = None,
        requester: str | Callable[[ApprovalRequest], str | None] | None = None,
        forbid_self_approval: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Create a UI that asks through an inbox.

        Args:
            inbox: Inbox to post to.
            timeout: Seconds until a request expires and its call is denied, even if the store is unavailable. Rules
                with a `timeout` of their own replace it.
            channels: Channels to notify of each request and its outcome.
            approvers: Limit of this inbox as a whole: who may answer in it, by tool name or glob, whatever the settings
                say; see `ApproverRules`. `approvers` of the settings, which say who must approve a call, apply, too.
                `None` accepts everyone with access to a channel.
            requester: Id of the person the agent works for, or a function that returns it for a request. `None` uses
                the requester of the request, which `Approvals(requester=...)` sets.
            forbid_self_approval: Whether the requester is not allowed to answer, in whatever case an id is written. If
                self-approval is forbidden, requests without a known requester are denied.
            now: Function that returns the current time, for times that are shown or recorded.

        Raises:
            TypeError: An argument has a wrong type, such as a store as `inbox`.
            ValueError: The timeout is not positive, or self-approval is forbidden but no requester is given.
        """
        check_inbox(inbox)
        check_type('timeout', timeout, 'a number of seconds', int, float)
        check_type('channels', channels, 'a sequence of channels', Sequence)
        for each in channels:
            check_methods('channels', each, 'a sequence of objects with `posted` and `settled`', 'posted', 'settled')
        check_type('approvers', approvers, 'a mapping from tool names to `ApproverRule`', Mapping)
        if not timeout > 0:
            raise ValueError(f'the timeout must be a positive number of seconds, not {timeout!r}')
        if forbid_self_approval and requester is None:
            raise ValueError('`forbid_self_approval` requires `requester`')
        self.inbox = inbox
        """The inbox to post to."""
        self._timeout_s = timeout
        self._channels = tuple(channels)
        self._approvers = None if approvers is None else ApproverRules(approvers)
        self._requester = requester
        self._forbid_self_approval = forbid_self_approval
        self._now = now
        self._telling: set[asyncio.Future[bool]] = set()

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Post a request and wait for the decision. If several people must agree, post a request for each vote."""
        needed = self.needed(request)
        if request.votes is None and needed > 1:
            return await Count(needed, self, now=self._now).choose(request, mode=mode)
        if request.votes is not None and request.votes.needed < needed:
            return _denied(f'{needed} people must approve, and only {request.votes.needed} were asked for.')
        loop = asyncio.get_running_loop()
        now = self._now()
        ends_at = loop.time() + (self._ends(request, now) - now).total_seconds()
        try:
            async with asyncio.timeout_at(ends_at):
                entry = await self._post(request)
        except (TimeoutError, ApprovalError) as error:
            return _failed(error)
        if isinstance(entry, ApprovalDecision):
            return entry
        # The run does not wait for the channels.
        posted: list[tuple[Channel, asyncio.Future[bool]]] = [
            (channel, asyncio.ensure_future(_tell(channel, 'posted', entry))) for channel in self._channels
        ]
        telling_others = asyncio.ensure_future(self._tell_others(posted, entry))
        try:
            settled = await self.inbox.wait(entry.id, max(0.0, ends_at - loop.time()), digest=entry.digest)
        except ApprovalError as error:
            self._settled(posted, entry.model_copy(update={'state': 'expired'}))
            return _failed(error)
        except BaseException:
            elsewhere = answered_elsewhere(request)
            entry = self._withdrawn(entry, elsewhere)
            denied: InboxEntry | None = None
            try:
                if elsewhere is not None and elsewhere.approved:
                    denied = await self._denied_before(entry.id)
            finally:
                self._settled(posted, denied or entry)
            if denied is None:
                raise
            return self.decision_of(denied)
        finally:
            telling_others.cancel()
        self._settled(posted, settled)
        return self.decision_of(settled)

    async def aclose(self) -> None:
        """Wait until all channels have been notified. Call this method before the event loop ends."""
        while self._telling:
            await asyncio.wait(self._telling)

    def may_approve(self, request: ApprovalRequest, approvers: Sequence[str]) -> bool:
        """Return whether approvers are still allowed to approve a request. Group membership is not checked again."""
        rules = self._rules(request) or ()
        if request.votes is None and (needed := self.needed(request)) > 1:
            return Count(needed, self).may_approve(request, approvers)
        requester = self._requester_of(request)
        is_listed = all(rule.may_list(each) for rule in rules for each in approvers)
        if requester is None:
            return is_listed and not self._forbid_self_approval
        is_own = self._forbids(request) and any(is_same_person(requester, each) for each in approvers)
        return is_listed and not is_own

    def content_of(self, request: ApprovalRequest, now: datetime) -> Content | ApprovalDecision:
        """Return the content to post for a request at a time of the store, or a denial if no one may approve it."""
        requester = self._requester_of(request)
        approvers = self._rules(request)
        if self._forbid_self_approval and requester is None:
            return _denied('Self-approval is forbidden and the requester is unknown, so the call was denied.')
        if approvers is not None and not all(rule.users or rule.groups for rule in approvers):
            return _denied(f'No approver is listed for {request.tool_name!r}, so the call was denied.')
        if requester is not None:
            known = {**request.metadata, 'requester': requester}
            request = request.changed(request.facts._replace(requester=requester), metadata=known)
        return Content(
            request=request,
            approvers=approvers,
            requester=requester,
            forbid_self_approval=self._forbids(request) and requester is not None,
            expires_at=self._ends(request, now),
        )

    def needed(self, request: ApprovalRequest) -> int:
        """Return how many people must approve a request."""
        return votes_needed(self._rules(request))

    def asks(self, request: ApprovalRequest) -> list[str]:
        """Return the listed users and groups, also those who may answer later; empty if everyone with access to a
        channel may answer.
        """
        rules = [rule.everyone for rule in self._rules(request) or ()]
        users = {user for rule in rules for user in rule.users}
        groups = {group for rule in rules for group in rule.groups}
        return [*sorted(users), *(f'group {name}' for name in sorted(groups))]

    def _rules(self, request: ApprovalRequest) -> tuple[ApproverRule, ...] | None:
        """Return the rules for who may answer: those of this UI and those of the policy. All of them apply."""
        own = None if self._approvers is None else self._approvers.for_tool(request.tool_name)
        return request.approvers or None if own is None else (*own, *request.approvers)

    def _ends(self, request: ApprovalRequest, now: datetime) -> datetime:
        """Return the time from which no answer counts."""
        votes, timeouts = request.votes, timeouts_of(self._rules(request))
        if not timeouts:
            return now + timedelta(seconds=self._timeout_s)
        return (now if votes is None or votes.since is None else votes.since) + min(timeouts)

    def _forbids(self, request: ApprovalRequest) -> bool:
        # A requester has no vote among several people either.
        return self._forbid_self_approval or request.votes is not None

    def _requester_of(self, request: ApprovalRequest) -> str | None:
        given = self._requester(request) if callable(self._requester) else self._requester
        return request.facts.requester if given is None else given

    def decision_of(self, entry: InboxEntry) -> ApprovalDecision:
        """Return the decision on a settled request."""
        # Only an answer can approve. `read_entry` has checked that it matches the state.
        if entry.answer is not None:
            return entry.answer.decision
        if entry.state == 'expired':
            timeouts = timeouts_of(entry.content.approvers)
            time = in_words(min(timeouts)) if timeouts else f'{self._timeout_s:g} seconds'
            who = 'No approver' if votes_needed(entry.content.approvers) == 1 else 'Not enough approvers'
            note = f'{who} answered within {time}, so the call was denied.'
            return ApprovalDecision(approved=False, note=note, decided_by=('timeout',))
        return _denied('The request was withdrawn from the inbox, so the call was denied.')

    async def _post(self, request: ApprovalRequest) -> InboxEntry | ApprovalDecision:
        while True:
            try:
                content = self.content_of(request, await self.inbox.now())
                return content if isinstance(content, ApprovalDecision) else await self.inbox.post_entry(content)
            except InboxUnavailable:
                await asyncio.sleep(RETRY_S)

    def _withdrawn(self, entry: InboxEntry, elsewhere: ApprovalDecision | None) -> InboxEntry:
        """Withdraw the entry, or settle it with the answer of another UI, and return the settled entry."""
        at = self._now().astimezone(UTC)
        if elsewhere is not None:
            with contextlib.suppress(ValidationError, ApprovalError):  # without an approver, or too large
                by = Approver(id=elsewhere.decided_by[-1] if elsewhere.decided_by else '')
                decision = entry.check_decision(elsewhere).model_copy(update={'decided_at': at})
                answer = Answer(decision=decision, by=by, digest=entry.digest)
                state: Settled = 'approved' if decision.approved else 'denied'
                self.inbox.abandon(entry.id, state, answer=answer)
                return entry.model_copy(update={'state': state, 'answer': answer, 'settled_at': at})
        self.inbox.abandon(entry.id)
        return entry.model_copy(update={'state': 'withdrawn'})

    async def _denied_before(self, request_id: str) -> InboxEntry | None:
        """Return the entry of a request that an approver denied before the request was withdrawn, else `None`."""
        try:
            async with asyncio.timeout(GRACE_S):
                # The first read may have begun before the withdrawal.
                entry = [await self.inbox.get(request_id) for _ in range(2)][-1]
        except (ApprovalError, TimeoutError):
            _log.warning('Another UI approved a call. Could not read the inbox to check for an earlier denial.')
            return None
        return entry if entry.state == 'denied' else None

    async def _tell_others(self, posted: list[tuple[Channel, asyncio.Future[bool]]], entry: InboxEntry) -> None:
        for at in entry.others_at:
            if at > entry.posted_at:
                # Repeated, because the clock may be set back: a channel leaves out people who may not answer yet.
                while (left_s := (at - self._now()).total_seconds()) > 0:
                    await asyncio.sleep(left_s)
                posted[:] = [
                    (channel, asyncio.ensure_future(_tell(channel, 'posted', entry, before)))
                    for channel, before in posted
                ]

    def _settled(self, posted: Sequence[tuple[Channel, asyncio.Future[bool]]], entry: InboxEntry) -> None:
        for channel, before in posted:
            task = asyncio.ensure_future(_tell(channel, 'settled', entry, before))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)


def _failed(error: Exception) -> ApprovalDecision:
    # The text of an approval error holds no arguments, but may name the database, which the model must not see.
    _log.error('A call was denied: %s', str(error) if isinstance(error, ApprovalError) else 'the inbox is unavailable')
    match error:
        case RequestTooLarge() | NotCanonicalError():
            return _denied(f'The inbox could not store the request ({error}), so the call was denied.')
        case OtherContent():
            return _denied('The answer did not match the request, so the call was denied.')
        case TimeoutError() | InboxUnavailable():
            return _denied('The inbox could not be reached before the timeout, so the call was denied.')
        case _:
            return _denied(f'The inbox failed ({type(error).__name__}), so the call was denied.')


def _denied(note: str) -> ApprovalDecision:
    return ApprovalDecision(approved=False, note=note, decided_by=('ui',))
