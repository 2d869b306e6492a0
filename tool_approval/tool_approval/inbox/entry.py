"""Define inbox entries: stored content, answers, and the digest that binds an answer to its content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Literal, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from tool_approval.answering import outcome_words
from tool_approval.core.approvers import Approver, ApproverRule
from tool_approval.core.canonical import EXACT, canonical_json, copied, whole_characters
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest, is_same_person
from tool_approval.display import escape_line

from .errors import AlreadySettled, InvalidAnswer, NotAnApprover, OtherContent, RequestTooLarge
from .store import Row, State

LONGEST_SHOWN = 80
"""Number of characters after which the name of a person or run is cut off when it is shown."""

LONGEST_NOTE = 300
"""Number of characters after which a note is cut off when the outcome is shown."""

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of a request or an answer, about a thousand pages of text: more than an approver can read."""


_TEXTS = ('description', 'described_by', 'group_id', 'tool_call_id', 'run_id', 'session_id', 'reason')
"""Fields of a request. Unpaired surrogates in these fields are replaced."""


class Content(BaseModel):
    """Posted content: everything that the approver is shown, and the rules for who may answer."""

    model_config = ConfigDict(frozen=True, extra='forbid', populate_by_name=True)

    version: Literal[1] = 1
    """Version of this format."""
    request: ApprovalRequest
    """The request. Metadata that JSON cannot represent is left out of the request and its presentation."""
    approvers: tuple[ApproverRule, ...] | None = None
    """Rules for who may answer. Every rule must list the approver. If `None`, everyone may answer."""
    requester: str | None = None
    """Id of the person the agent works for; `None` if unknown."""
    forbid_self_approval: bool = Field(
        default=False, validation_alias='bars_requester', serialization_alias='bars_requester'
    )
    """Whether the requester is not allowed to answer. The stored field is named `bars_requester`."""
    expires_at: AwareDatetime | None = None
    """Time from which no answer counts, by the clock of the store; `None` if the request does not expire."""


class Answer(BaseModel):
    """An approver's decision, and the digest of the content they were shown."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    decision: ApprovalDecision
    """The decision, with `decided_by` (the ids of all approvers, the one who answered last) and `decided_at`."""
    by: Approver
    """The approver who answered. Notes and names are untrusted text: escape them."""
    digest: str
    """Digest of the content that the approver was shown (`InboxEntry.digest`)."""


class InboxEntry(BaseModel):
    """A snapshot of a request in the inbox."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    id: str
    """Unguessable id, never reused. Code that knows this id and can call `Inbox.decide` can answer the request."""
    state: State
    """State of the request; `pending` while the request is open."""
    digest: str
    """Digest of the content. An answer must include this digest."""
    content: Content
    """The content shown to approvers."""
    posted_at: AwareDatetime
    """UTC time at which the request was posted, by the clock of the process that posted it."""
    settled_at: AwareDatetime | None = None
    """Time when the request was settled, by the clock of the process that settled it; `None` for an open request."""
    answer: Answer | None = None
    """The answer; `None` if the request is open, has expired or was withdrawn."""

    @property
    def request(self) -> ApprovalRequest:
        """The approval request, as in `content.request`."""
        return self.content.request

    @property
    def outcome(self) -> str:
        """Outcome as an escaped text, such as `Approved by ann`; empty while the request is open."""
        word, rest = outcome_words(self.state, None if self.answer is None else self.answer.decision)
        names = () if self.answer is None else self.answer.decision.decided_by or (self.answer.by.id,)
        by = f' by {" and ".join(map(short_name, names))}' if names else ''
        return f'{word}{rest}{by}{self.vote}'

    @property
    def vote(self) -> str:
        """Which vote an approval was, such as ` (1 of 2)`; empty unless several people must agree."""
        votes, decision = self.request.votes, None if self.answer is None else self.answer.decision
        if votes is None or decision is None or not decision.approved:
            return ''
        before = 0 if decision.override_args is not None else len(votes.agreed)
        return f' ({before + 1} of {votes.needed})'

    @property
    def written(self) -> list[tuple[str, str]]:
        """Note and result of the approver: pairs of a label, and the escaped text, cut to `LONGEST_NOTE` characters."""
        decision = None if self.answer is None else self.answer.decision
        note, response = (None, None) if decision is None else (decision.note, decision.response)
        result = response if isinstance(response, str) or response is None else canonical_json(response)
        return [(label, short_name(text, LONGEST_NOTE)) for label, text in (('Note', note), ('Result', result)) if text]

    def check_open(self, digest: str) -> None:
        """Raise an error unless the request is open and its content is what the approver was shown.

        Args:
            digest: Digest of the content that the approver was shown (`InboxEntry.digest`).

        Raises:
            AlreadySettled: The request is no longer open. The error says who answered, and when.
            OtherContent: The digest differs from the digest of the stored content.
        """
        if self.state != 'pending':
            raise already_settled(self)
        if not compare_digest(digest.encode(errors='replace'), self.digest.encode()):
            raise OtherContent

    def check_approver(self, approver: Approver, now: datetime | None = None) -> None:
        """Raise an error unless the approver may answer this request.

        Args:
            approver: The person.
            now: The time, which decides whether others may answer, too; the current time if `None`.

        Raises:
            NotAnApprover: The approver is not listed, or is the requester although self-approval is forbidden.
        """
        content = self.content
        requester = content.requester if content.forbid_self_approval else None
        # Attack: the directory of a chat writes the requester's id in another case (test_inbox.py).
        if requester is not None and is_same_person(approver.id, requester):
            raise NotAnApprover(approver.id, self.request.tool_name, 'requesters may not answer their own requests')
        now = now or datetime.now(UTC)
        if all(rule.lists(approver, now - self.asked_at) for rule in content.approvers or ()):
            return
        later = next((at for at in self.others_at if at > now), None)
        more = '' if later is None else f'; others may from {later.astimezone(UTC):%Y-%m-%d %H:%M} UTC'
        raise NotAnApprover(approver.id, self.request.tool_name, f'only listed approvers may answer{more}')

    @property
    def asked_at(self) -> datetime:
        """Time when the call was first asked about. If several people must agree, that was before the first vote."""
        votes = self.request.votes
        return self.posted_at if votes is None or votes.since is None else votes.since

    @property
    def others_at(self) -> list[datetime]:
        """Times from which others may answer, too, as `escalate` of the rules says; in order, each once."""
        after = {each for rule in self.content.approvers or () for each in rule.others_after}
        return [self.asked_at + each for each in sorted(after)]

    def check_vote(self, approver: Approver, decision: ApprovalDecision) -> None:
        """Raise an error if several people must agree, and the vote of this approver does not count.

        Raises:
            NotAnApprover: The approver has agreed already. A denial always counts.
        """
        votes = self.request.votes
        if votes is not None and decision.approved and not votes.new((approver.id,), requester=self.content.requester):
            raise NotAnApprover(approver.id, self.request.tool_name, 'another person must agree too')

    def check_decision(self, decision: ApprovalDecision) -> ApprovalDecision:
        """Return the decision, validated against what the request offers.

        Raises:
            InvalidAnswer: The decision is malformed, or the request does not offer it.
        """
        try:
            # The caller may have built the decision without validation.
            decision = ApprovalDecision.model_validate(decision.model_dump(warnings='none'))
            canonical_json([decision.override_args, decision.response])
        except ValidationError:
            raise InvalidAnswer('the decision is malformed') from None
        except NotCanonicalError as error:
            what = 'the changed arguments are' if decision.response is None else 'the response is'
            raise InvalidAnswer(f'{what} invalid ({error.problem})') from None
        refused = self.request.not_allowed(decision)
        if refused is not None:
            raise InvalidAnswer(f'the tool does not allow the answer `{refused}`')
        if decision.remember_option not in self.request.coverings:
            raise InvalidAnswer('the request does not offer this option for remembering the approval')
        if not decision.approved and (decision.remember == 'always' or decision.remember_option != EXACT):
            raise InvalidAnswer('a denial can be remembered for the same call and the session only')
        if decision.remember == 'always' and not self.request.facts.can_remember_always:
            raise InvalidAnswer("the request does not offer `remember='always'`")
        if decision.remember == 'session' and not self.request.facts.can_remember_session:
            raise InvalidAnswer("the request does not offer `remember='session'`")
        return decision.model_copy(update={'note': None if decision.note is None else whole_characters(decision.note)})


def already_settled(entry: InboxEntry) -> AlreadySettled:
    """Return the error for an answer to a request that is no longer open."""
    assert entry.state != 'pending', 'the store has refused to settle an open request'
    by = None if entry.answer is None else entry.answer.by.id
    return AlreadySettled(entry.state, by=by, at=entry.settled_at)


def short_name(name: str, most: int = LONGEST_SHOWN) -> str:
    """Return the name of a person or a run, escaped, on one line, and cut to `most` characters."""
    return escape_line(name if len(name) <= most else f'{name[:most]}...')


def write_content(content: Content) -> str:
    """Return content as ASCII JSON, which every database can store.

    Raises:
        NotCanonicalError: The arguments, the payload or the bound values have no canonical JSON form.
        RequestTooLarge: The text is longer than `MAX_BYTES`.
    """
    request = content.request
    options = [option.payload for option in request.remember_options]
    canonical_json([request.tool_name, request.args, request.payload, request.bound_to, options])
    shown = request.presentation
    if shown is not None:
        shown = shown.model_copy(
            update={
                'content': whole_characters(shown.content),
                'language': None if shown.language is None else whole_characters(shown.language),
                'metadata': _writable(shown.metadata),
            }
        )
    rejected = request.rejected_edit
    problem = '' if rejected is None else whole_characters(rejected.problem)
    texts = {name: getattr(request, name) for name in _TEXTS}
    request = request.model_copy(
        update={
            **{name: whole_characters(text) for name, text in texts.items() if text is not None},
            'args': copied(request.args),
            'payload': copied(request.payload),
            'bound_to': copied(request.bound_to),
            'metadata': _writable(request.metadata),
            'args_schema': _writable({'schema': request.args_schema}).get('schema'),
            'presentation': shown,
            'rejected_edit': None if rejected is None else rejected.model_copy(update={'problem': problem}),
        }
    )
    dumped = content.model_copy(update={'request': request}).model_dump(mode='json', by_alias=True)
    return _limited(json.dumps(dumped, separators=(',', ':')))


def write_answer(answer: Answer) -> str:
    """Return an answer as ASCII JSON.

    Raises:
        InvalidAnswer: The text is longer than `MAX_BYTES`.
    """
    try:
        return _limited(json.dumps(answer.model_dump(mode='json'), separators=(',', ':')))
    except RequestTooLarge as error:
        raise InvalidAnswer(f'the answer has {error.size} bytes, more than the limit of {error.limit}') from None


def digest_of(request_id: str, content: str) -> str:
    """Return the 64-digit hexadecimal digest of a request's id and content. The digest binds an answer to both."""
    return blake2b(content.encode(), digest_size=32, key=request_id.encode()[:64], person=b'inbox').hexdigest()


def read_entry(row: Row) -> InboxEntry:
    """Parse a row of the store.

    Raises:
        ValueError: The row is invalid. Another program or a later version of this package changed the store.
    """
    try:
        entry = InboxEntry(
            id=row.id,
            state=row.state,
            digest=digest_of(row.id, row.content),
            content=Content.model_validate(json.loads(row.content)),
            posted_at=cast('datetime', row.posted_at),  # a damaged time fails the validation
            settled_at=row.settled_at,
            answer=None if row.answer is None else Answer.model_validate(json.loads(row.answer)),
        )
    except (RecursionError, AttributeError):
        raise ValueError('a value is nested too deeply, or is not a string') from None
    if (entry.state == 'pending') is not (entry.settled_at is None):
        raise ValueError('the time of the answer is damaged')
    said = None if entry.answer is None else entry.answer.decision.approved
    if said is not {'approved': True, 'denied': False}.get(entry.state):
        raise ValueError('the state of the request does not match its answer')
    return entry


def _writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that JSON can represent. Frameworks also add other objects, which cannot be shown."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        try:
            plain = _whole_texts(value)
            canonical_json({key: plain})
        except (NotCanonicalError, RecursionError):
            continue
        kept[key] = copied(plain)
    return kept


def _whole_texts(value: object) -> object:
    match value:
        case str():
            return whole_characters(value)
        case Mapping():
            return {key: _whole_texts(item) for key, item in cast('Mapping[str, object]', value).items()}
        case list() | tuple():
            return [_whole_texts(item) for item in cast('list[object]', value)]
        case _:
            return value


def _limited(text: str) -> str:
    if len(text) > MAX_BYTES:
        raise RequestTooLarge(len(text), MAX_BYTES)
    return text
