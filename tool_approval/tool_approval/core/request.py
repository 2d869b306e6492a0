"""Describe one tool call that awaits a decision."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, Self, TypeVar, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from .approvers import ApproverRule
from .bounds import Bounds
from .canonical import EXACT, copied
from .decision import USUAL_ANSWERS, AllowedAnswer, ApprovalDecision, both_allow
from .presentation import NEEDS_A_PERSON, ApprovalPresentation

T = TypeVar('T')


class ApprovalContext(BaseModel):
    """A tool call as the tool's own approval check receives it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    tool_name: str
    """Name by which the model calls the tool."""
    args: Mapping[str, Any]
    """Argument values by parameter name."""
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Facts from the framework, as far as known: `run_id`, `session_id`, `caller` (the agent's name), `lineage`,
    `toolset_id`, `batch_id`."""
    used: Mapping[str, Any] | None = None
    """Part of `args` that the tool receives, if validation drops the rest; `None` if it receives all."""


class RememberOption(BaseModel):
    """A wider scope under which an approval can be remembered. Only a tool's verdict can offer a wider scope."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    kind: str
    """Kind of scope, such as `directory`; part of the fingerprint. Never `exact`."""
    label: str
    """Text offered to the approver, such as "every file in notes/"."""
    payload: Mapping[str, Any]
    """Values that are equal in all requests that this option covers."""
    bounds: Bounds | None = None
    """When an approval of this scope ends; `None` if it lasts as long as it is remembered. The label must say so."""
    brief: str = ''
    """Short text, such as "edits of notes/a.txt", shown next to the key that approves this scope for the session.
    Set `brief` only if an approver expects the key to mean this scope. Other options are chosen from a list."""

    @field_validator('kind')
    @classmethod
    def _is_a_kind(cls, kind: str) -> str:
        if kind in ('', EXACT):
            raise ValueError(f'a `RememberOption` has an invalid `kind`: {kind!r}')
        return kind


def check_options(options: tuple[RememberOption, ...]) -> tuple[RememberOption, ...]:
    """Return the options if no two have the same kind.

    A decision names only the kind of an option. If two options had the same kind, an approver could choose the narrow
    option and grant the wide one.

    Raises:
        ValueError: Two options have the same kind.
    """
    kinds = [option.kind for option in options]
    if len(set(kinds)) < len(kinds):
        raise ValueError('two of the `remember_options` have the same kind')
    return options


class RejectedEdit(BaseModel):
    """Arguments from an approver that the tool cannot take. The approver is asked about the call again."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    args: Mapping[str, Any]
    """All arguments as the approver changed them, to go on from."""
    problem: str
    """Why the tool cannot take the arguments. The text is untrusted, and must be escaped."""


class Review(BaseModel):
    """The words of a reviewer that did not approve a call, for the person who is asked then."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    sentence: str
    """One sentence. The text is untrusted, and must be escaped."""


class LineageEntry(BaseModel):
    """An agent run and one of its tool calls. That call started a nested run or led to the request."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    agent_name: str | None
    """Name of the agent, or `None` if the agent has no name."""
    run_id: str
    """Id of the agent's run."""
    tool_name: str
    """Name of the tool being executed."""
    tool_call_id: str
    """Id of the tool call."""


class Votes(BaseModel):
    """How far several people have agreed on a call."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    needed: int = Field(ge=1)
    """Number of people who must agree."""
    agreed: tuple[str, ...] = ()
    """Names of the people who have agreed to the call as it is shown, in order."""
    since: AwareDatetime | None = None
    """Time when the call was first asked about; `None` if it is asked about for the first time."""

    @property
    def missing(self) -> int:
        """Number of people who must still agree."""
        return max(0, self.needed - len(self.agreed))

    def new(self, names: Iterable[str], *, requester: str | None = None) -> tuple[str, ...]:
        """Return those of the people whose vote would count: each once, and neither the requester nor who has agreed.

        Attack: one person has several spellings of the same name (test_count.py).
        """
        seen = {_folded(each) for each in (*self.agreed, *([] if requester is None else [requester]))}
        found: list[str] = []
        for name in names:
            if (folded := _folded(name)) not in seen and folded:
                seen.add(folded)
                found.append(name)
        return tuple(found)

    def joined(self, names: Iterable[str]) -> Votes:
        """Return the votes after more people have agreed."""
        return self.model_copy(update={'agreed': (*self.agreed, *names)})


def is_same_person(name: str, other: str) -> bool:
    """Return whether two names are one person: they differ at most in case, width and blanks around them."""
    return _folded(name) == _folded(other)


def _folded(name: str) -> str:
    return unicodedata.normalize('NFKC', name).strip().casefold()


class CallFacts(NamedTuple):
    """Facts about a call other than its arguments. All decisions about the call use these facts.

    The metadata also contains these facts, under conventional keys, for tools, presenters and UIs. The metadata is read
    once, when a request is made. Later changes to the metadata affect no decision.
    """

    run_id: str | None = None
    """Id of the run that makes the call."""
    session_id: str | None = None
    """Id of the conversation for which approvals are remembered."""
    caller: str | None = None
    """Name of the calling agent."""
    requester: str | None = None
    """Id of the person the agent works for."""
    lineage: tuple[LineageEntry, ...] = ()
    """Agents and tool calls above this call, from the outermost run inwards."""
    toolset_id: str | None = None
    """Id of the tool's toolset."""
    tool_digest: str | None = None
    """Digest of the tool's definition as the model sees it."""
    batch_id: str | None = None
    """Id of the model response that contains the call."""
    position: int | None = None
    """Position of the call in the response, from 1."""
    batch_size: int | None = None
    """Number of calls in the response that need a decision."""
    can_remember_always: bool = False
    """Whether an approval may have `remember='always'`: there is a store, and the agent has a name."""
    can_remember_session: bool = True
    """Whether an approval may have `remember='session'`. False if it would not outlast the run of an unnamed agent."""
    isolation_profile: str | None = None
    """Isolation in which the tool runs, according to the tool."""
    missing_capabilities: tuple[str, ...] = ()
    """Capabilities that an approval grants, without duplicates, in the tool's order."""
    is_blocked: bool = False
    """Whether the tool itself refuses the call."""
    block_reason: str | None = None
    """Reason for the tool's refusal."""
    said: tuple[str, ...] = ()
    """Texts that the user has written, oldest first, for a reviewer; empty if they are unknown."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any], *, lineage: tuple[LineageEntry, ...] = ()) -> CallFacts:
        """Read the conventional metadata keys. A value of the wrong type is treated as absent."""
        if not metadata:
            return cls(lineage=lineage)
        missing = metadata.get('missing_capabilities')
        if missing is None:
            granted = _capabilities(metadata.get('granted_capabilities'))
            missing = [each for each in _capabilities(metadata.get('required_capabilities')) if each not in granted]
        found: dict[str, Any] = {name: value for name in _TEXTS if isinstance(value := metadata.get(name), str)}
        found |= {name: value for name in _NUMBERS if type(value := metadata.get(name)) is int}
        reason = metadata.get('approval_reason')
        return cls(
            **found,
            lineage=lineage,
            missing_capabilities=tuple(dict.fromkeys(_capabilities(missing))),
            can_remember_always=metadata.get('can_remember_always') is True,
            can_remember_session=metadata.get('can_remember_session') is not False,
            is_blocked=metadata.get('approval_policy') == 'blocked',
            block_reason=reason if isinstance(reason, str) and reason else None,
        )

    def as_metadata(self) -> dict[str, Any]:
        """Return the facts from the framework as metadata. `run_id`, `session_id` and `caller` are always included."""
        found = {name: value for name, value in zip(_TEXTS, _texts_of(self), strict=True) if value is not None}
        return {'run_id': self.run_id, 'session_id': self.session_id, 'caller': self.caller, **found}


_TEXTS = ('run_id', 'session_id', 'caller', 'requester', 'toolset_id', 'tool_digest', 'batch_id', 'isolation_profile')
"""Facts that are strings. The name of each fact is also its metadata key."""

_texts_of = attrgetter(*_TEXTS)

_NUMBERS = ('position', 'batch_size')
"""Facts that are integers. The name of each fact is also its metadata key."""


class ApprovalRequest(BaseModel):
    """A tool call that awaits a decision, as the approver, the rules and the audit log see it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    tool_name: str
    """Name by which the model calls the tool."""
    args: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Argument values by parameter name, in JSON form."""
    description: str = ''
    """One line for the approver. UIs show `attributed_description` instead."""
    described_by: str | None = None
    """Configuration file that sets the description, such as `approvals.yaml`; `None` if the tool describes the call."""
    payload: Mapping[str, Any] = None  # pyright: ignore[reportAssignmentType] - filled in from `args`
    """Values by which the memory identifies the call. The log omits all other arguments. Default: all arguments."""
    presentation: ApprovalPresentation | None = None
    """Content to show. If the value is `None`, the controller's presenter may fill it in right before asking."""
    group_id: str | None = None
    """Id of a group of requests that a UI may ask about in one question."""
    tool_call_id: str | None = None
    """Id of the call, or `None` if the framework has none."""
    run_id: str | None = None
    """Id of the run that makes the call."""
    session_id: str | None = None
    """Id of the conversation for which approvals are remembered."""
    reason: str | None = None
    """Why the call needs approval."""
    remember_options: tuple[RememberOption, ...] = ()
    """Scopes, wider than the exact payload, for which a decision may be remembered."""
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """More facts from the framework and the tool: see `ApprovalContext.metadata`. The controller sets `position` and
    `batch_size` (request i of n, from 1), `can_remember_session` and `can_remember_always`."""
    lineage: tuple[LineageEntry, ...] = ()
    """Agents and tool calls above a nested request, from the outermost run inwards; empty for a request of the
    outermost run."""
    bound_to: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Further values that must not change between approval and execution, such as the working directory or the file
    content that was shown."""
    hides_arguments: bool = False
    """Whether the tool's own JSON form omits or alters arguments that the model gave, as `Field(exclude=True)` and
    secret types do. If true, an approval of the call is never remembered."""
    answers: tuple[AllowedAnswer, ...] | None = None
    """Answers that are allowed, beside `deny`; `None` allows all but `respond`. Any other answer is refused."""
    args_schema: Mapping[str, Any] | None = None
    """JSON schema of the arguments as the model sees it, for forms; `None` if unknown. The tool itself validates an
    edit, so the schema decides nothing."""
    used: Mapping[str, Any] | None = None
    """See `ApprovalContext.used`."""
    rejected_edit: RejectedEdit | None = None
    """The last edit of this approver, if the tool could not take it."""
    votes: Votes | None = None
    """Votes so far, if several people must agree; otherwise `None`."""
    review: Review | None = None
    """The words of a reviewer, which only a `Reviewed` adds."""
    approvers: tuple[ApproverRule, ...] = Field(default=(), exclude=True)
    """Rules for who may approve the call, all of which apply; empty if the UI decides that. The controller fills them
    in from the policy each time. They are not stored."""

    @field_validator('remember_options')
    @classmethod
    def _are_distinct(cls, options: tuple[RememberOption, ...]) -> tuple[RememberOption, ...]:
        return check_options(options)

    def model_post_init(self, context: Any, /) -> None:
        """Fill in the payload and the description if they were not given."""
        if self.payload is None:  # pyright: ignore[reportUnnecessaryComparison] - its default
            object.__setattr__(self, 'payload', dict(self.args))
        if not self.description:
            object.__setattr__(self, 'description', describe(self.tool_name, self.payload))
        _ = self.facts  # read now, so that later changes to the metadata affect no decision

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy as `BaseModel.model_copy` does, and read the facts from the copy's metadata."""
        copied = super().model_copy(update=update, deep=deep)
        if update and 'metadata' in update:
            vars(copied)['facts'] = CallFacts.of(copied.metadata)
        return copied

    def copy(self, *, update: Mapping[str, Any] | None = None, **chosen: Any) -> Self:
        """Copy as `BaseModel.copy` does, and read the facts from the copy's metadata."""
        return super().copy(**chosen).model_copy(update=update)  # pyright: ignore[reportDeprecated] - callers are warned

    def changed(self, facts: CallFacts | None = None, **fields: Any) -> ApprovalRequest:
        """Return a copy with the given `fields`, which are not validated, and the given `facts`, if any."""
        return _made({**vars(self), **fields, **({} if facts is None else {'facts': facts})})

    def detached(self, facts: CallFacts | None = None, **fields: Any) -> ApprovalRequest:
        """Return a deep copy. The request must have a canonical form. For `facts` and `fields`, see `changed`."""
        # Attack: the caller, a presenter or a UI changes nested arguments while the request is open, so that the call
        # that is remembered, logged or run differs from the one shown (test_attacks.py).
        args = copied(self.args)
        own: dict[str, Any] = {
            'args': args,
            'payload': args if self.payload is self.args else copied(self.payload),
            'bound_to': copied(self.bound_to),
            'remember_options': tuple(
                [option.model_copy(update={'payload': copied(option.payload)}) for option in self.remember_options]
            ),
            'metadata': dict(self.metadata),
        }
        if self.args_schema is not None and 'args_schema' not in fields:
            own['args_schema'] = copied(self.args_schema)  # the host offers the same object to the model
        return self.changed(facts, **{**own, **fields})

    @classmethod
    def of_call(
        cls, tool_name: str, args: Mapping[str, Any], facts: CallFacts, *, description: str, **fields: Any
    ) -> ApprovalRequest:
        """Make a request from values known to be valid, without validation."""
        place = {'run_id': facts.run_id, 'session_id': facts.session_id, 'lineage': facts.lineage}
        own = {'tool_name': tool_name, 'args': args, 'payload': args, 'description': description}
        return _made({**_DEFAULTS, 'metadata': {}, 'bound_to': {}, 'facts': facts, **own, **place, **fields})

    @cached_property
    def facts(self) -> CallFacts:
        """Facts about the call, read from the metadata when the request was made.

        For a fact that is also a field of the request, such as `run_id`, use the field.
        """
        return CallFacts.of(self.metadata)

    def allows(self, answer: AllowedAnswer) -> bool:
        """Return whether an answer of this kind is allowed. A denial always is."""
        return answer == 'deny' or answer in (USUAL_ANSWERS if self.answers is None else self.answers)

    @property
    def needs_a_person(self) -> bool:
        """Whether only a person can approve the call, each time; see `NEEDS_A_PERSON`."""
        return self.bound_to.get(NEEDS_A_PERSON) is True

    def not_allowed(self, decision: ApprovalDecision) -> AllowedAnswer | None:
        """Return the kind of answer in `decision` that is not allowed, or `None` if the decision is allowed."""
        return next((each for each in decision.answers if not self.allows(each)), None)

    def limited(self, answers: tuple[AllowedAnswer, ...] | None) -> ApprovalRequest:
        """Return the request with only those of its answers that `answers` allows too; `None` sets no limit."""
        return self if answers is None else self.changed(answers=both_allow(self.answers, answers))

    @property
    def missing_capabilities(self) -> tuple[str, ...]:
        """Capabilities that an approval grants, without duplicates, in the tool's order.

        The metadata lists these capabilities as `missing_capabilities`. If this key is missing, the approval grants the
        `required_capabilities` that are not in `granted_capabilities`.
        """
        return self.facts.missing_capabilities

    @property
    def bound(self) -> Mapping[str, Any]:
        """Values, besides the arguments, that an approval is bound to: `bound_to` and the capabilities to grant."""
        granted = self.facts.missing_capabilities
        return {**self.bound_to, 'granted_capabilities': list(granted)} if granted else self.bound_to

    @property
    def coverings(self) -> dict[str, Mapping[str, Any]]:
        """Payloads that identify remembered approvals of this call, keyed by kind. `exact` precedes the other kinds."""
        return {EXACT: self.payload} | {each.kind: each.payload for each in self.remember_options if each.kind != EXACT}

    @property
    def attributed_description(self) -> str:
        """The description, preceded by the configuration's name if the description comes from a configuration.

        Attack: a settings file describes a tool that writes files as "Read the README (changes nothing)".
        """
        if self.described_by is None:
            return self.description
        return f'described by {self.described_by} as: {self.description}'


_DEFAULTS: dict[str, Any] = {
    name: field.get_default(call_default_factory=True, validated_data={})
    for name, field in ApprovalRequest.model_fields.items()
}


_FIELDS = set(_DEFAULTS)


def _made(values: dict[str, Any]) -> ApprovalRequest:
    # Same result as `model_construct` in a tenth of the time, because each call makes several requests.
    request = ApprovalRequest.__new__(ApprovalRequest)
    object.__setattr__(request, '__dict__', values)
    object.__setattr__(request, '__pydantic_fields_set__', _FIELDS)
    object.__setattr__(request, '__pydantic_extra__', None)
    object.__setattr__(request, '__pydantic_private__', None)
    return request


_MOST_CAPABILITIES, _LONGEST_CAPABILITY = 20, 100
"""Maximum number of capabilities in a question, and maximum number of characters in the name of a capability."""


def _capabilities(given: object) -> list[str]:
    """Return the names in a list. If any name cannot be shown, return no names, so that nothing is granted unseen."""
    names = cast('list[object]', given) if isinstance(given, list | tuple) else []
    texts = [each for each in names if isinstance(each, str) and 0 < len(each) <= _LONGEST_CAPABILITY]
    return texts if len(texts) == len(names) <= _MOST_CAPABILITIES else []


def describe(tool_name: str, payload: Mapping[str, Any], *, max_chars: int = 200) -> str:
    """Return the automatic description of a call: `name(key=value, ...)`.

    Args:
        tool_name: Name of the tool.
        payload: Arguments to show. Leave out secret and bulky arguments.
        max_chars: Maximum length in characters.
    """
    text = f'{tool_name}('
    for number, (key, value) in enumerate(payload.items()):
        text += f'{", " if number else ""}{key}={_shown(value, max_chars)}'
        if len(text) > max_chars:
            break
    else:
        text += ')'
    return text if len(text) <= max_chars else f'{text[: max_chars - 4]}...)'


def _shown(value: object, max_chars: int) -> str:
    if type(value) is str or value is None or type(value) is bool or type(value) is float:
        return repr(value[:max_chars] if type(value) is str else value)
    with contextlib.suppress(RecursionError):
        value = _beginning(value, max_chars, [max_chars])
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or too long an integer: such a call never runs
        return '...'


def _beginning(value: object, max_chars: int, room: list[int]) -> Any:
    """Copy only as much of `value` as fits in a description of at most `max_chars` characters."""

    def kept(items: Iterable[T]) -> Iterator[T]:
        for item in items:
            if room[0] == 0:
                return
            room[0] -= 1  # each item takes at least one character
            yield item

    if isinstance(value, str):
        return value[:max_chars]
    if type(value) is dict:
        items = kept(cast('dict[object, object]', value).items())
        return {key: _beginning(item, max_chars, room) for key, item in items}
    if type(value) in (list, tuple):
        first = [_beginning(item, max_chars, room) for item in kept(cast('list[object]', value))]
        return first if type(value) is list else tuple(first)
    if type(value) is int and value.bit_length() > 4 * max_chars:
        room[0] = 0  # its digits fill the description, and writing more such integers takes long
    return value


def simple_approval_request(
    tool_name: str,
    args: Mapping[str, Any],
    *,
    description: str | None = None,
    exclude_keys: Collection[str] = (),
) -> ApprovalRequest:
    """Make the request for a call that has no custom presentation.

    Args:
        tool_name: Name of the tool.
        args: Argument values by parameter name.
        description: One line for the approver. If `None`, the description lists the arguments that are not excluded.
        exclude_keys: Arguments that are not remembered, shown or logged, such as secrets and bulky content.
    """
    excluded = {exclude_keys} if isinstance(exclude_keys, str) else exclude_keys
    payload = {key: value for key, value in args.items() if key not in excluded}
    return ApprovalRequest(tool_name=tool_name, args=args, description=description or '', payload=payload)


Describe = str | Callable[[dict[str, Any]], str] | None
"""A description, or a function that makes the description from the arguments."""
