"""UIs that answer automatically."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from tool_approval.core.approvers import votes_needed
from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.request import ApprovalRequest

Answer: TypeAlias = (
    ApprovalDecision | bool | str | BaseException | Callable[[ApprovalRequest], 'ApprovalDecision | bool | str']
)
"""A scripted answer. `True` or `'y'` approves the call, `'s'` approves the call for the session, and `'a'` approves the
call permanently. `False` or `'n'` denies the call, and any other string denies it with the string as the note. If the
answer is an exception, it is raised. If the answer is a function, it is called with the request."""


class ScriptedUI:
    """Answers from a list, in order. A question after the last answer fails the test."""

    one_at_a_time = True
    """Questions are asked one by one, so that answers and questions are in the same order."""
    heeds_approvers = True
    """An approval by `True`, `'y'` or `'s'` is one by as many of the people in `request.approvers` as it needs."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        """Prepare the answers.

        Raises:
            TypeError: `answers` is a single string. Its letters would be taken as answers.
        """
        if isinstance(answers, str):
            raise TypeError(f'`answers` must be a list of answers, such as [{answers!r}], not one string')
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.requests: list[ApprovalRequest] = []
        """Requests received so far, in order."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Return the next answer.

        Raises:
            AssertionError: No answer is left. The controller turns this error into a denial, and `assert_done` fails.
            EOFError: No answer is left for a question that is asked again because the tool could not take an edit. The
                question is not counted, and the call is denied because of the edit.
        """
        with self._lock:
            if request.rejected_edit is not None and len(self.requests) == len(self._answers):
                raise EOFError
            self.requests.append(request)
            if len(self.requests) > len(self._answers):
                raise AssertionError(f'the question about {request.description!r} has no prepared answer')
            answer = self._answers[len(self.requests) - 1]
        return _read_answer(answer, request)

    def assert_done(self) -> None:
        """Fail unless the number of questions asked equals the number of prepared answers."""
        last = f'; the last was {self.requests[-1].description!r}' if self.requests else ''
        assert len(self.requests) == len(self._answers), (
            f'{len(self._answers)} answers were prepared, but {len(self.requests)} questions were asked{last}'
        )


class RecordingUI:
    """A UI that records all requests and gives each of them the same answer."""

    heeds_approvers = True
    """An approval is one by as many of the people in `request.approvers` as it needs."""

    def __init__(self, answer: Answer = True) -> None:
        """Answer every request with `answer`. The default approves."""
        self._answer = answer
        self.requests: list[ApprovalRequest] = []
        """Requests received so far, in order."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Record the request, and answer it."""
        self.requests.append(request)
        return _read_answer(self._answer, request)


def approve_all() -> RecordingUI:
    """Return a UI that approves everything."""
    return RecordingUI(True)


def deny_all(note: str = 'denied by the test') -> RecordingUI:
    """Return a UI that denies everything."""
    return RecordingUI(note)


def _read_answer(answer: Answer, request: ApprovalRequest) -> ApprovalDecision:
    """Turn a scripted answer into a decision."""
    if callable(answer):
        answer = answer(request)
    match answer:
        case ApprovalDecision():
            return answer
        case BaseException():
            raise answer
        case True | 'y':
            return ApprovalDecision(approved=True, decided_by=_people(request))
        case 's':
            return ApprovalDecision(approved=True, remember='session', decided_by=_people(request))
        case 'a':
            return ApprovalDecision(approved=True, remember='always', decided_by=_people(request))
        case False | 'n':
            return ApprovalDecision(approved=False)
        case _:
            return ApprovalDecision(approved=False, note=answer)


def _people(request: ApprovalRequest) -> tuple[str, ...]:
    """Return names of people who may approve a call, if a rule says who may."""
    rules = [rule.everyone for rule in request.approvers]
    if not rules:
        return ()
    needed = votes_needed(request.approvers)
    names = sorted(set[str].union(*(set(rule.users) for rule in rules)))
    names = [each for each in names if all(rule.may_list(each) for rule in rules)]
    return (*names, *(f'person {number + 1}' for number in range(needed)))[:needed]
