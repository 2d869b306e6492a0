"""Arguments as a text that a person edits, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest, describe
from tool_approval.display import escape_line
from tool_approval.display.digest import left_out_keys

LONGEST_TEXT = 1_000_000
"""Chosen, in characters: what reads YAML needs seconds for more."""

FENCE = 5
"""Lines of ours above and below the text. Attack: the model writes `vim: set ...` into an argument, and the editor obeys
it; Vim looks for that in so many lines at both ends ('modelines')."""


class UnreadableEdit(Exception):
    """The edited text is no mapping of arguments; the text says why, for a person."""


def editable(request: ApprovalRequest) -> dict[str, Any]:
    """The arguments a person may see and change.

    What the tool keeps from being shown stays as it is.
    """
    hidden = left_out_keys(request)
    return {key: value for key, value in request.args.items() if key not in hidden}


def changed(request: ApprovalRequest, edited: Mapping[str, Any]) -> ApprovalRequest:
    """The request as it is asked about again, with what was edited; nothing about it can be remembered.

    What its tool says of it was made for the other arguments, so nothing of that is left but the reason, which says so.
    """
    kept = {key: value for key, value in request.args.items() if key not in editable(request)}
    return request.model_copy(
        update={
            'args': {**edited, **kept},
            'payload': dict(edited),
            'description': describe(request.tool_name, edited),
            'described_by': None,
            'presentation': None,
            'reason': None if request.reason is None else f'before your change: {request.reason}',
            'remember_options': (),
        }
    )


def is_yaml(args: Mapping[str, Any]) -> bool:
    """Whether `args` is edited as YAML: it reads better, and must come back as just the same values."""
    try:
        from .yaml_text import NotYaml, dump, load
    except ImportError:  # the extra `yaml` is not installed
        return False
    try:
        return canonical_json(load(dump(args))) == canonical_json(args)
    except (NotYaml, NotCanonicalError):
        return False


def as_text(tool_name: str, args: Mapping[str, Any]) -> str:
    """The text to edit: a heading of comments in YAML, and JSON where YAML would not do."""
    if not is_yaml(args):
        fence = '\n' * FENCE
        return f'{fence}{json.dumps(args, indent=2, ensure_ascii=True)}\n{fence}'
    from .yaml_text import dump

    heading = [
        f'# The arguments of {escape_line(tool_name).replace(":", "<U+003A>")}.',
        '#',
        '# Change them, save and quit: you are asked about the changed call before it runs.',
        '# Leave everything as it is, or empty the file, to go back to the question.',
        '#',
    ]
    fence = ['#'] * (FENCE - 1) + ['# The end.']
    return '\n'.join([*heading, dump(args).rstrip('\n'), *fence, ''])


def read_text(text: str, *, as_yaml: bool) -> dict[str, Any] | None:
    """The arguments that an edited text says, or `None` for an emptied one.

    Raises:
        UnreadableEdit: It says none, or values that a call cannot have.
    """
    if len(text) > LONGEST_TEXT:
        raise UnreadableEdit(f'it is longer than {LONGEST_TEXT} characters')
    if not any(line.strip() and not line.startswith('#') for line in text.splitlines()):
        return None
    try:
        value = _load(text) if as_yaml else decode_arguments(text)
        canonical_json(value)
    except NotCanonicalError as error:
        raise UnreadableEdit(error.problem) from None
    return value


def read_value(text: str) -> Any:
    """One value as JSON.

    Raises:
        UnreadableEdit: It is none.
    """
    try:
        values = decode_arguments(f'{{"value": {text}}}')
        canonical_json(values)
    except NotCanonicalError:
        values = {}
    if list(values) != ['value']:
        raise UnreadableEdit('that is no JSON value: a text stands in double quotes')
    return values['value']


def value_text(value: object) -> str:
    """One value as JSON in one line of ASCII."""
    return json.dumps(value, ensure_ascii=True)


def _load(text: str) -> dict[str, Any]:
    from .yaml_text import NotYaml, load

    try:
        return load(text)
    except NotYaml as error:
        raise UnreadableEdit(str(error)) from None
