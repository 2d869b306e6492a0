"""Kinds of parameters for which what is shown may differ from what validation accepts: aliases and types."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    AliasPath,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    RootModel,
    SecretBytes,
    SecretStr,
    Strict,
    computed_field,
    create_model,
    model_validator,
)
from pydantic.dataclasses import dataclass
from tool_approval.core.arguments import HIDDEN


class AliasKind(NamedTuple):
    """A way to give a field another name than its own."""

    field: dict[str, Any]
    """Arguments for `Field`."""
    given: Callable[[Any], dict[str, Any]]
    """Returns the arguments that give the field `value` a value."""
    config: ConfigDict = ConfigDict()
    """Configuration of the model."""
    shown: str = 'value'
    """Name under which the field of a nested model is shown."""


ALIASES = {
    'none': AliasKind({}, lambda value: {'value': value}),
    'alias': AliasKind({'alias': 'other'}, lambda value: {'other': value}, shown='other'),
    'validation_alias': AliasKind({'validation_alias': 'other'}, lambda value: {'other': value}),
    'the second of AliasChoices': AliasKind(
        {'validation_alias': AliasChoices('first', 'second')}, lambda value: {'second': value}
    ),
    'both of AliasChoices': AliasKind(
        {'validation_alias': AliasChoices('first', 'second')}, lambda value: {'second': 'not used', 'first': value}
    ),
    'AliasPath into a list': AliasKind(
        {'validation_alias': AliasPath('data', 1)}, lambda value: {'data': ['not used', value]}
    ),
    'AliasPath into an object': AliasKind(
        {'validation_alias': AliasPath('data', 'inner')}, lambda value: {'data': {'inner': value}}
    ),
    'AliasGenerator': AliasKind(
        {},
        lambda value: {'VALUE': value},
        ConfigDict(
            alias_generator=AliasGenerator(validation_alias=str.upper, serialization_alias=lambda name: f'{name}_')
        ),
        'value_',
    ),
    'another serialization_alias': AliasKind(
        {'validation_alias': 'other', 'serialization_alias': 'third'}, lambda value: {'other': value}, shown='third'
    ),
    'populate_by_name, by name': AliasKind(
        {'alias': 'other'}, lambda value: {'value': value}, ConfigDict(populate_by_name=True), 'other'
    ),
    'populate_by_name, by alias': AliasKind(
        {'alias': 'other'}, lambda value: {'other': value}, ConfigDict(populate_by_name=True), 'other'
    ),
    'a name that is not read': AliasKind(
        {'validation_alias': 'other'}, lambda value: {'value': 'not used', 'other': value}
    ),
}


class Archive(BaseModel):
    item: str
    note: str = ''


class Delete(BaseModel):
    item: Decimal
    note: str = ''


class Kept(BaseModel):
    kind: Literal['keep'] = 'keep'
    item: str


class Gone(BaseModel):
    kind: Literal['drop'] = 'drop'
    item: str


class Doubling(BaseModel):
    """A model whose validators change what they get, each time."""

    text: str
    number: int = 0

    @model_validator(mode='before')
    @classmethod
    def _shout(cls, data: Any) -> Any:
        return {**data, 'text': data['text'] + '!'} if isinstance(data, dict) else data

    @model_validator(mode='after')
    def _count(self) -> Doubling:
        self.number += 1
        return self


class Partly(BaseModel):
    """A model that its own JSON form does not show as it is."""

    model_config = ConfigDict(extra='allow')
    host: str
    command: str = Field('true', exclude=True)

    @computed_field
    @property
    def url(self) -> str:
        return f'https://{self.host}'


class Words(RootModel[list[str]]):
    pass


@dataclass
class Point:
    x: int = 0
    label: str = Field('', validation_alias='name')


def _parts(text: Any) -> Any:
    return text.split(',') if isinstance(text, str) else text


class ValueKind(NamedTuple):
    """A type, with a value and an edit of it."""

    type: Any
    """Declared type."""
    given: Any
    """Value as a model gives it, in JSON."""
    shown: Any
    """The value as it is shown."""
    new: Any
    """The value after an approver's edit."""
    takes_effect: bool = True
    """Whether the tool can receive the edited value."""
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Defaults that the edited value gets."""

    @property
    def after(self) -> Any:
        """The edited value as it is shown."""
        return {**self.defaults, **self.new} if isinstance(self.new, dict) else self.new


cents = Annotated[int, AfterValidator(lambda euros: euros * 100)]
loud = Annotated[str, AfterValidator(str.upper)]

VALUES = {
    'text': ValueKind(str, 'old', 'old', 'new'),
    'number for text': ValueKind(int, '5', 5, 6),
    'date': ValueKind(datetime.date, '2026-01-02', '2026-01-02', '2027-03-04'),
    'no date': ValueKind(datetime.date, '2026-01-02', '2026-01-02', 'tomorrow', takes_effect=False),
    'Decimal': ValueKind(Decimal, '1.50', '1.50', '2.5'),
    'bytes': ValueKind(bytes, 'old', 'old', 'new'),
    'Base64Bytes': ValueKind(Base64Bytes, 'aGVsbG8=', 'hello', 'world', takes_effect=False),
    'Json': ValueKind(Json[list[int]], '[1, 2]', [1, 2], [1, 3]),
    'SecretStr': ValueKind(SecretStr, 'hunter2', HIDDEN, 'other'),
    'SecretBytes': ValueKind(SecretBytes, 'hunter2', HIDDEN, 'other'),
    'strict int': ValueKind(Annotated[int, Strict()], 1, 1, 2),
    'text for strict int': ValueKind(Annotated[int, Strict()], 1, 1, '2', takes_effect=False),
    'text instead of a number': ValueKind(int | str, 1, 1, 'two'),
    'text that looks like a date': ValueKind(
        Annotated[datetime.date | str, Field(union_mode='left_to_right')],
        '2026-01-02',
        '2026-01-02',
        'soon',
        takes_effect=False,
    ),
    'model of two that look alike': ValueKind(
        Annotated[Archive | Delete, Field(union_mode='left_to_right')],
        {'item': '1'},
        {'item': '1', 'note': ''},
        {'item': '2', 'note': 'a'},
    ),
    'other model of two that look alike': ValueKind(
        Annotated[Delete | Archive, Field(union_mode='left_to_right')],
        {'item': '1'},
        {'item': '1', 'note': ''},
        {'item': 'x', 'note': ''},
        takes_effect=False,
    ),
    'models told apart': ValueKind(
        Annotated[Kept | Gone, Field(discriminator='kind')],
        {'kind': 'keep', 'item': 'a'},
        {'kind': 'keep', 'item': 'a'},
        {'kind': 'drop', 'item': 'a'},
    ),
    'not idempotent': ValueKind(cents, 10, 1000, 2000, takes_effect=False),
    'idempotent, changed': ValueKind(loud, 'old', 'OLD', 'new', takes_effect=False),
    'idempotent, unchanged': ValueKind(loud, 'old', 'OLD', 'NEW'),
    'model that changes each time': ValueKind(
        Doubling, {'text': 'a'}, {'text': 'a!', 'number': 1}, {'text': 'b!', 'number': 1}, takes_effect=False
    ),
    'list that is given as text': ValueKind(
        Annotated[list[str], BeforeValidator(_parts)], 'a,b', ['a', 'b'], ['a', 'c']
    ),
    'text that is given as an object': ValueKind(
        Annotated[str, BeforeValidator(lambda data: data if isinstance(data, str) else data['a'])], {'a': 'x'}, 'x', 'y'
    ),
    'set': ValueKind(set[str], ['b', 'a', 'b'], ['a', 'b'], ['a', 'c']),
    'longer list': ValueKind(list[Doubling], [{'text': 'a'}], [{'text': 'a!', 'number': 1}], [], takes_effect=True),
    'list with one item more': ValueKind(list[cents], [1, 2], [100, 200], [100, 150, 200], takes_effect=False),
    'list with one item less': ValueKind(list[cents], [1, 2, 3], [100, 200, 300], [100, 300]),
    'keys that are numbers': ValueKind(dict[int, str], {'1': 'a'}, {'1': 'a'}, {'1': 'b', '2': 'c'}),
    'excluded field': ValueKind(
        Partly, {'host': 'h', 'command': 'EVIL'}, {'host': 'h', 'command': 'EVIL'}, {'host': 'h', 'command': 'ls'}
    ),
    'excluded field, removed': ValueKind(
        Partly,
        {'host': 'h', 'command': 'EVIL'},
        {'host': 'h', 'command': 'EVIL'},
        {'host': 'h'},
        defaults={'command': 'true'},
    ),
    'extra field': ValueKind(
        Partly,
        {'host': 'h', 'x': 1},
        {'host': 'h', 'command': 'true', 'x': 1},
        {'host': 'h', 'command': 'true', 'x': 2},
    ),
    'new extra field': ValueKind(
        Partly, {'host': 'h'}, {'host': 'h', 'command': 'true'}, {'host': 'h', 'command': 'true', 'y': 2}
    ),
    'root model': ValueKind(Words, ['a', 'b'], ['a', 'b'], ['a', 'c']),
    'dataclass': ValueKind(Point, {'x': 1, 'name': 'p'}, {'x': 1, 'label': 'p'}, {'x': 1, 'label': 'q'}),
    'dataclass with defaults': ValueKind(Point, {}, {'x': 0, 'label': ''}, {'x': 0, 'label': 'q'}),
}
"""Kinds of values. In each edit, the approver replaces the value as it is shown by another one."""


def model_of(kind: AliasKind, value: ValueKind, name: str = 'Holder', base: type[BaseModel] | None = None) -> Any:
    """Return a model with a field `value` of the given kinds, and a field `memo`."""
    fields: dict[str, Any] = {'value': (value.type, Field(**kind.field)), 'memo': (str, '')}
    config = ConfigDict(**{**kind.config, 'arbitrary_types_allowed': True})
    return (
        create_model(name, __config__=config, **fields) if base is None else create_model(name, __base__=base, **fields)
    )
