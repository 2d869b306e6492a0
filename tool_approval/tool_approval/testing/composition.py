"""Check a UI that asks other UIs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tool_approval.core.approvers import ApproverRule
from tool_approval.core.asking import ask
from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.protocols import ApprovalUI, UIAbilities
from tool_approval.core.request import ApprovalRequest, Review

_TURNS = 50
"""Turns of the event loop after which a UI that does not wait for anything else has asked."""


class _People:
    """Gives an answer of another person each time, and notes which questions are open."""

    one_at_a_time = False

    def __init__(
        self, answer: Callable[[int], object], *, waits: bool = False, allowed: bool = True, knows: bool = True
    ) -> None:
        self._answer, self._waits, self._allowed, self.heeds_approvers = answer, waits, allowed, knows
        self.asked: list[ApprovalRequest] = []
        self.open = 0

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.asked.append(request)
        self.open += 1
        try:
            if self._waits:
                await asyncio.Event().wait()
            said = self._answer(len(self.asked))
            if isinstance(said, BaseException):
                raise said
            return said  # pyright: ignore[reportReturnType] - also what no UI may return
        finally:
            self.open -= 1

    def asks(self, request: ApprovalRequest) -> list[str]:
        return ['everyone']

    def may_approve(self, request: ApprovalRequest, approvers: Sequence[str]) -> bool:
        return self._allowed


async def check_composition(
    compose: Callable[[ApprovalUI], ApprovalUI], *, approves: bool = True, timeout_s: float = 10.0
) -> None:
    """Check that a UI made from another UI approves and denies only what people there do, and leaves nothing open.

    Args:
        compose: Function that makes the UI from one other UI. That UI answers in the name of another person each time.
        approves: Whether the UI approves a call that all people approve.
        timeout_s: Maximum seconds for one answer.
    """
    request = ApprovalRequest(
        tool_name='pay', args={'to': 'bob', 'cents': 100}, metadata={'position': 1, 'batch_size': 1}
    )

    async def decide(answer: Callable[[int], object]) -> tuple[ApprovalDecision, _People]:
        people = _People(answer)
        [decision] = await ask(compose(people), [request], mode='interactive', timeout_s=timeout_s)
        assert people.open == 0, f'{people.open} questions are still open after the answer {decision!r}'
        return decision, people

    people = _People(lambda number: ApprovalDecision(approved=False, decided_by=('ada',)))
    told = request.changed(review=Review(sentence='Ask the user first.'))
    await ask(compose(people), [told], mode='interactive', timeout_s=timeout_s)
    assert all(each.review is not None for each in people.asked), 'the people do not read what a reviewer said'

    yes, people = await decide(lambda number: ApprovalDecision(approved=True, decided_by=(f'person {number}',)))
    assert yes.approved is approves, f'everyone approved, but the UI decided {yes!r}'
    for each in people.asked:
        same = (each.tool_name, each.args, each.payload) == (request.tool_name, request.args, request.payload)
        assert same, f'the people were asked about another call: {each!r}'
    no, people = await decide(lambda number: ApprovalDecision(approved=False, note='Not now.', decided_by=('ada',)))
    is_ada = (no.approved, no.note, no.decided_by) == (False, 'Not now.', ('ada',))
    assert is_ada and len(people.asked) == 1, f'ada denied, but the UI decided {no!r}'
    for said in (None, True, 'yes', ApprovalDecision.model_construct(approved='yes'), RuntimeError('down'), EOFError()):
        decision, _ = await decide(lambda number, said=said: said)
        assert not decision.approved, f'{said!r} approved the call'
        assert decision.rule == 'ui', f'{said!r} is not the answer of a person: {decision!r}'
    await _check_cancellation(compose, request)
    await _check_stop(compose, request)
    abilities = UIAbilities.of(compose(_People(lambda number: None)))
    assert abilities.asks is not None and 'everyone' in abilities.asks(request), 'the log does not learn who is asked'
    if abilities.heeds_approvers:
        await _check_approvers(compose, request, approves=approves)
    removed = UIAbilities.of(compose(_People(lambda number: None, allowed=False))).may_approve
    assert removed is not None and not removed(request, ('person 1', 'person 2')), 'removed people may still approve'


async def _check_approvers(
    compose: Callable[[ApprovalUI], ApprovalUI], request: ApprovalRequest, *, approves: bool
) -> None:
    names = frozenset(f'person {number}' for number in range(1, 10))
    listed = request.changed(approvers=(ApproverRule(users=names),))
    for knows in (True, False):
        people = _People(lambda number: ApprovalDecision(approved=True, decided_by=(f'person {number}',)), knows=knows)
        [decision] = await ask(compose(people), [listed], mode='interactive', timeout_s=None)
        assert decision.approved is (knows and approves), (
            f'of a call that only some may approve, it decided {decision!r}'
        )
        heard = all(each.approvers == listed.approvers for each in people.asked)
        assert heard and (knows or not people.asked), 'people were asked who may not approve the call'


async def _check_stop(compose: Callable[[ApprovalUI], ApprovalUI], request: ApprovalRequest) -> None:
    stopped = False
    try:
        await ask(compose(_Stops()), [request], mode='interactive', timeout_s=None)
    except KeyboardInterrupt:
        stopped = True
    assert stopped, 'a person stopped the run, and the run went on'


class _Stops(_People):
    def __init__(self) -> None:
        super().__init__(lambda number: None)

    def choose(  # pyright: ignore[reportIncompatibleMethodOverride] - it blocks, as a terminal does
        self, request: ApprovalRequest, *, mode: ApprovalMode
    ) -> ApprovalDecision:
        raise KeyboardInterrupt


async def _check_cancellation(compose: Callable[[ApprovalUI], ApprovalUI], request: ApprovalRequest) -> None:
    people = _People(lambda number: None, waits=True)
    before = asyncio.all_tasks()
    asking = asyncio.create_task(ask(compose(people), [request], mode='interactive', timeout_s=None))
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    assert people.open == 0, 'a question is still open after the run was cancelled'
    assert asyncio.all_tasks() == before, 'a task is left'
