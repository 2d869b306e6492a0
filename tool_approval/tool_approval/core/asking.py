"""Ask a UI, one question at a time if necessary, and turn its answers into decisions."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias, cast
from weakref import WeakValueDictionary

from pydantic import ValidationError

from .approvers import votes_needed, why_not_enough
from .arguments import Reread
from .canonical import canonical_json, copied, whole_characters
from .decision import ApprovalDecision, ApprovalMode, is_reserved
from .errors import NotCanonicalError, without_text
from .presentation import ApprovalPresentation
from .protocols import ApprovalUI, Presenter, UIAbilities
from .request import ApprovalRequest, RejectedEdit, Votes
from .threads import RunCancelled, call_sync_or_async, check_loop, to_next_wait

_log = logging.getLogger('tool_approval')


class PromptLock:
    """A lock that works across threads and event loops. Waiters acquire the lock in order of arrival."""

    def __init__(self) -> None:
        """Create a lock that is not held."""
        self.is_over = False
        """Whether the question that owns this lock has ended; see `lock_within`."""
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: deque[Future[None]] = deque()

    async def acquire(self) -> None:
        """Wait for the lock. The holder must call `release`. A cancelled waiter does not hold the lock."""
        turn = self._ask()
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            # The wait was cancelled, or the loop is closed. If the turn was given at the same moment, pass it on.
            if not turn.cancel():
                self.release()
            raise

    def release(self) -> None:
        """Pass the lock to the waiter that has waited longest. Any thread may call this method."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    break
            else:
                self._is_taken = False
                return
        turn.set_result(None)

    def _ask(self) -> Future[None]:
        turn: Future[None] = Future()
        with self._lock:
            if self._is_taken:
                self._waiting.append(turn)
                return turn
            self._is_taken = True
        turn.set_running_or_notify_cancel()
        turn.set_result(None)
        return turn


# State of the process: the prompts of all controllers, runs and threads share one terminal, and an answer typed for one
# must not be read by another.
PROCESS_LOCK = PromptLock()
"""Lock shared by all UIs whose `one_at_a_time` is true."""

# State of the process: controllers and event loops share a UI object. The key is its id, because a UI need not be
# hashable. Holders and waiters keep the entry and its UI alive, so that no other UI can get the id.
_lock_by_ui: WeakValueDictionary[int, PromptLock] = WeakValueDictionary()
_by_ui_lock = threading.Lock()


def lock_for(ui: object) -> PromptLock:
    """Return the lock of a UI object."""
    with _by_ui_lock:
        return _lock_by_ui.setdefault(id(ui), PromptLock())


# A UI may ask a question before it answers, for example an agent that reviews calls. The inner question must not wait
# for the lock that the outer one holds.
_open_questions: ContextVar[Mapping[PromptLock, PromptLock] | None] = ContextVar(
    'tool_approval_open_questions', default=None
)


def lock_within(lock: PromptLock) -> PromptLock:
    """Return the lock for a new question: `lock`, or an inner lock if the question is asked within another question."""
    inner = (_open_questions.get() or {}).get(lock)
    return lock if inner is None or inner.is_over else lock_within(inner)


@contextmanager
def open_question(lock: PromptLock) -> Generator[PromptLock]:
    """Yield a lock for nested questions, which are asked while the outer question holds `lock`.

    After the outer question has ended, the yielded lock is no longer used for new questions.
    """
    inner = PromptLock()
    token = _open_questions.set({**(_open_questions.get() or {}), lock: inner})
    try:
        yield inner
    finally:
        _open_questions.reset(token)


# State of the context: the host of an adapter may end a step with an exception, for example to pause a graph until an
# approver has answered elsewhere. No approver has decided then.
_passed_on: ContextVar[tuple[type[Exception], ...]] = ContextVar('tool_approval_passed_on', default=())


@contextmanager
def passing_on(*kinds: type[Exception]) -> Generator[None]:
    """Open a context in which exceptions of these kinds, raised by a UI, are raised by `ask` and are not denials."""
    token = _passed_on.set(kinds)
    try:
        yield
    finally:
        _passed_on.reset(token)


Answer: TypeAlias = list[ApprovalDecision] | KeyboardInterrupt | RunCancelled
"""A decision for each request, or an exception that stops the run."""


async def ask(
    ui: ApprovalUI | None,
    requests: Sequence[ApprovalRequest],
    *,
    mode: ApprovalMode,
    timeout_s: float | None,
    is_answered: Callable[[], bool] = lambda: False,
    lock: PromptLock = PROCESS_LOCK,
    abilities: UIAbilities | None = None,
    hear: Callable[[Answer], None] | None = None,
) -> list[ApprovalDecision]:
    """Ask about one request, or about all requests of a group at once.

    Args:
        ui: UI to ask.
        requests: One request, or all requests of a group if the UI has `choose_group`.
        mode: Mode passed to the UI.
        timeout_s: Maximum seconds to wait, for the lock and the answer together; `None` for no limit.
        is_answered: Returns whether the question was decided elsewhere while this function waited for the lock.
        lock: Lock for a UI whose `one_at_a_time` is true.
        abilities: Optional members that the UI has; read from the UI if `None`.
        hear: Called immediately with each answer, in the UI's thread, even if the wait was cancelled.

    Returns:
        A decision for each request, in order; an empty list if `is_answered` returned true. If the UI fails, the
        decisions are denials whose notes say why. Only cancellation, `KeyboardInterrupt` and `RunCancelled` are raised.
    """
    if ui is None:
        return _denials(requests, 'ui', 'There is no approver to ask, so the call was denied.')
    abilities = abilities or UIAbilities.of(ui)
    # Attack: whoever sits at the terminal approves a call that only others may approve (test_approvers.py).
    if any(each.approvers for each in requests) and not abilities.heeds_approvers:
        return _denials(requests, 'ui', ANYONE)
    limit = None if timeout_s is None else asyncio.timeout(timeout_s)
    try:
        answer = _answer(ui, abilities, requests, mode, is_answered, lock, hear)
        if limit is None:
            return await answer
        async with limit:
            return await answer
    except EOFError:
        return _denials(requests, 'ui', 'The approval prompt reached the end of its input, so the call was denied.')
    except _NoDecision as error:
        return _denials(
            requests, 'ui', f'The approval prompt returned no valid decision ({error}), so the call was denied.'
        )
    except Exception as error:
        if isinstance(error, _passed_on.get()):
            raise
        if limit is not None and limit.expired():
            note = f'No approver answered within {timeout_s:g} seconds, so the call was denied.'
            return _denials(requests, 'timeout', note)
        _log.error('The approval UI failed with %s', without_text(error))
        return _denials(requests, 'ui', f'The approval prompt failed ({type(error).__name__}), so the call was denied.')


ANYONE = (
    'The rules say who may approve this call, and this approval prompt does not know who answers, so the call was '
    'denied.'
)
"""Reason for a denial by a UI that cannot tell one approver from another."""


class _NoDecision(Exception):
    """The UI returned something other than a valid decision."""


def grouped(requests: Mapping[int, ApprovalRequest], abilities: UIAbilities) -> list[list[int]]:
    """Divide requests into questions, and return a list of request keys for each question.

    A question covers one group if the UI can ask about groups, and one request otherwise.
    """
    if abilities.choose_group is None:
        return [[index] for index in requests]
    questions: dict[tuple[str, object], list[int]] = {}
    for index, request in requests.items():
        # A UI that does not know who answers could otherwise ask about none of the group.
        if request.approvers or (request.group_id is None and not abilities.groups_responses):
            own = ('request', index)
        else:
            own = ('group', None if abilities.groups_responses else request.group_id)
        questions.setdefault(own, []).append(index)
    return list(questions.values())


async def _answer(
    ui: ApprovalUI,
    abilities: UIAbilities,
    requests: Sequence[ApprovalRequest],
    mode: ApprovalMode,
    is_answered: Callable[[], bool],
    lock: PromptLock,
    hear: Callable[[Answer], None] | None,
) -> list[ApprovalDecision]:
    if len(requests) == 1:
        choose, subject = ui.choose, requests[0]
    else:
        assert abilities.choose_group is not None, 'a UI without `choose_group` cannot be asked about a group'
        choose, subject = abilities.choose_group, list(requests)
    if hear is not None:
        choose = _heard(choose, requests, hear)
    if not abilities.asks_in_turn:
        return _read(await _call(abilities, choose, subject, requests, mode), requests)
    lock = lock_within(lock if abilities.one_at_a_time else lock_for(ui))
    check_loop(asyncio.get_running_loop())  # the lock is released from other threads
    await lock.acquire()
    # The turn ends when both the thread and the wait have ended: an abandoned prompt still reads input, and the
    # thread's result may have to be awaited.
    holders = 1
    counting = threading.Lock()
    with open_question(lock) as inner:

        def release() -> None:
            nonlocal holders
            with counting:
                holders -= 1
                is_last = holders == 0
            if is_last:
                inner.is_over = True
                lock.release()

        try:
            if is_answered():
                return []
            if not inspect.iscoroutinefunction(choose):
                holders += 1
            return _read(await _call(abilities, choose, subject, requests, mode, on_end=release), requests)
        finally:
            release()


async def _call(
    abilities: UIAbilities,
    choose: Callable[..., object],
    subject: object,
    requests: Sequence[ApprovalRequest],
    mode: ApprovalMode,
    *,
    on_end: Callable[[], None] = lambda: None,
) -> object:
    try:
        return await call_sync_or_async(choose, subject, mode=mode, on_end=on_end)
    except asyncio.CancelledError:
        if abilities.withdraw is not None:
            for request in requests:
                try:
                    abilities.withdraw(request)
                except Exception as error:  # noqa: BLE001 - nothing may stop the cancellation
                    _log.error('The approval UI could not withdraw a question: %s', without_text(error))
        raise


def _heard(
    choose: Callable[..., object], requests: Sequence[ApprovalRequest], hear: Callable[[Answer], None]
) -> Callable[..., object]:
    """Wrap `choose` so that `hear` receives an answer before the caller of `choose` does."""

    @contextmanager
    def hearing_stops() -> Generator[None]:
        try:
            yield
        except (KeyboardInterrupt, RunCancelled) as stop:
            hear(stop)
            raise

    def note(said: object) -> object:
        with suppress(_NoDecision):
            hear(_read(said, requests))
        return said

    async def awaited(said: Awaitable[object]) -> object:
        return await said

    async def finished(said: Coroutine[Any, Any, object]) -> object:
        with hearing_stops():
            return note(await to_next_wait(said))

    async def on_loop(subject: object, *, mode: ApprovalMode) -> object:
        return await finished(cast('Coroutine[Any, Any, object]', choose(subject, mode=mode)))

    def in_its_thread(subject: object, *, mode: ApprovalMode) -> object:
        with hearing_stops():
            said = choose(subject, mode=mode)
            return finished(awaited(said)) if inspect.isawaitable(said) else note(said)

    return on_loop if inspect.iscoroutinefunction(choose) else in_its_thread


def _read(said: object, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
    if len(requests) == 1:
        return [_checked(said, requests[0])]
    if isinstance(said, ApprovalDecision) and (said.override_args is not None or said.response is not None):
        raise _NoDecision('changed arguments or a response were given for a whole group')
    answers = list(cast('Sequence[object]', said)) if isinstance(said, list | tuple) else [said] * len(requests)
    if len(answers) != len(requests):
        raise _NoDecision(f'{len(answers)} answers were given to {len(requests)} requests')
    return [_checked(answer, request) for answer, request in zip(answers, requests, strict=True)]


def _checked(decision: object, request: ApprovalRequest) -> ApprovalDecision:
    if not isinstance(decision, ApprovalDecision):
        raise _NoDecision(f'a value of type {type(decision).__name__} was returned')
    try:
        # The decision may have skipped validation, and a UI that changes its arguments later must not change these.
        is_plain = decision.override_args is None and decision.response is None
        given = vars(decision) if is_plain else decision.model_dump(warnings='none')
        if isinstance(decision.response, str):
            given['response'] = whole_characters(decision.response)
        decision = ApprovalDecision.model_validate(dict(given))
        if decision.response is not None:
            canonical_json(decision.response)
    except ValidationError:
        raise _NoDecision('the decision is malformed') from None
    except NotCanonicalError as error:
        raise _NoDecision(f'the response is invalid: {error.problem}') from None
    refused = request.not_allowed(decision)
    if refused is not None:
        raise _NoDecision(f'the tool does not allow the answer `{refused}`')
    if decision.remember != 'none' and decision.remember_option not in request.coverings:
        raise _NoDecision('the request does not offer this option for remembering the approval')
    if decision.note is None and not decision.decided_by and not request.approvers:
        return decision
    # Attack: a UI says that the policy, the mode or the memory has decided, and the log would say so, too
    # (test_a_ui_cannot_decide_in_the_name_of_a_rule).
    no_rules = decision.decided_by == ('ui',) or (decision.decided_by == ('timeout',) and not decision.approved)
    no_rules = no_rules or (decision.decided_by == ('reviewer',) and decision.answers == ('approve',))
    by = [each if no_rules or not is_reserved(each) else 'other' for each in decision.decided_by]
    # The texts may have been typed in another encoding. Attack: one person is counted twice (test_asking.py).
    note = None if decision.note is None else whole_characters(decision.note)
    names = tuple(dict.fromkeys(map(whole_characters, by)))
    if decision.approved and request.approvers:
        _check_people(request, () if no_rules else names)
    return decision.model_copy(update={'note': note, 'decided_by': names})


def _check_people(request: ApprovalRequest, names: tuple[str, ...]) -> None:
    needed = 1 if request.votes is not None else votes_needed(request.approvers)
    people = Votes(needed=needed).new(names, requester=request.facts.requester if needed > 1 else None)
    if (problem := why_not_enough(request.approvers, people, needed=needed)) is not None:
        raise _NoDecision(problem)


def _denials(requests: Sequence[ApprovalRequest], rule: str, note: str) -> list[ApprovalDecision]:
    return [ApprovalDecision(approved=False, note=note, decided_by=(rule,))] * len(requests)


MOST_EDITS = 20
"""Maximum number of invalid edits of one call, after which it is denied. No person tries as often, and a program that
answers with ever new edits must not be asked for ever."""


async def with_valid_edit(
    answer: ApprovalDecision,
    shown: ApprovalRequest,
    reread: Reread | None,
    put: Callable[[Sequence[ApprovalRequest]], Awaitable[list[ApprovalDecision]]],
) -> ApprovalDecision:
    """Ask again with the reason, as long as the answer is an edit that the tool cannot take, and that is new."""
    tried: set[str] = set()
    while reread is not None and answer.override_args is not None:
        try:
            text = canonical_json(answer.override_args)
        except NotCanonicalError:
            break  # judged with the decision
        try:
            reread(answer.override_args)
            break
        except ValueError as error:
            problem = str(error)
        # A program may give the same answer for ever.
        if text in tried or len(tried) == MOST_EDITS - 1:
            break
        tried.add(text)
        rejected = RejectedEdit(args=copied(answer.override_args), problem=problem)
        [again] = await put([shown.detached(rejected_edit=rejected)])
        if not again.approved and again.rule == 'ui' and again.note is not None:
            break  # the UI failed, so the edit is the last word: it is refused with its own reason
        answer = again
    return answer


async def presented(
    request: ApprovalRequest, presenter: Presenter | None, *, timeout_s: float | None
) -> ApprovalRequest:
    """Return the request with its presentation. The UI and the presenter get separate copies of the arguments.

    Raises:
        TypeError: The presenter returns something else.
        TimeoutError: The presenter takes longer than `timeout_s` seconds.
    """
    if presenter is None or request.presentation is not None:
        return request.detached()
    async with asyncio.timeout(timeout_s):
        presentation = await call_sync_or_async(presenter, request.detached())
    if presentation is not None and not isinstance(presentation, ApprovalPresentation):
        raise TypeError('a presenter must return an `ApprovalPresentation` or `None`')
    return request.detached(presentation=presentation)
