"""Approvers, decisions and waiting, for the tests of the inbox."""

import asyncio

from tool_approval.inbox import Approver, Inbox, InboxEntry

from tool_approval import ApprovalDecision

ADA, BOB = Approver(id='ada', name='Ada'), Approver(id='bob', groups=frozenset({'ops'}))
# Many times what a process needs to start; it only keeps a failing test from hanging
LIMIT_S = 60
YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note='Not now.')


async def answer(inbox: Inbox, entry: InboxEntry, decision: ApprovalDecision = YES, by: Approver = ADA) -> InboxEntry:
    return await inbox.decide(entry.id, decision, by=by, digest=entry.digest)


async def soon(inbox: Inbox, count: int = 1) -> list[InboxEntry]:
    """The open requests, as soon as there are so many. Only the inbox's own changes are waited for."""
    async with asyncio.timeout(LIMIT_S):
        async for _ in inbox.changes():
            entries = await inbox.open()
            if len(entries) >= count:
                return entries
    raise AssertionError


async def settled(inbox: Inbox, count: int = 1) -> list[InboxEntry]:
    """The history, as soon as there are so many."""
    async with asyncio.timeout(LIMIT_S):
        async for _ in inbox.changes():
            entries = await inbox.history()
            if len(entries) >= count:
                return entries
    raise AssertionError
