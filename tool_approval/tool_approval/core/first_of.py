"""Ask several UIs at once: the first answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from .asking import ask
from .decision import ApprovalDecision, ApprovalMode
from .protocols import ApprovalUI, UIAbilities
from .request import ApprovalRequest
from .threads import RunCancelled

_Answered = list[tuple[ApprovalRequest, ApprovalDecision]]

# A UI is cancelled when another has answered, and a cancellation carries no answer through everything it passes.
# One list for each `FirstOf` around the question, filled before the UI is cancelled.
_answered: ContextVar[tuple[_Answered, ...]] = ContextVar('tool_approval_answered', default=())


def answered_elsewhere(request: ApprovalRequest) -> ApprovalDecision | None:
    """How another UI of a `FirstOf` has answered, for a UI whose question is withdrawn; `None` if none has.

    Args:
        request: The very object that `choose` was called with, in its task or thread.
    """
    answers = (answer for answers in _answered.get() for answer in answers)
    return next((decision for asked, decision in answers if asked is request), None)


class FirstOf:
    """An approval UI that asks several others at once, such as a terminal and an inbox.

    The first answer counts; the others are cancelled, as when a run is, and `answered_elsewhere` tells them why. Of
    answers that come in the same moment, a denial counts. What a UI denies because it could ask nobody, failed, or
    waited too long takes the question from no other; if all of them do, the last such denial is the answer. Stopping
    the run at one of them stops it.

    A group of requests is one question for a UI that has `choose_group`, and several for the others. If one of these is
    answered elsewhere, the group is asked about again without it.
    """

    def __init__(self, *uis: ApprovalUI) -> None:
        """Ask these, each as it would be asked alone: terminals one question at a time.

        Raises:
            ValueError: There is none.
        """
        if not uis:
            raise ValueError('`FirstOf` needs a UI to ask')
        self._uis = uis
        self._abilities = [UIAbilities.of(ui) for ui in uis]
        self.groups_responses = any(each.groups_responses for each in self._abilities)
        """Whether all requests of a response are one question for one of them."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request."""
        [decision] = await self.choose_group([request], mode=mode)
        return decision

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Ask about a group; a decision for each, in order."""
        return await _Questions(self._uis, self._abilities, requests, mode).decide()


_Result = list[ApprovalDecision] | KeyboardInterrupt | RunCancelled


class _Questions:
    """The questions about one group: each is a task, of one UI and some of the requests."""

    def __init__(
        self,
        uis: Sequence[ApprovalUI],
        abilities: Sequence[UIAbilities],
        requests: Sequence[ApprovalRequest],
        mode: ApprovalMode,
    ) -> None:
        self._uis = uis
        self._abilities = abilities
        self._requests = requests
        self._mode: ApprovalMode = mode
        self._tasks: dict[asyncio.Task[_Result], tuple[int, list[int]]] = {}
        self._decided: dict[int, ApprovalDecision] = {}
        self._asked: dict[int, set[int]] = {index: set(range(len(uis))) for index in range(len(requests))}
        self._answered: _Answered = []

    async def decide(self) -> list[ApprovalDecision]:
        """Ask until each request is decided."""
        try:
            for number in range(len(self._uis)):
                self._start(number, list(self._asked))
            while self._tasks:
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                await self._take({task: self._tasks.pop(task) for task in done})
        finally:
            await self._cancel(list(self._tasks))
        return [self._decided[index] for index in range(len(self._requests))]

    def _start(self, number: int, indices: list[int]) -> None:
        can_group = self._abilities[number].choose_group is not None
        for some in [indices] if can_group else [[index] for index in indices]:
            task = asyncio.create_task(self._ask(number, [self._requests[index] for index in some]))
            self._tasks[task] = number, some

    async def _ask(self, number: int, requests: list[ApprovalRequest]) -> _Result:
        _answered.set((*_answered.get(), self._answered))
        try:
            return await ask(
                self._uis[number], requests, mode=self._mode, timeout_s=None, abilities=self._abilities[number]
            )
        except (KeyboardInterrupt, RunCancelled) as stop:
            return stop  # raised in a task, the one would end the event loop, and the other be taken for its end

    async def _take(self, done: Mapping[asyncio.Task[_Result], tuple[int, list[int]]]) -> None:
        """Note what was answered, and withdraw those questions elsewhere."""
        for task, (number, indices) in done.items():
            result = task.result()
            if not isinstance(result, list):
                raise result
            for index, decision in zip(indices, result, strict=True):
                self._note(number, index, decision)
        self._answered += [
            (self._requests[index], self._decided[index]) for index in self._asked if index in self._decided
        ]
        for index in self._decided:
            self._asked.pop(index, None)
        stale = {task: some for task, some in self._tasks.items() if not self._asked.keys() >= set(some[1])}
        await self._cancel(list(stale))
        for task, (number, indices) in stale.items():
            del self._tasks[task]
            if left := [index for index in indices if index in self._asked]:
                self._start(number, left)

    def _note(self, number: int, index: int, decision: ApprovalDecision) -> None:
        if _is_of_nobody(decision):
            self._asked[index].discard(number)
            if not self._asked[index]:
                self._decided.setdefault(index, decision)
        else:
            self._decided[index] = self._decided.get(index, decision) if decision.approved else decision

    @staticmethod
    async def _cancel(tasks: Sequence[asyncio.Task[_Result]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _is_of_nobody(decision: ApprovalDecision) -> bool:
    """Whether a UI has denied by itself: with a note that says why, and its own name in place of a person's."""
    return not decision.approved and decision.note is not None and decision.decided_by in ('ui', 'timeout')
