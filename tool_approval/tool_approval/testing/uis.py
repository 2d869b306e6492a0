"""UIs that answer by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.request import ApprovalRequest

Answer: TypeAlias = (
    ApprovalDecision | bool | str | BaseException | Callable[[ApprovalRequest], 'ApprovalDecision | bool | str']
)
"""`True` or `'y'` approves, `'s'` also for the session, `'a'` always, `False` or `'n'` denies, any other text denies
with it as the note, an exception is raised, and a function is asked."""


class ScriptedUI:
    """Answers from a list, in order; it fails the test when it is asked more than that."""

    one_at_a_time = True
    """So that the order of the answers is that of the questions."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.requests: list[ApprovalRequest] = []
        """What was asked, in order."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Give the next answer.

        Raises:
            AssertionError: No answer is left. The controller makes a denial of it, and `assert_done` fails.
        """
        with self._lock:
            self.requests.append(request)
            if len(self.requests) > len(self._answers):
                raise AssertionError(f'asked about {request.description!r}, and no answer is left')
            answer = self._answers[len(self.requests) - 1]
        return _read_answer(answer, request)

    def assert_done(self) -> None:
        """Fail unless every answer was used, and no more was asked."""
        assert len(self.requests) == len(self._answers), (
            f'{len(self._answers)} answers were prepared, and {len(self.requests)} questions asked'
        )


class RecordingUI:
    """Keeps what it was asked, and gives the same answer to everything."""

    def __init__(self, answer: Answer = True) -> None:
        """Approve everything, or whatever `answer` says."""
        self._answer = answer
        self.requests: list[ApprovalRequest] = []
        """What was asked, in order."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Keep the request, and answer."""
        self.requests.append(request)
        return _read_answer(self._answer, request)


def approve_all() -> RecordingUI:
    """A UI that approves everything."""
    return RecordingUI(True)


def deny_all(note: str = 'denied by the test') -> RecordingUI:
    """A UI that denies everything."""
    return RecordingUI(note)


def _read_answer(answer: Answer, request: ApprovalRequest) -> ApprovalDecision:
    """The decision that an answer of a script means."""
    if callable(answer):
        answer = answer(request)
    match answer:
        case ApprovalDecision():
            return answer
        case BaseException():
            raise answer
        case True | 'y':
            return ApprovalDecision(approved=True)
        case 's':
            return ApprovalDecision(approved=True, remember='session')
        case 'a':
            return ApprovalDecision(approved=True, remember='always')
        case False | 'n':
            return ApprovalDecision(approved=False)
        case _:
            return ApprovalDecision(approved=False, note=answer)
