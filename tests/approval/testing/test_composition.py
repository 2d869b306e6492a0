"""The suite for UIs that ask other UIs finds each fault."""

import asyncio

import pytest
from tool_approval.testing import check_composition

from tool_approval import ApprovalDecision, FirstOf

pytestmark = pytest.mark.anyio


class Passes:
    """Asks the UI, and passes its answer on."""

    def __init__(self, ui):
        self.ui = ui

    async def choose(self, request, *, mode):
        return await self.answer(request, mode)

    async def answer(self, request, mode):
        answer = self.ui.choose(request, mode=mode)
        return await answer if asyncio.iscoroutine(answer) else answer

    def asks(self, request):
        return self.ui.asks(request)

    def may_approve(self, request, approvers):
        return self.ui.may_approve(request, approvers)


class ApprovesFailures(Passes):
    async def choose(self, request, *, mode):
        try:
            return await super().choose(request, mode=mode)
        except RuntimeError:
            return ApprovalDecision(approved=True)


class ApprovesAnything(Passes):
    async def choose(self, request, *, mode):
        said = await super().choose(request, mode=mode)
        return said if isinstance(said, ApprovalDecision) else ApprovalDecision(approved=bool(said))


class DropsNotes(Passes):
    async def choose(self, request, *, mode):
        return (await super().choose(request, mode=mode)).model_copy(update={'note': None})


class AsksAgain(Passes):
    async def choose(self, request, *, mode):
        await super().choose(request, mode=mode)
        return await super().choose(request, mode=mode)


class Denies(Passes):
    async def choose(self, request, *, mode):
        said = await super().choose(request, mode=mode)
        return ApprovalDecision(approved=False, note=said.note, decided_by=said.decided_by)


class AsksAboutAnother(Passes):
    async def answer(self, request, mode):
        return await super().answer(request.changed(args={}), mode)


class SwallowsStops(Passes):
    async def choose(self, request, *, mode):
        try:
            return await super().choose(request, mode=mode)
        except KeyboardInterrupt:
            return ApprovalDecision(approved=False)


class LeavesOpen(Passes):
    async def choose(self, request, *, mode):
        return await asyncio.shield(asyncio.ensure_future(super().choose(request, mode=mode)))


class NamesNoApprovers(Passes):
    asks = None


class ForgetsRemovals(Passes):
    def may_approve(self, request, approvers):
        return True


class HidesReviews(Passes):
    async def answer(self, request, mode):
        return await super().answer(request.changed(review=None), mode)


class HeedsNoOne(Passes):
    heeds_approvers = True


@pytest.mark.parametrize('make', [FirstOf, Passes])
async def test_the_suite_passes_on_uis_that_pass_answers_on(make):
    await check_composition(make)
    with pytest.raises(AssertionError, match='everyone approved, but'):
        await check_composition(make, approves=False)


@pytest.mark.parametrize(
    ('wrong', 'problem'),
    [
        (ApprovesFailures, 'approved the call'),
        (ApprovesAnything, 'approved the call|is not the answer of a person'),
        (DropsNotes, 'ada denied, but'),
        (AsksAgain, 'ada denied, but'),
        (Denies, 'everyone approved, but'),
        (AsksAboutAnother, 'about another call'),
        (SwallowsStops, 'the run went on'),
        (LeavesOpen, 'is still open'),
        (NamesNoApprovers, 'does not learn who is asked'),
        (ForgetsRemovals, 'removed people may still approve'),
        (HeedsNoOne, 'only some may approve'),
        (HidesReviews, 'what a reviewer said'),
    ],
)
async def test_the_suite_fails_on_a_ui_that_is_wrong(wrong, problem):
    with pytest.raises(AssertionError, match=problem):
        await check_composition(wrong)
