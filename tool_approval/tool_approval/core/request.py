"""One call awaiting judgement."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from .canonical import EXACT, copied
from .presentation import ApprovalPresentation

T = TypeVar('T')


class ApprovalContext(BaseModel):
    """What a tool's own logic is told of a call."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    tool_name: str
    """The name the model calls the tool by."""
    args: Mapping[str, Any]
    """Argument values by parameter name."""
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """What the framework knows: `run_id`, `session_id`, `caller` (the agent's name), `lineage`, `toolset_id`,
    `batch_id`, as far as it does."""

    def for_check(self) -> Self:
        """The same call, with a copy of its JSON arguments: what a check changes in them, no approver is shown."""
        return self.model_copy(update={'args': copied(self.args)})


class RememberOption(BaseModel):
    """What "remember" would cover, wider than the very same payload. Only a tool's verdict offers one."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    kind: str
    """Names the sort of breadth, such as `directory`; part of the fingerprint. Never `exact`."""
    label: str
    """What a person is offered, such as "every file in notes/"."""
    payload: Mapping[str, Any]
    """What makes two requests the same under this option."""
    brief: str = ''
    """Such as "edits of notes/a.txt": a UI may offer it beside a key of its own, for one session. Only for what a
    person who approves the call would expect to be covered; empty where it has to be chosen from a list."""

    @field_validator('kind')
    @classmethod
    def _is_a_kind(cls, kind: str) -> str:
        if kind in ('', EXACT):
            raise ValueError(f'{kind!r} is not the kind of a wider option')
        return kind


def check_options(options: tuple[RememberOption, ...]) -> tuple[RememberOption, ...]:
    """The options, if each is of a kind of its own.

    A decision names the kind alone: with two of a kind, a person could choose the narrow one and grant the wide one.

    Raises:
        ValueError: Two are of the same kind.
    """
    kinds = [option.kind for option in options]
    if len(set(kinds)) < len(kinds):
        raise ValueError('each of the `remember_options` must be of a kind of its own')
    return options


class LineageEntry(BaseModel):
    """One agent run and the tool call of it in which the next level, or the request itself, arose."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    agent_name: str | None
    """The agent's name, where it has one."""
    run_id: str
    """The id of the agent's run."""
    tool_name: str
    """The tool being executed."""
    tool_call_id: str
    """The id of that call."""


class CallFacts(NamedTuple):
    """What is known of a call beside its arguments. Everything that decides about a call reads it here.

    Metadata has the same under the conventional keys, for tools, presenters and UIs; it is read once, where a request
    is made, and what is written into it afterwards decides nothing.
    """

    run_id: str | None = None
    """The id of the run that makes the call."""
    session_id: str | None = None
    """The conversation approvals are remembered for."""
    caller: str | None = None
    """The agent's name."""
    lineage: tuple[LineageEntry, ...] = ()
    """The agents and tool calls above, from the outermost run inwards."""
    toolset_id: str | None = None
    """The id of the tool's toolset."""
    tool_digest: str | None = None
    """A digest of what the model is told of the tool."""
    batch_id: str | None = None
    """Names the response that the call is one of."""
    position: int | None = None
    """This is call i of the response, from 1."""
    batch_size: int | None = None
    """How many calls of the response need a decision."""
    can_remember_always: bool = False
    """Whether an approval may hold `always`."""
    isolation_profile: str | None = None
    """The isolation the tool runs in, as it says itself."""
    missing_capabilities: tuple[str, ...] = ()
    """The capabilities that an approval grants. Each once, in the tool's order."""
    is_blocked: bool = False
    """Whether the tool refuses the call itself."""
    block_reason: str | None = None
    """Why it does."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any], *, lineage: tuple[LineageEntry, ...] = ()) -> CallFacts:
        """Read the conventional keys. A value of another type than the key's counts as absent."""
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
            is_blocked=metadata.get('approval_policy') == 'blocked',
            block_reason=reason if isinstance(reason, str) and reason else None,
        )

    def as_metadata(self) -> dict[str, Any]:
        """What the framework knows, under the conventional keys; `run_id`, `session_id` and `caller` in any case."""
        found = {name: value for name in _TEXTS if (value := getattr(self, name)) is not None}
        return {'run_id': self.run_id, 'session_id': self.session_id, 'caller': self.caller, **found}


_TEXTS = ('run_id', 'session_id', 'caller', 'toolset_id', 'tool_digest', 'batch_id', 'isolation_profile')
"""The facts that are texts, by the key that metadata has them under."""

_NUMBERS = ('position', 'batch_size')
"""Those that are numbers."""


class ApprovalRequest(BaseModel):
    """One call awaiting judgement: what a person, a rule and the audit log get to see of it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    tool_name: str
    """The name the model calls the tool by."""
    args: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Argument values by parameter name, in JSON form."""
    description: str = ''
    """One line for a person; a UI shows `attributed_description`."""
    described_by: str | None = None
    """The configuration that the description comes from, such as `approvals.yaml`; `None` if it is the tool's own."""
    payload: Mapping[str, Any] = None  # pyright: ignore[reportAssignmentType] - filled in from `args`
    """What makes two requests the same for memory, and all that is written down. All arguments unless given."""
    presentation: ApprovalPresentation | None = None
    """What to show; a controller's presenters fill it in when somebody is asked."""
    group_id: str | None = None
    """Requests of one group may be one question."""
    tool_call_id: str | None = None
    """The call's id, where the framework has one."""
    run_id: str | None = None
    """The id of the run that makes the call."""
    session_id: str | None = None
    """The conversation approvals are remembered for."""
    reason: str | None = None
    """Why consent is needed."""
    remember_options: tuple[RememberOption, ...] = ()
    """What a decision may cover beside the very same payload."""
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """What the framework and the tool say beside: see `ApprovalContext.metadata`. The controller sets `position` and
    `batch_size`, from 1: this is request i of n; and `can_remember_always`, whether there is a store."""
    lineage: tuple[LineageEntry, ...] = ()
    """The agents and tool calls above a nested request, from the outermost run inwards; empty for that run."""
    bound_to: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """What must not change between consent and execution beside the arguments: working directory, content seen."""
    hides_arguments: bool = False
    """Whether the tool's own JSON form leaves out or alters arguments that the model gave, as `Field(exclude=True)` and
    secret types do. An approval of such a call is never remembered."""

    @field_validator('remember_options')
    @classmethod
    def _are_distinct(cls, options: tuple[RememberOption, ...]) -> tuple[RememberOption, ...]:
        return check_options(options)

    def model_post_init(self, context: Any, /) -> None:
        """Let the payload be all arguments where none was given, and find a description."""
        if self.payload is None:  # pyright: ignore[reportUnnecessaryComparison] - its default
            object.__setattr__(self, 'payload', dict(self.args))
        if not self.description:
            object.__setattr__(self, 'description', describe(self.tool_name, self.payload))
        _ = self.facts  # now: what is written into the metadata later decides nothing

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """See `BaseModel.model_copy`. The facts are those of the copy's metadata."""
        copied = super().model_copy(update=update, deep=deep)
        if update and 'metadata' in update:
            vars(copied)['facts'] = CallFacts.of(copied.metadata)
        return copied

    def copy(self, *, update: Mapping[str, Any] | None = None, **chosen: Any) -> Self:
        """See `BaseModel.copy`; otherwise as `model_copy`."""
        return super().copy(**chosen).model_copy(update=update)  # pyright: ignore[reportDeprecated] - callers are warned

    def changed(self, facts: CallFacts | None = None, **fields: Any) -> ApprovalRequest:
        """A copy with these fields, which are not validated, and these facts; the same facts if `None`."""
        return _made({**vars(self), **fields, **({} if facts is None else {'facts': facts})})

    def detached(self, facts: CallFacts | None = None, **fields: Any) -> ApprovalRequest:
        """A copy, at every depth, of a request that has a canonical form, with what is given as for `changed`."""
        # Attack: the caller, a presenter or a UI changes the nested arguments of a request while it is open, so that
        # another call is remembered, written down or run than was shown (test_attacks.py).
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
        return self.changed(facts, **{**own, **fields})

    @classmethod
    def of_call(
        cls, tool_name: str, args: Mapping[str, Any], facts: CallFacts, *, description: str, **fields: Any
    ) -> ApprovalRequest:
        """A request of values that are known to be sound, and are not validated."""
        place = {'run_id': facts.run_id, 'session_id': facts.session_id, 'lineage': facts.lineage}
        own = {'tool_name': tool_name, 'args': args, 'payload': args, 'description': description}
        return _made({**_DEFAULTS, 'metadata': {}, 'bound_to': {}, 'facts': facts, **own, **place, **fields})

    @cached_property
    def facts(self) -> CallFacts:
        """What is known of the call beside its arguments, read from the metadata when the request was made. Where the
        request has a field of its own, such as `run_id`, that field counts.
        """
        return CallFacts.of(self.metadata)

    @property
    def missing_capabilities(self) -> tuple[str, ...]:
        """What an approval grants: `missing_capabilities` of the metadata, or without it those of
        `required_capabilities` that are not among its `granted_capabilities`. Each once, in the tool's order.
        """
        return self.facts.missing_capabilities

    @property
    def bound(self) -> Mapping[str, Any]:
        """All that an approval is bound to beside the arguments: `bound_to`, and the capabilities it grants."""
        granted = self.facts.missing_capabilities
        return {**self.bound_to, 'granted_capabilities': list(granted)} if granted else self.bound_to

    @property
    def coverings(self) -> dict[str, Mapping[str, Any]]:
        """What "remember" may cover, by kind: the very same payload first, as `exact`, then the `remember_options`."""
        return {EXACT: self.payload} | {each.kind: each.payload for each in self.remember_options if each.kind != EXACT}

    @property
    def attributed_description(self) -> str:
        """The description, and where it comes from if that is a configuration.

        Attack: a settings file describes a tool that writes as "Read the README (changes nothing)".
        """
        if self.described_by is None:
            return self.description
        return f'described by {self.described_by} as: {self.description}'


_DEFAULTS: dict[str, Any] = {
    name: field.get_default(call_default_factory=True) for name, field in ApprovalRequest.model_fields.items()
}


_FIELDS = set(_DEFAULTS)


def _made(values: dict[str, Any]) -> ApprovalRequest:
    # As `model_construct` does it, in a tenth of the time: each call makes several.
    request = ApprovalRequest.__new__(ApprovalRequest)
    object.__setattr__(request, '__dict__', values)
    object.__setattr__(request, '__pydantic_fields_set__', _FIELDS)
    object.__setattr__(request, '__pydantic_extra__', None)
    object.__setattr__(request, '__pydantic_private__', None)
    return request


_MOST_CAPABILITIES, _LONGEST_CAPABILITY = 20, 100
"""Chosen: a question shows so many, of so many characters, whole."""


def _capabilities(given: object) -> list[str]:
    """The names in a list; none where one of them cannot be shown whole, so that nothing is granted unseen."""
    names = cast('list[object]', given) if isinstance(given, list | tuple) else []
    texts = [each for each in names if isinstance(each, str) and 0 < len(each) <= _LONGEST_CAPABILITY]
    return texts if len(texts) == len(names) <= _MOST_CAPABILITIES else []


def describe(tool_name: str, payload: Mapping[str, Any], *, max_chars: int = 200) -> str:
    """The automatic description of a call: `name(key=value, ...)`.

    Args:
        tool_name: The tool.
        payload: What may be shown. Arguments outside of it are secret or bulky, and do not appear.
        max_chars: Characters at most.
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
    with contextlib.suppress(RecursionError):
        value = _beginning(value, max_chars, [max_chars])
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or an integer too long; no canonical form, so never run
        return '...'


def _beginning(value: object, max_chars: int, room: list[int]) -> Any:
    """As many of the first values within `value` as there is room for: the others would be cut off again."""

    def kept(items: Iterable[T]) -> Iterator[T]:
        for item in items:
            if room[0] == 0:
                return
            room[0] -= 1  # each takes a character at least
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
        room[0] = 0  # its digits alone fill the description, and each more would take long to be written
    return value


def simple_approval_request(
    tool_name: str,
    args: Mapping[str, Any],
    *,
    description: str | None = None,
    exclude_keys: Collection[str] = (),
) -> ApprovalRequest:
    """The request of a tool that has nothing special to say.

    Args:
        tool_name: The tool.
        args: Argument values by parameter name.
        description: One line for a person; made from what is not excluded if `None`.
        exclude_keys: Arguments that are neither remembered, nor shown, nor written down: secrets, bulky content.
    """
    excluded = {exclude_keys} if isinstance(exclude_keys, str) else exclude_keys
    payload = {key: value for key, value in args.items() if key not in excluded}
    return ApprovalRequest(tool_name=tool_name, args=args, description=description or '', payload=payload)


Describe = str | Callable[[dict[str, Any]], str] | None
"""A description, or what makes one from the arguments."""
