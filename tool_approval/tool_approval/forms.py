"""Make a form of a call's arguments, where they are flat: texts, numbers, truth values and choices, each perhaps null.

A UI draws the fields of `form_of`, and turns what a person entered into arguments with `read_form`. If there is no
form, the arguments are edited as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from tool_approval.answering import UnreadableArguments, editable, parse_arguments
from tool_approval.core.canonical import canonical_json
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line

FieldKind: TypeAlias = Literal['text', 'integer', 'number', 'choice']
"""Kind of a field. A truth value is a `choice` of `True` and `False`."""

MOST_FIELDS = 20
"""Maximum number of fields. People do not look through more fields, and Slack allows at most 100 blocks in a view."""

MOST_CHOICES = 100
"""Maximum number of options in a field. Source: Slack's reference for `static_select`."""

LONGEST_TEXT = 3000
"""Maximum number of characters in a value. Source: Slack's reference for `plain_text_input`."""


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One argument of a call."""

    name: str
    """Name of the argument. Untrusted text."""
    kind: FieldKind
    """Kind of value."""
    value: Any
    """Current value."""
    choices: tuple[Any, ...] = ()
    """Values to choose from, for a `choice`."""
    can_be_null: bool = False
    """Whether the value may be null."""

    @property
    def label(self) -> str:
        """The name as an escaped text on one line."""
        return escape_line(self.name)

    @property
    def text(self) -> str:
        """The current value as the text to edit; empty for null."""
        return '' if self.value is None else self.text_of(self.value)

    def text_of(self, value: Any) -> str:
        """Return a value as text: a text as it is, and any other value as JSON."""
        return value if isinstance(value, str) and self.kind == 'text' else json.dumps(value, ensure_ascii=True)

    def read(self, text: str | None) -> Any:
        """Return the value of an entered text; `None`, for a choice also the text `null`, is null.

        Raises:
            UnreadableArguments: The text is not a value of this field. The message names the field, escaped.
        """
        if text is None or (self.kind != 'text' and text.strip() in ('', 'null')):
            if not self.can_be_null:
                raise self._problem('is missing')
            return None
        if self.kind == 'text':
            return text
        if self.kind == 'choice':
            found = [each for each in self.choices if self.text_of(each) == text]
            if not found:
                raise self._problem('is not one of the options')
            return found[0]
        try:
            value = parse_arguments(f'{{"value": {text}}}')
        except UnreadableArguments:
            value = {}
        number = value.get('value') if list(value) == ['value'] else None
        if type(number) is int or (type(number) is float and self.kind == 'number'):
            return number
        raise self._problem('is not a whole number' if self.kind == 'integer' else 'is not a number')

    def _problem(self, what: str) -> UnreadableArguments:
        return UnreadableArguments(f'`{self.label}` {what}')


def form_of(request: ApprovalRequest, args: Mapping[str, Any] | None = None) -> tuple[FormField, ...] | None:
    """Return a field for each argument that the approver can see, or `None` if the arguments are not flat.

    Args:
        request: The request, whose `args_schema` says what the arguments are.
        args: Values to start with, in place of the request's own, such as those of an edit.
    """
    schema = request.args_schema
    properties = None if schema is None else schema.get('properties')
    values = editable(request) if args is None else args
    if not isinstance(properties, Mapping) or not 0 < len(values) <= MOST_FIELDS:
        return None
    named = cast('Mapping[str, object]', properties)
    fields = [_field(name, value, named.get(name), schema or {}) for name, value in values.items()]
    found = tuple(each for each in fields if each is not None)
    return found if len(found) == len(fields) else None


def read_form(fields: Sequence[FormField], entered: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the arguments that were entered.

    Args:
        fields: The fields of the form.
        entered: Texts by name of the argument; `None` is null.

    Raises:
        UnreadableArguments: A text is not a value of its field, or a field is missing.
    """
    return {each.name: each.read(entered.get(each.name)) for each in fields}


def _field(name: str, value: Any, given: object, schema: Mapping[str, Any]) -> FormField | None:
    can_be_null = False
    declared = _resolved(given, schema)
    options = declared.get('anyOf')
    if isinstance(options, list):
        all_of = [_resolved(each, schema) for each in cast('list[object]', options)]
        others = [each for each in all_of if each.get('type') != 'null']
        can_be_null = len(others) < len(all_of)
        declared = others[0] if len(others) == 1 else dict[str, Any]()
    kind, choices = _kind(declared)
    if kind is None:
        return None
    field = FormField(name=name, kind=kind, value=value, choices=choices, can_be_null=can_be_null)
    return field if _shows(field) else None


def _kind(declared: Mapping[str, Any]) -> tuple[FieldKind | None, tuple[Any, ...]]:
    choices: object = [declared['const']] if 'const' in declared else declared.get('enum')
    if isinstance(choices, list):
        options = tuple(cast('list[Any]', choices))
        is_flat = 0 < len(options) <= MOST_CHOICES and all(type(each) in (str, int, float, bool) for each in options)
        return ('choice', options) if is_flat else (None, ())
    match declared.get('type'):
        case 'string':
            return 'text', ()
        case 'integer':
            return 'integer', ()
        case 'number':
            return 'number', ()
        case 'boolean':
            return 'choice', (True, False)
        case _:
            return None, ()


def _shows(field: FormField) -> bool:
    """Return whether the form shows the current value exactly: entered again as it is, it is the same value."""
    if len(field.text) > LONGEST_TEXT or (field.can_be_null and field.kind == 'text' and field.value == ''):
        return False
    # A browser changes line ends, and drops control characters.
    if isinstance(field.value, str) and any(not each.isprintable() and each != '\n' for each in field.value):
        return False
    try:
        again = field.read(None if field.value is None else field.text)
    except UnreadableArguments:
        return False
    return canonical_json([again]) == canonical_json([field.value])


def _resolved(given: object, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a declaration, with a reference to another declaration of the schema replaced by that."""
    if not isinstance(given, Mapping):
        return {}
    declared = cast('Mapping[str, Any]', given)
    place: object = declared.get('$ref')
    if not isinstance(place, str):
        return declared
    kind, _, name = place.removeprefix('#/').partition('/')
    definitions: object = schema.get(kind)
    found: object = cast('Mapping[str, object]', definitions).get(name) if isinstance(definitions, Mapping) else None
    return cast('Mapping[str, Any]', found) if isinstance(found, Mapping) else {}
