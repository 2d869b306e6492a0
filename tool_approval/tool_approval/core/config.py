"""The configuration of the policy: what it may say, where its mistakes are, and which rule is in force for a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import LONGEST_SHOWN, ApprovalConfigError, MissingExtraError, Path, dotted, printable

LineOf: TypeAlias = Callable[[Path], int | None]
"""The line of the value at a path of keys, from 1; `None` where it is not known."""

M = TypeVar('M', bound=BaseModel)

Approval = Literal['required', 'none', 'blocked']
"""Ask about every call, about none, or refuse them all."""

Default = Literal['required', 'none']
"""What holds for a tool that nothing is said about."""


class ToolRule(BaseModel):
    """What is configured for a tool, or for all tools that a glob matches."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    approval: Approval | None = None
    """Ask, do not ask, or refuse; `None` leaves it to the tool."""
    description: str | None = None
    """One line for the person who is asked."""


@dataclass(frozen=True, kw_only=True)
class InForce:
    """What all matching rules come to."""

    approval: Approval | None = None
    """As in a rule; `None` also if nothing is configured."""
    description: str | None = None
    """Of the rule that decides, or of a weightier one that leaves the decision to it."""
    decided_by: str | None = None
    """The name or glob of the rule that decides; `None` if none does."""


class ToolRules:
    """The rules under `tools`. An exact name beats a glob, more literal characters beat fewer, a block beats all."""

    def __init__(self, rules: Mapping[str, ToolRule]) -> None:
        """Compile the globs."""
        self._rules = rules
        # The weightiest first; the pattern itself comes last, so that the order of the mapping never matters.
        globs = sorted(
            (name for name in rules if any(character in name for character in '*?[')),
            key=lambda name: (_literals(name), _STRICTNESS[rules[name].approval], name),
            reverse=True,
        )
        self._globs = [(re.compile(translate(name)).fullmatch, name) for name in globs]

    def find(self, tool_name: str) -> InForce:
        """What is in force for a tool."""
        names = [name for matches, name in self._globs if matches(tool_name)]
        if tool_name in self._rules:
            names.insert(0, tool_name)
        approval: Approval | None = None
        description: str | None = None
        decided_by: str | None = None
        for name in names:
            rule = self._rules[name]
            # Not of a rule that weighs less than the one that decides: it would hide what the tool says itself.
            if approval is None:
                approval, description = rule.approval, description or rule.description
                decided_by = None if approval is None else name
        block = next((name for name in names if self._rules[name].approval == 'blocked'), None)
        if block is not None:
            approval, decided_by = 'blocked', block
        return InForce(approval=approval, description=description, decided_by=decided_by)


_STRICTNESS: Final[dict[Approval | None, int]] = {None: 0, 'none': 1, 'required': 2, 'blocked': 3}


def _literals(pattern: str) -> int:
    # A class matches one character, however many it lists. `]` is listed where it stands first, and a `[` that is never
    # closed is a character like others: this is how `fnmatch` reads them.
    return len(re.sub(r'\[!?+\]?+[^\]]*+\]|[*?]', '', pattern))


class PolicyConfig(BaseModel):
    """The whole configuration."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    default: Default | None = None
    """What holds for a tool that neither a rule nor the tool itself says anything about. `required` also where code
    chose `none`; `None` leaves it to the code."""
    tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """Rules by tool name, or by glob: `*`, `?` and `[...]`, with upper and lower case distinguished."""
    auto_grant: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    """Capabilities that are granted without asking, by the `isolation_profile` a tool runs in."""


def read_config(
    config: Mapping[str, Any],
    *,
    source: str | None = None,
    line_of: LineOf = lambda path: None,
) -> PolicyConfig:
    """Check a configuration.

    Args:
        config: The document as nested mappings.
        source: The file it was read from, for the error.
        line_of: The line of the value at a path of keys, for the error.

    Raises:
        ApprovalConfigError: An unknown key or value, or one of the wrong kind. It names the first in the file, with its
            line.
    """
    return read_model(PolicyConfig, plain_rules(config), source=source, line_of=line_of)


def read_model(model: type[M], document: Mapping[str, Any], *, source: str | None, line_of: LineOf) -> M:
    """Read a document as a model.

    Raises:
        ApprovalConfigError: As for `read_config`.
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


def parse_config(text: str, *, source: str | None = None) -> PolicyConfig:
    """Read a configuration written in YAML, or in JSON.

    Args:
        text: The document.
        source: The file it comes from, for errors.

    Raises:
        ApprovalConfigError: It is no YAML, names a key twice, or does not say what a configuration may say.
        MissingExtraError: PyYAML is not installed.
    """
    document, line_of = parse_document(text, source=source)
    return read_config(document, source=source, line_of=line_of)


def parse_document(text: str, *, source: str | None = None) -> tuple[dict[str, Any], LineOf]:
    """Read a document written in YAML, or in JSON, whatever it is about; see `config_yaml.parse_yaml`.

    Raises:
        ApprovalConfigError: It is no YAML, or names a key twice.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        from .config_yaml import parse_yaml
    except ImportError:
        raise MissingExtraError('yaml', extra='yaml') from None
    return parse_yaml(text, source=source)


def plain_rules(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same with rules as mappings, lists as lists, and without sections that say nothing."""
    document = {key: value for key, value in config.items() if value is not None or key not in _SECTIONS}
    for key, plain in _SECTIONS.items():
        if isinstance(document.get(key), Mapping):
            document[key] = {name: plain(item) for name, item in cast('Mapping[str, object]', document[key]).items()}
    return document


def _plain_rule(rule: object) -> object:
    match rule:
        case None:  # `format_output:` with nothing behind it
            return {}
        case ToolRule():
            return rule.model_dump()
        case Mapping():
            return dict(cast('Mapping[str, object]', rule))
        case _:
            return rule


def _plain_list(items: object) -> object:
    return list(cast('Iterable[object]', items)) if isinstance(items, tuple | set | frozenset) else items


_SECTIONS: dict[str, Callable[[object], object]] = {
    'tools': _plain_rule,
    'custom_tools': _plain_rule,
    'auto_grant': _plain_list,
}
"""Those in which `None` stands for nothing."""

_KINDS = {
    'model_type': 'not a mapping of keys to values',
    'dict_type': 'not a mapping of keys to values',
    'list_type': 'not a list',
    'tuple_type': 'not a list',
    'string_type': 'not a text; quote it',
    'path_type': 'not a text; quote it',
    'bool_type': 'neither true nor false',
    'float_type': 'not a number',
    'missing': 'this key is missing',
}
"""What is wrong, by pydantic's name for it."""


def _problem(kind: str, path: Path, message: str, given: object, model: type[BaseModel]) -> str:
    if kind == 'extra_forbidden':
        known = _type_at(model, path[:-1])
        return f'unknown key{_suggestion(str(path[-1]), tuple(getattr(known, "model_fields", ())))}'
    if kind == 'literal_error':
        allowed = get_args(_type_at(model, path))
        return f'{_unknown_value(given, allowed)}; use {", ".join(f"`{value}`" for value in allowed)}'
    if kind == 'model_type' and _type_at(model, path) is ToolRule:
        return 'not a rule; write one as `{approval: required}`'
    message = message.removeprefix('Value error, ')
    return _KINDS.get(kind, message[0].lower() + message[1:])


def _type_at(model: type[BaseModel], path: Path) -> object:
    """What a document of `model` has at `path`, without `None` and without conditions."""
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
            return f'unknown value {given}; YAML reads yes, no, on and off as true and false'
        case 'deny' if 'blocked' in allowed:
            return 'unknown value `deny`; did you mean `blocked`?'
        case str():
            return f'unknown value `{printable(given)}`{_suggestion(given, allowed)}'
        case _:
            return 'not a text'


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    import difflib  # only for what is wrong

    close = difflib.get_close_matches(word[:LONGEST_SHOWN], known, n=1)
    return f'; did you mean `{close[0]}`?' if close else ''
