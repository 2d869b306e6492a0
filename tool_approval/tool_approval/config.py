"""The configuration of the policy: what it may say, and where its mistakes are."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import ApprovalConfigError, MissingExtraError
from .places import LONGEST_SHOWN, Path, dotted, printable

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
    line_of: Callable[[Path], int | None] = lambda path: None,
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
    try:
        return PolicyConfig.model_validate(_plain(config))
    except ValidationError as error:
        mistakes = [
            (tuple(part for part in each['loc'] if part != '[key]'), each)
            for each in error.errors(include_url=False, include_context=False)
        ]
        path, first = min(mistakes, key=lambda mistake: line_of(mistake[0]) or 0)
        raise ApprovalConfigError(
            _problem(first['type'], path, first['msg'], first['input']),
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
    try:
        from .config_yaml import parse_yaml
    except ImportError:
        raise MissingExtraError('yaml', extra='yaml') from None
    document, line_of = parse_yaml(text, source=source)
    return read_config(document, source=source, line_of=line_of)


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    # `tools:` with nothing behind it says nothing.
    document = {key: value for key, value in config.items() if value is not None or key not in ('tools', 'auto_grant')}
    for key, plain in (('tools', _plain_rule), ('auto_grant', _plain_list)):
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


_KNOWN = {0: tuple(PolicyConfig.model_fields), 2: tuple(ToolRule.model_fields)}
"""Keys by their depth."""

_VALUES = {'approval': get_args(Approval), 'default': get_args(Default)}
"""Values by their key."""

_KINDS = {
    'model_type': 'not a rule; write one as `{approval: required}`',
    'dict_type': 'not a mapping of keys to values',
    'list_type': 'not a list',
    'string_type': 'not a text; quote it',
}
"""What is wrong, by pydantic's name for it."""


def _problem(kind: str, path: Path, message: str, given: object) -> str:
    last = str(path[-1]) if path else ''
    if kind == 'extra_forbidden':
        return f'unknown key{_suggestion(last, _KNOWN[len(path) - 1])}'
    if kind == 'literal_error':
        return f'{_unknown_value(given, _VALUES[last])}; use {", ".join(f"`{value}`" for value in _VALUES[last])}'
    return _KINDS.get(kind, message[0].lower() + message[1:])


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
    close = difflib.get_close_matches(word[:LONGEST_SHOWN], known, n=1)
    return f'; did you mean `{close[0]}`?' if close else ''
