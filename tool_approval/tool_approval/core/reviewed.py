"""Let a reviewer, such as a model, approve some calls, and ask a person about all others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import translate
from re import compile as compile_pattern
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError, field_validator

from .canonical import copied
from .conditions import Condition, hold, received
from .decision import ApprovalDecision, ApprovalMode
from .errors import ApprovalConfigError, check_methods, check_type, without_text
from .first_of import FirstOf
from .presentation import EXTRA_ACCESS
from .protocols import ApprovalUI
from .request import ApprovalRequest, Review
from .threads import call_sync_or_async

REVIEWER: Final = 'reviewer'
"""Value of `decided_by` for an approval by a reviewer."""

_log = logging.getLogger('tool_approval')


class CallToReview(BaseModel):
    """A call as a reviewer sees it: with the user's words and its effect, and never with the output of a tool."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    said: tuple[str, ...]
    """Texts that the user has written, oldest first; empty if they are unknown, also for an agent inside a tool."""
    tool_name: str
    """Name by which the model calls the tool."""
    args: Mapping[str, Any]
    """Argument values that an approver would see, in JSON form."""
    description: str
    """One line of the tool or the settings about the call."""
    reason: str | None
    """Why the call needs approval."""
    effect: str | None
    """Content that an approver would see, such as a diff; `None` if the tool shows none."""
    may_approve: bool
    """Whether the reviewer may approve the call. Otherwise a person is asked, whatever the reviewer says."""


class Opinion(BaseModel):
    """The answer of a reviewer: approve the call, or ask a person."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    approve: StrictBool
    """Whether to approve the call. `False` asks the person."""
    sentence: str | None = Field(default=None, min_length=1, max_length=300)
    """One sentence that the person reads as the reviewer's. At most 300 characters on one line."""

    @field_validator('sentence')
    @classmethod
    def _is_one_line(cls, sentence: str | None) -> str | None:
        # Attack: a call talks the reviewer into lines that look like those of the question (test_reviewed.py).
        if sentence is not None and not sentence.isprintable():
            raise ValueError('not one line of text that can be shown')
        return sentence


Reviewer: TypeAlias = Callable[[CallToReview], Opinion | Mapping[str, Any] | Awaitable[Opinion | Mapping[str, Any]]]
"""Reviews a call, and returns an `Opinion` or its fields. A plain function is called in a thread."""

_CONDITIONS: Final = TypeAdapter(dict[str, dict[str, Condition]])


class Reviewed:
    """An approval UI that asks a reviewer first, and then a person.

    The reviewer approves only calls that `may_approve` lists. Of these, it approves none that a rule with `approvers`
    or several people decide about, that shows the reviewer less than it does, that gets extra access or grants
    capabilities, that only a person can approve, or that may have run already. If the reviewer does not approve, fails,
    takes too long or gives a malformed answer, the person is asked. The person reads the sentence of the reviewer as
    such.

    An approval of the reviewer is not one of a person: `decided_by` is `reviewer`, it is never remembered, and it does
    not count among the votes of a `Count`.
    """

    one_at_a_time = False
    """Whether only one question may be open at a time."""
    heeds_approvers = True
    """Whether only the people whom `request.approvers` lists can approve."""

    def __init__(
        self,
        reviewer: Reviewer,
        *,
        then: ApprovalUI,
        may_approve: Mapping[str, Mapping[str, Any]],
        timeout: float = 30.0,
        shadow: bool = False,
    ) -> None:
        """Create from a reviewer and the UI that asks the person.

        Args:
            reviewer: Function that reviews a call.
            then: UI that asks the person.
            may_approve: Calls that the reviewer may approve: by tool name or glob, the conditions by argument, as in
                `when` of a rule's cases. All conditions of one entry must hold. `{}` lists all calls of the tool.
            timeout: Maximum seconds for the reviewer. After that, the person is asked.
            shadow: Whether what the reviewer would do is only written to the log, with the answer of the person. The
                person is asked about every call, and does not see the opinion.

        Raises:
            TypeError: An argument has a wrong type.
            ValueError: The timeout is not positive.
            ApprovalConfigError: A condition in `may_approve` is invalid.
        """
        check_methods('reviewer', reviewer, 'a function of the call to review', '__call__')
        check_type('may_approve', may_approve, 'a mapping from tool names to conditions', Mapping)
        check_type('timeout', timeout, 'a number of seconds', int, float)
        if not timeout > 0:
            raise ValueError(f'the timeout must be a positive number of seconds, not {timeout!r}')
        try:
            listed = _CONDITIONS.validate_python({name: dict(when) for name, when in may_approve.items()})
        except (ValidationError, TypeError, ValueError) as error:
            raise ApprovalConfigError(f'`may_approve` is not valid: {error}') from None
        self._listed = [(compile_pattern(translate(name)), when) for name, when in listed.items()]
        self._reviewer = reviewer
        self._then = FirstOf(then)
        self._timeout_s = timeout
        self._is_shadow = shadow
        self.groups_responses = self._then.groups_responses
        """Whether the UI asks about all requests of a response as one group."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Let the reviewer approve the call, or ask the person."""
        [decision] = await self.choose_group([request], mode=mode)
        return decision

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Let the reviewer approve calls, ask the person about the others, and return the decisions, in order."""
        opinions = await asyncio.gather(*map(self._opinion, requests))
        decided: dict[int, ApprovalDecision] = {}
        asked: dict[int, ApprovalRequest] = {}
        would: dict[int, Literal['approve', 'ask']] = {}
        for number, (request, opinion) in enumerate(zip(requests, opinions, strict=True)):
            if opinion is None:
                asked[number] = request
            elif self._is_shadow:
                asked[number] = request
                would[number] = 'approve' if opinion.approve and self.may_review(request) else 'ask'
            elif opinion.approve and self.may_review(request):
                decided[number] = ApprovalDecision(approved=True, note=opinion.sentence, decided_by=(REVIEWER,))
            else:
                said = request.review if opinion.sentence is None else Review(sentence=opinion.sentence)
                asked[number] = request.changed(review=said)
        if asked:
            answers = await self._then.choose_group(list(asked.values()), mode=mode)
            for number, answer in zip(asked, answers, strict=True):
                decided[number] = answer.model_copy(update={'reviewer_would': would.get(number)})
        return [decided[number] for number in range(len(requests))]

    def may_review(self, request: ApprovalRequest) -> bool:
        """Return whether the reviewer may approve a call."""
        # Attack: a reviewer that approves everything (test_reviewed.py).
        if request.approvers or request.votes is not None or request.needs_a_person or not request.allows('approve'):
            return False
        # A question whether a call that may have run is run again allows no other answer.
        if request.answers == ('approve',) or request.rejected_edit is not None:
            return False
        # The reviewer sees only what an approver sees, and cannot judge access.
        is_whole = not request.hides_arguments and set(request.args) <= set(request.payload)
        shown: Mapping[str, Any] = {} if request.presentation is None else request.presentation.metadata
        if not is_whole or request.missing_capabilities or EXTRA_ACCESS in request.bound_to or EXTRA_ACCESS in shown:
            return False
        args = received(request.args, request.used)
        return any(glob.fullmatch(request.tool_name) and hold(when, args)[0] for glob, when in self._listed)

    def asks(self, request: ApprovalRequest) -> list[str]:
        """Return the people and groups whom the UI asks, as far as it knows them."""
        return self._then.asks(request)

    def may_approve(self, request: ApprovalRequest, approvers: Sequence[str]) -> bool:
        """Return whether these people may still approve a request at the UI."""
        return self._then.may_approve(request, approvers)

    async def _opinion(self, request: ApprovalRequest) -> Opinion | None:
        """Return the opinion of the reviewer, or `None` if there is none that counts."""
        try:
            call = self._call(request)
            async with asyncio.timeout(self._timeout_s):
                said: Any = await call_sync_or_async(self._reviewer, call)
            # It may have been made without validation.
            return Opinion.model_validate(vars(said) if isinstance(said, Opinion) else said)
        except Exception as error:  # noqa: BLE001 - the person decides without the reviewer
            _log.error('The reviewer of a call of %r failed with %s', request.tool_name, without_text(error))
            return None

    def _call(self, request: ApprovalRequest) -> CallToReview:
        shown = request.presentation
        return CallToReview(
            said=request.facts.said,
            tool_name=request.tool_name,
            args=copied(request.payload),
            description=request.attributed_description,
            reason=request.reason,
            effect=None if shown is None else str(shown.metadata.get('full_content', shown.content)),
            may_approve=self.may_review(request),
        )
