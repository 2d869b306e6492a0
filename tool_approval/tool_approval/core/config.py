"""Read the configuration of a policy, locate its mistakes, and find the rule for a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from .approvers import ApproverRule
from .conditions import Condition, hold
from .decision import AllowedAnswer
from .errors import LONGEST_SHOWN, ApprovalConfigError, MissingExtraError, Path, dotted, printable
from .offers import Offer, as_tuple

LineOf: TypeAlias = Callable[[Path], int | None]
"""Return the 1-based line number of the value at a key path, or `None` if unknown."""

M = TypeVar('M', bound=BaseModel)

Approval = Literal['required', 'none', 'blocked']
"""Whether calls need approval, run without approval, or are blocked."""

Default = Literal['required', 'none']
"""Value of `approval` for tools that have neither a rule nor a check."""


class RuleCase(BaseModel):
    """An exception in a rule, for calls with certain arguments."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    when: dict[str, Condition] = Field(min_length=1)
    """Conditions by argument, all of which must hold. `transfer.amount` is the value `amount` in `transfer`."""
    approval: Approval | None = None
    """Whether these calls need approval, run without asking or are blocked. May be left out if there are `approvers`,
    and is then `required`."""
    approvers: str | None = None
    """Name of the entry under `approvers` that says who must approve; that of the rule if `None`."""
    description: str | None = None
    """One line for the approver; the description of the rule if `None`."""

    @model_validator(mode='after')
    def _says_who_is_asked(self) -> Self:
        if self.approval is None and self.approvers is None:
            raise ValueError('a case needs `approval` or `approvers`')
        if self.approvers is not None and self.approval not in (None, 'required'):
            raise ValueError(f'a case with `approval: {self.approval}` asks no one; remove `approvers`')
        return self

    @property
    def applies(self) -> Approval:
        """Value of `approval`; `required` if it is left out."""
        return self.approval or 'required'


class ToolRule(BaseModel):
    """A rule for one tool, or for all tools that match a glob."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    approval: Approval | None = None
    """Whether the tool requires approval, runs without asking or is blocked; `None` leaves the decision to the tool."""
    description: str | None = None
    """One line for the approver."""
    answers: Annotated[tuple[AllowedAnswer, ...], BeforeValidator(as_tuple)] | None = None
    """Answers that an approver may give, beside `deny`: `approve`, `edit`, `respond` and `remember`. `None` leaves the
    choice to the tool, and a tool that does not choose allows all but `respond`. If both choose, both must allow."""
    remember: Annotated[tuple[Offer, ...], BeforeValidator(as_tuple)] = ()
    """Bounded approvals to offer in questions, beside one call and the whole session. They grant nothing by
    themselves."""
    approvers: str | None = None
    """Name of the entry under `approvers` that says who must approve. `None` leaves that to the UI. Whether an approval
    is needed is not changed."""
    cases: Annotated[tuple[RuleCase, ...], BeforeValidator(as_tuple)] = ()
    """Exceptions for calls with certain arguments. The first case whose conditions hold applies instead of `approval`.
    If a value is missing or cannot be compared, the strictest of the rule and all its cases applies."""


@dataclass(frozen=True, kw_only=True)
class InForce:
    """Result of combining all rules that match a tool."""

    approval: Approval | None = None
    """Value of `approval` in the deciding rule, or `None` if no rule decides."""
    description: str | None = None
    """First description found in the matching rules, searched by precedence up to the first that sets `approval`."""
    decided_by: str | None = None
    """Name or glob of the deciding rule, or `None`."""
    answers: tuple[AllowedAnswer, ...] | None = None
    """First `answers` found in the matching rules, searched by precedence, or `None`."""
    remember: tuple[Offer, ...] = ()
    """First `remember` found in the matching rules, searched by precedence; empty if there is none."""
    approvers: tuple[str, ...] = ()
    """Names of the entries under `approvers` that say who must approve, all of which apply: those of the first rule, by
    precedence, that names any."""
    case: int | None = None
    """Number, from 1, of the deciding rule's case that applies, or `None`."""
    reason: str | None = None
    """Why the strictest case applies, if a value could not be compared."""
    has_cases: bool = False
    """Whether a matching rule has cases, so that the result depends on the arguments."""


class ToolRules:
    """The rules under `tools`.

    An exact name takes precedence over a glob. Of two globs, the one with more literal characters takes precedence. A
    rule that blocks takes precedence over all other rules.
    """

    def __init__(self, rules: Mapping[str, ToolRule]) -> None:
        """Compile the globs."""
        self._rules = rules
        # Highest precedence first. The pattern itself breaks ties, so that the order of the mapping has no effect.
        globs = sorted(
            (name for name in rules if any(character in name for character in '*?[')),
            key=lambda name: (count_literals(name), _STRICTNESS[_applied(rules[name], None).approval], name),
            reverse=True,
        )
        self._globs = [(re.compile(translate(name)).fullmatch, name) for name in globs]

    def find(self, tool_name: str, args: Mapping[str, Any] | None = None) -> InForce:
        """Return the rule in force for a tool, or for a call of the tool.

        Args:
            tool_name: Name by which the model calls the tool.
            args: Argument values of the call, in JSON form. `None` uses the strictest case of each rule.
        """
        names = [name for matches, name in self._globs if matches(tool_name)]
        if tool_name in self._rules:
            names.insert(0, tool_name)
        found = [(name, _applied(self._rules[name], args)) for name in names]
        description: str | None = None
        deciding: tuple[str | None, _Applied] = None, _Applied(None, None)
        for name, applied in found:
            # A description from a rule below the deciding rule would hide the tool's description.
            description = description or applied.description
            if applied.approval is not None:
                deciding = name, applied
                break
        decided_by, applied = next((each for each in found if each[1].approval == 'blocked'), deciding)
        approvers = next((each.approvers for _, each in found if each.approvers), ())
        return InForce(
            approval=applied.approval,
            description=description,
            decided_by=decided_by,
            answers=next((said for name in names if (said := self._rules[name].answers) is not None), None),
            remember=next((said for name in names if (said := self._rules[name].remember)), ()),
            approvers=approvers,
            case=applied.case,
            reason=applied.reason,
            has_cases=any(self._rules[name].cases for name in names),
        )


class _Applied(NamedTuple):
    """The part of one rule that applies to a call."""

    approval: Approval | None
    description: str | None
    case: int | None = None
    reason: str | None = None
    approvers: tuple[str, ...] = ()


def _applied(rule: ToolRule, args: Mapping[str, Any] | None) -> _Applied:
    own = _Applied(rule.approval, rule.description, approvers=_names(rule.approvers))
    of_cases = [
        _Applied(
            case.applies,
            case.description or rule.description,
            number,
            approvers=_names(case.approvers) or own.approvers,
        )
        for number, case in enumerate(rule.cases, start=1)
    ]
    for case, applied in zip(rule.cases, of_cases, strict=True):
        is_so, unknown = (False, '') if args is None else hold(case.when, args)
        if is_so:
            return applied
        if unknown is not None:
            reason = f'`{unknown}` is missing or cannot be compared' if unknown else None
            strictest = max(own, *of_cases, key=lambda each: _CAUTION.index(each.approval))
            # Attack: `amount: '600'` needs the people of no case (test_approvers.py). So it needs those of all.
            everyone = dict.fromkeys(name for each in (own, *of_cases) for name in each.approvers)
            return strictest._replace(reason=reason, approvers=tuple(everyone))
    return own


def _names(approvers: str | None) -> tuple[str, ...]:
    return () if approvers is None else (approvers,)


_CAUTION: Final[tuple[Approval | None, ...]] = ('none', None, 'required', 'blocked')
"""Ordered by strictness. The decision that a rule leaves to the tool may be stricter than `none`."""
_STRICTNESS: Final[dict[Approval | None, int]] = {None: 0, 'none': 1, 'required': 2, 'blocked': 3}


def count_literals(pattern: str) -> int:
    """Return the number of characters of a glob that stand for themselves."""
    # As `fnmatch` reads them: a class matches one character, a `]` at the start of a class is literal, and so is a `[`
    # that is never closed.
    return len(re.sub(r'\[!?+\]?+[^\]]*+\]|[*?]', '', pattern))


class PolicyConfig(BaseModel):
    """The whole configuration of a policy."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    default: Default | None = None
    """Whether tools that have neither a rule nor a check need approval. `required` overrides a default of `none`
    that is set in code. If this field is `None`, the default in code applies."""
    tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """Rules by tool name or glob. A glob is case-sensitive and may contain `*`, `?` and `[...]`."""
    approvers: dict[str, ApproverRule] = Field(default_factory=dict[str, ApproverRule])
    """The people who must approve, by the names that rules and cases use."""
    auto_grant: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    """For each `isolation_profile` in which a tool may run, the capabilities that are granted without asking."""


def read_config(
    config: Mapping[str, Any],
    *,
    source: str | None = None,
    line_of: LineOf = lambda path: None,
) -> PolicyConfig:
    """Validate a configuration.

    Args:
        config: The document as nested mappings.
        source: File that the document was read from, named in the error.
        line_of: Returns the line number of the value at a key path. The error reports this number.

    Raises:
        ApprovalConfigError: A key or value is unknown or of the wrong type. The error describes the first mistake in
            the file and gives its line number.
    """
    read = read_model(PolicyConfig, plain_rules(config), source=source, line_of=line_of)
    check_approvers(read.approvers, {'tools': read.tools}, source=source, line_of=line_of)
    return read


def read_model(model: type[M], document: Mapping[str, Any], *, source: str | None, line_of: LineOf) -> M:
    """Validate a document as a model.

    Raises:
        ApprovalConfigError: See `read_config`.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        mistakes = [
            (tuple(part for part in each['loc'] if part != '[key]'), each)
            for each in error.errors(include_url=False, include_context=False)
        ]
        path, first = min(mistakes, key=lambda mistake: line_of(mistake[0]) or 0)
        raise ApprovalConfigError(
            _problem(first['type'], path, first['msg'], first['input'], model),
            key=dotted(path),
            source=source,
            line=line_of(path),
        ) from None


def parse_document(text: str, *, source: str | None = None) -> tuple[dict[str, Any], LineOf]:
    """Read any document in YAML or JSON; see `config_yaml.parse_yaml`.

    Raises:
        ApprovalConfigError: The text is not YAML, or has a duplicate key.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        from .config_yaml import parse_yaml
    except ImportError:
        raise MissingExtraError('yaml', extra='yaml') from None
    return parse_yaml(text, source=source)


def plain_rules(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without empty sections. Each rule becomes a mapping, and each sequence a list."""
    document = {key: value for key, value in config.items() if value is not None or key not in _SECTIONS}
    for key, plain in _SECTIONS.items():
        if isinstance(document.get(key), Mapping):
            document[key] = {name: plain(item) for name, item in cast('Mapping[str, object]', document[key]).items()}
    return document


def _plain_rule(rule: object) -> object:
    match rule:
        case None:  # `format_output:` without a value
            return {}
        case ToolRule():
            return rule.model_dump(by_alias=True, exclude_unset=True)
        case Mapping():
            return dict(cast('Mapping[str, object]', rule))
        case _:
            return rule


def check_offers(
    rules: Mapping[str, ToolRule], tool_name: str, arguments: Collection[str], *, source: str | None, line_of: LineOf
) -> None:
    """Check the names of the arguments under `remember` of the rules that name a tool exactly.

    Args:
        rules: The rules, by tool name or glob.
        tool_name: Name of the tool.
        arguments: Names of all arguments of the tool.
        source: File of the rules, named in the error.
        line_of: Returns the line number of the value at a key path.

    Raises:
        ApprovalConfigError: The tool has no argument of a name. The error names the key and the line.
    """
    for number, offer in enumerate(() if tool_name not in rules else rules[tool_name].remember):
        for key, names in (('total', offer.total), ('same', offer.same or ())):
            unknown = next((name for name in names if name not in arguments), None)
            if unknown is not None:
                where = (tool_name, 'remember', number, key, *([unknown] if key == 'total' else []))
                raise ApprovalConfigError(
                    f'`{printable(tool_name)}` has no argument `{printable(unknown)}`',
                    key=dotted(('tools', *where)),
                    source=source,
                    line=line_of(('tools', *where)) or line_of(('custom_tools', *where)),
                )


def check_approvers(
    approvers: Mapping[str, ApproverRule],
    sections: Mapping[str, Mapping[str, ToolRule]],
    *,
    source: str | None,
    line_of: LineOf,
) -> None:
    """Check that the entries under `approvers` can be met, and that rules and entries name only entries that exist.

    Args:
        approvers: The entries.
        sections: The rules by tool name or glob, by section.
        source: File of the configuration, named in the error.
        line_of: Returns the line number of the value at a key path.

    Raises:
        ApprovalConfigError: An entry lists no one, or fewer people than it needs; a name is unknown; or an entry
            escalates to itself. The error is the first in the file, with its key and its line.
    """
    found = list(_wrong_approvers(approvers))
    for section, rules in sections.items():
        for name, rule in rules.items():
            if rule.approvers is not None and rule.approval in ('none', 'blocked') and not rule.cases:
                path = (section, name, 'approvers')
                found.append((path, f'a rule with `approval: {rule.approval}` asks no one; remove `approvers`'))
            named = [((section, name), rule.approvers)]
            named += [((section, name, 'cases', at), case.approvers) for at, case in enumerate(rule.cases)]
            for path, said in named:
                if said is not None and said not in approvers:
                    found.append(((*path, 'approvers'), _unknown_approvers(said, approvers)))
    if found:
        path, problem = min(found, key=lambda each: line_of(each[0]) or 0)
        raise ApprovalConfigError(problem, key=dotted(path), source=source, line=line_of(path))


def _wrong_approvers(approvers: Mapping[str, ApproverRule]) -> Iterator[tuple[Path, str]]:
    for name, rule in approvers.items():
        path = ('approvers', name)
        if not rule.users and not rule.groups:
            yield path, 'no one is listed; add `users` or `groups`'
        others: object = None if rule.escalate is None else rule.escalate.to
        if others is not None and others not in approvers:
            problem = _unknown_approvers(others, approvers) if isinstance(others, str) else 'not the name of an entry'
            yield (*path, 'escalate', 'to'), problem
            continue
        asked = _asked(name, approvers)
        if others is not None and name in asked[1:]:
            yield (*path, 'escalate', 'to'), f'`{printable(name)}` escalates to itself'
        listed = {user for each in asked for user in approvers[each].users}
        if rule.count > len(listed) and not any(approvers[each].groups for each in asked):
            yield (*path, 'count'), f'{rule.count} people must approve, and only {len(listed)} are listed'


def _asked(name: str, approvers: Mapping[str, ApproverRule]) -> list[str]:
    """Return an entry and those to which it escalates, in order, up to the first that comes again."""
    found = [name]
    while (later := approvers[found[-1]].escalate) is not None and later.to in approvers:
        found.append(later.to)
        if later.to in found[:-1]:
            break
    return found


def _unknown_approvers(name: str, approvers: Mapping[str, ApproverRule]) -> str:
    return f'`{printable(name)}` is not under `approvers`{_suggestion(name, tuple(approvers))}'


def resolved(approvers: Mapping[str, ApproverRule]) -> dict[str, ApproverRule]:
    """Return the entries of a checked configuration with those to which they escalate in place of names."""

    def of(name: str) -> ApproverRule:
        rule = approvers[name]
        if rule.escalate is None:
            return rule
        return rule.model_copy(update={'escalate': rule.escalate.model_copy(update={'to': of(rule.escalate.to)})})

    return {name: of(name) for name in approvers}


def _plain_list(items: object) -> object:
    return list(cast('Iterable[object]', items)) if isinstance(items, tuple | set | frozenset) else items


def _plain_approvers(rule: object) -> object:
    return rule.model_dump(exclude_unset=True) if isinstance(rule, ApproverRule) else rule


_SECTIONS: dict[str, Callable[[object], object]] = {
    'tools': _plain_rule,
    'custom_tools': _plain_rule,
    'approvers': _plain_approvers,
    'auto_grant': _plain_list,
}
"""Sections that may be empty. YAML represents an empty section as `None`."""

_KINDS = {
    'model_type': 'the value must be a mapping of keys to values',
    'dict_type': 'the value must be a mapping of keys to values',
    'list_type': 'not a list',
    'tuple_type': 'not a list',
    'string_type': 'the value must be a string; quote it',
    'path_type': 'the value must be a string; quote it',
    'frozen_set_type': 'not a list',
    'int_type': 'not a whole number',
    'bool_type': 'the value must be true or false',
    'float_type': 'not a number',
    'missing': 'this key is missing',
    'too_short': 'the value is empty',
}
"""Descriptions of mistakes, keyed by pydantic's error type."""


def _problem(kind: str, path: Path, message: str, given: object, model: type[BaseModel]) -> str:
    if kind == 'extra_forbidden':
        if len(path) == 1 and isinstance(given, Mapping) and any(key in given for key in ToolRule.model_fields):
            return 'unknown key; rules belong under `tools`'
        known = _type_at(model, path[:-1])
        fields: dict[str, FieldInfo] = getattr(known, 'model_fields', {})
        names = tuple(field.alias or name for name, field in fields.items())
        return f'unknown key{_suggestion(str(path[-1]), names)}'
    if kind == 'literal_error':
        allowed = get_args(_type_at(model, path))
        return f'{_unknown_value(given, allowed)}; use {", ".join(f"`{value}`" for value in allowed)}'
    if kind == 'model_type' and _type_at(model, path) is ToolRule:
        return 'the value is not a rule; write a rule as `{approval: required}`'
    message = message.removeprefix('Value error, ')
    return _KINDS.get(kind, message[0].lower() + message[1:])


def _type_at(model: type[BaseModel], path: Path) -> object:
    """Return the type that `model` declares at `path`, without `None` and annotations."""
    here: object = model
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            here = here.model_fields[str(part)].annotation
        else:  # the values of a mapping, or the items of a list
            here = [each for each in get_args(here) if each is not ...][-1]
        while get_origin(here) in (Annotated, Union, UnionType):
            here = next(each for each in get_args(here) if each is not NoneType)
    return here


def _unknown_value(given: object, allowed: tuple[str, ...]) -> str:
    match given:
        case bool():
            return f'unknown value {given}; if you wrote yes, no, on or off, YAML read the word as true or false'
        case 'deny' if 'blocked' in allowed:
            return 'unknown value `deny`; did you mean `blocked`?'
        case str():
            return f'unknown value `{printable(given)}`{_suggestion(given, allowed)}'
        case _:
            return 'not a string'


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    import difflib  # needed only for an error

    close = difflib.get_close_matches(word[:LONGEST_SHOWN], known, n=1)
    return f'; did you mean `{close[0]}`?' if close else ''
