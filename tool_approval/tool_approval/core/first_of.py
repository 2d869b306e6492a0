"""Ask several UIs at once, and use the first answer."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from .asking import Answer, ask
from .decision import ApprovalDecision, ApprovalMode
from .protocols import ApprovalUI, UIAbilities, check_ui
from .request import ApprovalRequest
from .threads import RunCancelled

_log = logging.getLogger('tool_approval')

_Answered = list[tuple[ApprovalRequest, ApprovalDecision]]

# A UI is cancelled when another has answered, and a cancellation cannot carry that answer.
# One list for each `FirstOf` around the question, filled before the UI is cancelled.
_answered: ContextVar[tuple[_Answered, ...]] = ContextVar('tool_approval_answered', default=())

# A UI inside a `Count` gets another object than the UIs around the `Count`.
_standing: ContextVar[tuple[tuple[ApprovalRequest, ApprovalRequest], ...]] = ContextVar(
    'tool_approval_standing', default=()
)


async def _at_once(number: int) -> None:
    return


def answered_elsewhere(request: ApprovalRequest) -> ApprovalDecision | None:
    """Return the answer that another UI of a `FirstOf` gave to a withdrawn question, or `None`.

    Args:
        request: The object passed to `choose`, not a copy. Call this function in the task or thread that runs `choose`.
    """
    same = [request]
    for shown, original in reversed(_standing.get()):
        if shown is same[-1]:
            same.append(original)
    answers = (answer for answers in _answered.get() for answer in answers)
    return next((decision for asked, decision in answers if any(asked is each for each in same)), None)


@contextmanager
def standing_for(shown: ApprovalRequest, original: ApprovalRequest) -> Generator[None]:
    """Open a context in which an answer to `original` in another UI is also an answer to `shown`."""
    token = _standing.set((*_standing.get(), (shown, original)))
    try:
        yield
    finally:
        _standing.reset(token)


class FirstOf:
    """An approval UI that asks several other UIs at once, such as a terminal and an inbox.

    When one UI answers, `FirstOf` cancels the question in all other UIs. A cancelled UI can read the answer with
    `answered_elsewhere`. If a UI cannot ask, fails or times out, the other UIs continue. If no UI gets an answer, the
    call is denied, and the last UI gives the reason. If the user stops the run at one UI, the run ends.

    A denial or a stop takes precedence over an approval, even if the denial or the stop comes from a UI that is being
    cancelled. If a thread returns a denial or a stop after all UIs are cancelled, the answer is only logged.

    A UI that has `choose_group` gets one question about a group of requests. Any other UI gets one question for each
    request. If another UI answers one of the requests, the group question is asked again without that request.

    If several people must agree (`request.votes`), an approval that is not another person's vote counts as no answer.
    """

    heeds_approvers = True
    """Whether only the people whom `request.approvers` lists can approve. A UI that does not know who answers is not
    asked about such a request."""

    def __init__(self, *uis: ApprovalUI) -> None:
        """Create from UIs. Each UI is asked as if it were the only one. A terminal gets one question at a time.

        Raises:
            ValueError: No UI was given.
            TypeError: One of the UIs has no `choose`, or is a class. A list of UIs is not a UI: use `FirstOf(*uis)`.
        """
        if not uis:
            raise ValueError('`FirstOf` needs at least one UI')
        for each in uis:
            check_ui(each)
        # A nested `FirstOf` would be cancelled before it can report its answer, so its UIs are asked directly.
        self.uis = [each for ui in uis for each in (ui.uis if isinstance(ui, FirstOf) else [ui])]
        """The UIs, with those of a nested `FirstOf` in its place."""
        self._abilities = [UIAbilities.of(ui) for ui in self.uis]
        self.groups_responses = any(each.groups_responses for each in self._abilities)
        """Whether one of the UIs asks about all requests of a response as one group."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request."""
        [decision] = await self.choose_group([request], mode=mode)
        return decision

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Ask about a group, and return a decision for each request, in order."""
        return await self.ask(requests, mode=mode)

    async def ask(
        self,
        requests: Sequence[ApprovalRequest],
        *,
        mode: ApprovalMode,
        begin: Callable[[int], Awaitable[None]] = _at_once,
    ) -> list[ApprovalDecision]:
        """Ask as `choose_group` does, for a UI that composes others in another way.

        Args:
            requests: The requests.
            mode: Mode passed to the UIs.
            begin: Awaited with the index of a UI in `uis` before this UI is asked.
        """
        return await _Questions(self.uis, self._abilities, requests, mode, begin).decide()

    def asks(self, request: ApprovalRequest) -> list[str]:
        """Return the people and groups whom the UIs ask, as far as the UIs know them."""
        named = [name for each in self._abilities if each.asks is not None for name in each.asks(request)]
        return list(dict.fromkeys(named))

    def may_approve(self, request: ApprovalRequest, approvers: Sequence[str]) -> bool:
        """Return whether these people may still approve a request at one of the UIs. A UI without `may_approve` allows
        all approvers.
        """
        return any(each.may_approve is None or each.may_approve(request, approvers) for each in self._abilities)


class _Questions:
    """The open questions about one group. Each question has a task, which asks one UI about some of the requests."""

    def __init__(
        self,
        uis: Sequence[ApprovalUI],
        abilities: Sequence[UIAbilities],
        requests: Sequence[ApprovalRequest],
        mode: ApprovalMode,
        begin: Callable[[int], Awaitable[None]],
    ) -> None:
        self._begin = begin
        self._uis = uis
        self._abilities = abilities
        self._requests = requests
        self._mode: ApprovalMode = mode
        self._tasks: dict[asyncio.Task[list[ApprovalDecision]], tuple[int, list[int]]] = {}
        self._able = [set(range(len(uis))) for _ in requests]
        self._answered: _Answered = []
        # Threads write to these two attributes until `_is_over` is set.
        self._decided: dict[int, ApprovalDecision] = {}
        self._stop: KeyboardInterrupt | RunCancelled | None = None
        self._is_over = False
        self._lock = threading.Lock()

    async def decide(self) -> list[ApprovalDecision]:
        """Ask until each request is decided."""
        try:
            for number in range(len(self._uis)):
                self._start(number, list(range(len(self._requests))))
            while self._tasks and self._stop is None:
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._count(*self._tasks.pop(task), task.result())
                await self._withdraw()
        except asyncio.CancelledError:
            # A UI around this one has answered. As in one `FirstOf`, a denial here overrides that answer.
            await self._cancel(list(self._tasks))
            is_denied = all(
                index in self._decided and not self._decided[index].approved for index in range(len(self._requests))
            )
            if not (is_denied or self._stop is not None) or not all(map(answered_elsewhere, self._requests)):
                raise
        finally:
            with self._lock:
                self._is_over = True
            await self._cancel(list(self._tasks))
        if self._stop is not None:
            raise self._stop
        return [self._decided[index] for index in range(len(self._requests))]

    def _start(self, number: int, indices: list[int]) -> None:
        can_group = self._abilities[number].choose_group is not None
        for some in [indices] if can_group else [[index] for index in indices]:
            task = asyncio.create_task(self._ask(number, some))
            self._tasks[task] = number, some

    async def _ask(self, number: int, indices: list[int]) -> list[ApprovalDecision]:
        _answered.set((*_answered.get(), self._answered))
        await self._begin(number)
        try:
            return await ask(
                self._uis[number],
                [self._requests[index] for index in indices],
                mode=self._mode,
                timeout_s=None,
                abilities=self._abilities[number],
                hear=partial(self._hear, indices),
            )
        except (KeyboardInterrupt, RunCancelled):
            return []  # `_hear` has the stop. Raised here, it would end the event loop or only this task

    def _hear(self, indices: list[int], answer: Answer) -> None:
        """Apply a denial or a stop. Any thread may call this method. After the last question, only log the answer."""
        decisions = zip(indices, answer, strict=True) if isinstance(answer, list) else ()
        denials = {index: each for index, each in decisions if not (each.approved or _is_of_nobody(each))}
        stop = None if isinstance(answer, list) else answer
        with self._lock:
            if not self._is_over:
                self._decided.update(denials)
                self._stop = self._stop or stop
                return
        why = 'another UI had already approved the call, or the run was cancelled'
        if stop is not None:
            _log.warning('A UI tried to stop the run too late: %s', why)
        for index in (index for index in denials if index not in self._decided or self._decided[index].approved):
            by, name = ', '.join(denials[index].decided_by), self._requests[index].tool_name
            _log.warning('%r denied the call of %r too late: %s', by, name, why)

    def _count(self, number: int, indices: list[int], answers: list[ApprovalDecision]) -> None:
        """Apply timely answers. If a UI got no answer, ignore its denial while another UI may still get one."""
        for index, answer in zip(indices, answers, strict=False):  # a UI that stopped the run has no answers
            decision = _counted(self._requests[index], answer)
            if _is_of_nobody(decision):
                self._able[index].discard(number)
            if not (_is_of_nobody(decision) and self._able[index]):
                self._decided.setdefault(index, decision)

    async def _withdraw(self) -> None:
        """Cancel each question that contains a decided request, and ask again about the question's other requests."""
        while stale := [task for task, (_, some) in self._tasks.items() if not self._decided.keys().isdisjoint(some)]:
            decided = [index for index in range(len(self._requests)) if index in self._decided]
            self._answered[:] = [(self._requests[index], self._decided[index]) for index in decided]
            await self._cancel(stale)
            for number, indices in map(self._tasks.pop, stale):
                if left := [index for index in indices if index not in self._decided and self._stop is None]:
                    self._start(number, left)

    @staticmethod
    async def _cancel(tasks: Sequence[asyncio.Task[list[ApprovalDecision]]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _counted(request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision:
    """Return an answer if it counts among several people. Otherwise, return a denial with which the other UIs go on."""
    votes = request.votes
    if votes is None or not decision.approved or votes.new(decision.people, requester=request.facts.requester):
        return decision
    names = ' and '.join(decision.people)
    who = f'the vote of {names} does not count again, or not at all' if names else 'the UI did not name the approver'
    note = f'Not enough people could be asked ({who}), so the call was denied.'
    return ApprovalDecision(approved=False, note=note, decided_by=('ui',))


def _is_of_nobody(decision: ApprovalDecision) -> bool:
    """Return whether a UI got no answer. Its denial then has a note, and `decided_by` is `ui` or `timeout`."""
    return not decision.approved and decision.note is not None and decision.rule in ('ui', 'timeout')
