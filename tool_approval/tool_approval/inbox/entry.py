"""A request in the inbox: what of it is kept and shown, and what an answer to it is bound to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Literal, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from tool_approval.answering import outcome_words
from tool_approval.core.canonical import canonical_json, copied, whole_characters
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line

from .approvers import Approver, ApproverRule
from .errors import AlreadySettled, InvalidAnswer, NotAnApprover, OtherContent, RequestTooLarge
from .store import Row, State

LONGEST_SHOWN = 80
"""Chosen, in characters: of a longer name of a person or of a run the beginning is shown."""

MAX_BYTES = 4 * 1024 * 1024
"""Chosen: a thousand pages of text in a request, or in an answer. More cannot be read before deciding."""


_TEXTS = ('description', 'described_by', 'group_id', 'tool_call_id', 'run_id', 'session_id', 'reason')
"""The fields of a request in which half characters are replaced."""


class Content(BaseModel):
    """What is posted: all that a person is shown, and who may answer."""

    model_config = ConfigDict(frozen=True, extra='forbid', populate_by_name=True)

    version: Literal[1] = 1
    """Of this shape."""
    request: ApprovalRequest
    """The request. Of its metadata, and of its presentation's, what is JSON."""
    approvers: tuple[ApproverRule, ...] | None = None
    """All of them have to list whoever answers; `None` where everybody may."""
    requester: str | None = None
    """The id of the person for whom the agent works, where it is known."""
    forbid_self_approval: bool = Field(
        default=False, validation_alias='bars_requester', serialization_alias='bars_requester'
    )
    """Whether that person may not answer. Its stored name is `bars_requester`."""
    expires_at: AwareDatetime | None = None
    """When the wait is to end, by the clock of who waits; to be shown. That clock decides, and nobody else's."""


class Answer(BaseModel):
    """What somebody decided, of what."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    decision: ApprovalDecision
    """With `decided_by`, the approver's id, and `decided_at`."""
    by: Approver
    """Who answered. The note and the names are hostile text: escape them."""
    digest: str
    """Of what this person was shown."""


class InboxEntry(BaseModel):
    """A request in the inbox, as it was when it was read."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    id: str
    """Unguessable, and used once. Whoever knows it, and may call `decide`, can answer."""
    state: State
    """`pending` while it is open."""
    digest: str
    """Of all that is shown. An answer has to carry it."""
    content: Content
    """What is shown."""
    posted_at: AwareDatetime
    """When, in UTC, by the clock of who posted it."""
    settled_at: AwareDatetime | None = None
    """When it ceased to be open, by the clock of who settled it."""
    answer: Answer | None = None
    """What was answered, where somebody has."""

    @property
    def request(self) -> ApprovalRequest:
        """The request."""
        return self.content.request

    @property
    def outcome(self) -> str:
        """What became of it, as a sentence without the time and the full stop, escaped; empty while it is open."""
        word, rest = outcome_words(self.state, None if self.answer is None else self.answer.decision)
        by = '' if self.answer is None else f' by {short_name(self.answer.by.id)}'
        return f'{word}{rest}{by}'

    def check_open(self, digest: str) -> None:
        """Refuse an answer to what is no longer open, or was shown differently.

        Args:
            digest: `digest` of what the person was shown.

        Raises:
            AlreadySettled: The request is no longer open; the error says who was first, and when.
            OtherContent: It shows something else than what the digest is of.
        """
        if self.state != 'pending':
            raise already_settled(self)
        if not compare_digest(digest.encode(errors='replace'), self.digest.encode()):
            raise OtherContent

    def check_approver(self, approver: Approver) -> None:
        """Refuse who may not answer.

        Raises:
            NotAnApprover: It says why.
        """
        content = self.content
        if content.forbid_self_approval and approver.id == content.requester:
            raise NotAnApprover(approver.id, self.request.tool_name, 'it is their own request')
        if not all(rule.lists(approver) for rule in content.approvers or ()):
            raise NotAnApprover(approver.id, self.request.tool_name, 'they are not listed')

    def check_decision(self, decision: ApprovalDecision) -> ApprovalDecision:
        """The decision, if it is one that this request offers.

        Raises:
            InvalidAnswer: It says why.
        """
        try:
            # It may have been built without validation.
            decision = ApprovalDecision.model_validate(decision.model_dump(warnings='none'))
            canonical_json(decision.override_args)
        except ValidationError:
            raise InvalidAnswer('it is malformed') from None
        except NotCanonicalError as error:
            raise InvalidAnswer(f'the changed arguments cannot be judged ({error.problem})') from None
        if decision.remember_option not in self.request.coverings:
            raise InvalidAnswer('what it is to be remembered for was not offered')
        if decision.remember == 'always' and not self.request.facts.can_remember_always:
            raise InvalidAnswer("nothing can be remembered 'always' there")
        return decision.model_copy(update={'note': None if decision.note is None else whole_characters(decision.note)})


def already_settled(entry: InboxEntry) -> AlreadySettled:
    """The error for an answer to a request that is no longer open."""
    assert entry.state != 'pending', 'a store says that a request is not pending only if it is not'
    by = None if entry.answer is None else entry.answer.by.id
    return AlreadySettled(entry.state, by=by, at=entry.settled_at)


def short_name(name: str) -> str:
    """The name of a person or of a run, escaped and on one line; the beginning of a long one."""
    return escape_line(name if len(name) <= LONGEST_SHOWN else f'{name[:LONGEST_SHOWN]}...')


def write_content(content: Content) -> str:
    """The JSON text of what is posted: ASCII, so that any database takes it.

    Raises:
        NotCanonicalError: Arguments, payload or what the call is bound to have no single JSON form.
        RequestTooLarge: It is longer than `MAX_BYTES`.
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
    texts = {name: getattr(request, name) for name in _TEXTS}
    request = request.model_copy(
        update={
            **{name: whole_characters(text) for name, text in texts.items() if text is not None},
            'args': copied(request.args),
            'payload': copied(request.payload),
            'bound_to': copied(request.bound_to),
            'metadata': _writable(request.metadata),
            'presentation': shown,
        }
    )
    dumped = content.model_copy(update={'request': request}).model_dump(mode='json', by_alias=True)
    return _limited(json.dumps(dumped, separators=(',', ':')))


def write_answer(answer: Answer) -> str:
    """The JSON text of an answer.

    Raises:
        InvalidAnswer: It is longer than `MAX_BYTES`.
    """
    try:
        return _limited(json.dumps(answer.model_dump(mode='json'), separators=(',', ':')))
    except RequestTooLarge as error:
        raise InvalidAnswer(f'it has {error.size} bytes, and may have {error.limit}') from None


def digest_of(request_id: str, content: str) -> str:
    """What an answer is bound to: this request, and every character that was kept of it. 64 hexadecimal digits."""
    return blake2b(content.encode(), digest_size=32, key=request_id.encode()[:64], person=b'inbox').hexdigest()


def read_entry(row: Row) -> InboxEntry:
    """The entry that a row holds.

    Raises:
        ValueError: It holds none: the store was changed by somebody else, or by a later version of this package.
    """
    try:
        entry = InboxEntry(
            id=row.id,
            state=row.state,
            digest=digest_of(row.id, row.content),
            content=Content.model_validate(json.loads(row.content)),
            posted_at=row.posted_at,
            settled_at=row.settled_at,
            answer=None if row.answer is None else Answer.model_validate(json.loads(row.answer)),
        )
    except (RecursionError, AttributeError):
        raise ValueError('nested too deeply, or not a text') from None
    said = None if entry.answer is None else entry.answer.decision.approved
    if said is not {'approved': True, 'denied': False}.get(entry.state):
        raise ValueError('its state is not that of its answer')
    return entry


def _writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """What of a framework's data is JSON. Frameworks hang live objects there, which nobody could be shown."""
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
