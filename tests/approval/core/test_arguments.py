"""Arguments are shown as they were given, whatever the tool's own serialisation makes of them."""

import datetime
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    field_serializer,
    model_serializer,
    model_validator,
)
from tool_approval.core.arguments import HIDDEN, as_json, in_clear, materialised, read_arguments, restored
from tool_approval.core.fields import Parameter

from tool_approval import NotCanonicalError


class Excluding(BaseModel):
    host: str
    command: str = Field(default='true', exclude=True)


class Lossy(BaseModel):
    text: str

    @field_serializer('text')
    def _shorten(self, text: str) -> str:
        return text[:3]


class Rewriting(BaseModel):
    command: str

    @model_serializer
    def _as_nothing(self) -> dict[str, str]:
        return {'harmless': 'yes'}


@dataclass
class Plain:
    spec: Excluding
    more: list[Lossy] = field(default_factory=list)


class Root(RootModel[list[Excluding]]):
    pass


class Login(BaseModel):
    user: str
    password: SecretStr


class Aliased(BaseModel):
    model_config = ConfigDict(extra='allow')
    path: str = Field(alias='file')


class Colour(Enum):
    RED = 'red'


class Stashing(BaseModel):
    host: str
    _stash: str = ''

    @model_validator(mode='wrap')
    @classmethod
    def _keep(cls, value: Any, handler: Any) -> Any:
        made = handler({'host': value['host']})
        made._stash = value.get('command', '')
        return made


@pytest.mark.parametrize(
    ('value', 'given', 'shown'),
    [
        (Excluding, {'host': 'h', 'command': 'EVIL'}, {'host': 'h', 'command': 'EVIL'}),
        (Lossy, {'text': 'rm -rf /'}, {'text': 'rm -rf /'}),
        (Rewriting, {'command': 'EVIL'}, {'command': 'EVIL'}),
        (Root, [{'host': 'h', 'command': 'EVIL'}], [{'host': 'h', 'command': 'EVIL'}]),
        (Login, {'user': 'u', 'password': 'hunter2'}, {'user': 'u', 'password': HIDDEN}),
        (Stashing, {'host': 'h', 'command': 'EVIL'}, {'host': 'h', 'command': 'EVIL'}),
    ],
)
def test_values_hidden_or_altered_by_serialisation_are_shown_and_never_remembered(value: Any, given: Any, shown: Any):
    read = read_arguments({'spec': value.model_validate(given)}, {'spec': given})

    assert read.shown == {'spec': shown}
    assert read.is_altered


def test_hidden_fields_are_found_at_any_depth_without_the_models_own_arguments():
    evil = Excluding(host='h', command='EVIL')
    values = {'plain': Plain(spec=evil, more=[Lossy(text='rm -rf /')]), 'by_name': {'a': (evil,)}}

    read = read_arguments(values)

    assert read.shown == {
        'plain': {'spec': {'host': 'h', 'command': 'EVIL'}, 'more': [{'text': 'rm -rf /'}]},
        'by_name': {'a': [{'host': 'h', 'command': 'EVIL'}]},
    }
    assert read.is_altered
    assert as_json(values) == read.shown


def test_defaults_and_plain_conversions_do_not_alter_arguments():
    class Everything(BaseModel):
        day: datetime.date
        path: pathlib.Path
        number: float
        colour: Colour
        tags: set[str]
        names: frozenset[str]
        extra: str = 'default'
        by_number: dict[int, str]
        hidden: str = Field(default='never given', exclude=True)
        text: bytes

    given = {
        'day': '2024-01-01',
        'path': './a',
        'number': 1,
        'colour': 'red',
        'tags': ['b', 'a', 'b'],
        'names': ['b', 'c', 'a'],
        'by_number': {'1': 'one'},
        'text': 'abc',
    }
    read = read_arguments({'it': Everything.model_validate(given)}, {'it': given})

    assert not read.is_altered
    assert read.shown['it'] == {
        **given,
        'path': 'a',
        'number': 1.0,
        'tags': ['a', 'b'],
        'names': ['a', 'b', 'c'],
        'extra': 'default',
        'hidden': 'never given',
    }


@pytest.mark.parametrize(
    ('value', 'given'),
    [
        ('other', 'given'),
        (2, 1),
        ({'a': 1}, 'text'),
        ('text', {'a': 1}),
        ('text', ['a']),
        ([1, 2], [1]),
        ({'b': 1}, {'a': 1}),
        ({1, 2}, [1, 3]),
        ({1, 2}, 'text'),
    ],
)
def test_a_value_that_validation_replaced_is_altered(value: Any, given: Any):
    assert read_arguments({'it': value}, {'it': given}).is_altered


def test_aliases_and_additional_fields_are_shown_under_their_names_in_json():
    given = {'file': 'a', 'more': 1}
    read = read_arguments({'it': Aliased.model_validate(given)}, {'it': given})

    assert read.shown == {'it': given}
    assert not read.is_altered


def test_a_value_is_shown_once_under_the_name_of_its_field():
    class Account(BaseModel):
        account: str = Field('DEFAULT', validation_alias='iban')

    read = read_arguments(
        {'to': 'a', 'it': Account(iban='b')},
        {'recipient': 'a', 'it': {'iban': 'b'}},
        parameters={'to': Parameter((('recipient',),))},
    )

    assert read.shown == {'to': 'a', 'it': {'account': 'b'}}
    assert not read.is_altered
    assert read.bound['given'] == {'recipient': 'a', 'it': {'iban': 'b'}}


def test_a_value_that_validation_did_not_read_is_shown_beside_the_value_that_it_read():
    class Account(BaseModel):
        account: str = Field('DEFAULT', validation_alias=AliasChoices('iban', AliasPath('more', 0)))

    given = {'iban': 'b', 'account': 'c', 'more': ['d']}
    read = read_arguments({'it': Account.model_validate(given)}, {'it': given})

    assert read.shown == {'it': {'account': 'b', 'account (not used)': 'c', 'more': ['d']}}
    assert read.is_altered


def test_secrets_are_bound_and_shown_nowhere():
    class Many(BaseModel):
        password: SecretStr = Field(validation_alias='pw')
        key: SecretBytes
        items: list[SecretStr]

    def read(password: str) -> Any:
        given = {'pw': password, 'key': 'bytes', 'items': ['one'], 'again': [{'x': f'it is {password}'}], 'n': 1}
        return read_arguments({'it': Many.model_validate(given)}, {'it': given})

    first, second = read('hunter2'), read('hunter3')

    assert 'hunter' not in str(first.shown)
    assert first.shown == second.shown
    assert first.bound != second.bound
    assert first.shown['it'] == {
        'password': HIDDEN,
        'key': HIDDEN,
        'items': [HIDDEN],
        'again': HIDDEN,
        'n': HIDDEN,
    }
    assert read_arguments({'password': SecretStr('a')}).bound != read_arguments({'password': SecretStr('b')}).bound


def test_what_validation_left_out_beside_a_secret_may_be_that_secret():
    class Renamed(BaseModel):
        raw: SecretBytes = Field(validation_alias='raw_key')
        lowered: Annotated[SecretStr, BeforeValidator(str.lower)] = Field(validation_alias='password')
        number: Secret[int] = Field(validation_alias='pin')
        short: SecretStr = Field(validation_alias='code')

    given = {
        'raw_key': 'hunter2',
        'password': 'HUNTER2',
        'pin': '0042',
        'code': 'x',
        'url': {'u:x@h': 1},
        'again': '0042',
    }
    read = read_arguments({'it': Renamed.model_validate(given), 'n': 1}, {'it': given, 'n': 1})

    names = ('raw', 'lowered', 'number', 'short', 'url', 'again')
    assert read.shown == {'it': dict.fromkeys(names, HIDDEN), 'n': 1}


def test_a_secret_that_is_a_key_is_refused():
    with pytest.raises(NotCanonicalError, match='a secret is used as a key'):
        read_arguments({'it': {SecretStr('hunter2'): 1}}, {'it': {'hunter2': 1}})


def test_two_fields_with_one_name_in_json_are_refused():
    class Twice(BaseModel):
        command: str = Field(serialization_alias='text')
        text: str

    class Open(BaseModel):
        model_config = ConfigDict(extra='allow')
        command: str = Field(serialization_alias='text')

    for value in (Twice(command='EVIL', text='harmless'), Open.model_validate({'command': 'EVIL', 'text': 'harmless'})):
        with pytest.raises(NotCanonicalError, match='two fields'):
            read_arguments({'it': value})


def test_arguments_shown_completely_need_no_further_binding():
    assert read_arguments({'path': 'a'}).bound == {}
    assert read_arguments({'path': 'a'}, {'path': 'a'}).bound != {}


def test_fields_of_a_single_model_argument_are_known():
    assert read_arguments({'it': Excluding(host='h')}).fields == {'host': 'h', 'command': 'true'}
    assert read_arguments({'it': {'host': 'h'}}).fields is None
    assert read_arguments({'it': 'text'}).fields is None
    assert read_arguments({'it': Excluding(host='h'), 'more': 1}).fields is None
    assert read_arguments({'it': 'text'}, {'it': 'text', 'more': 1}).fields is None


def test_iterators_become_lists_and_are_refused_inside_of_other_values():
    class Lazy(BaseModel):
        names: Iterable[str]

    assert materialised({'names': iter(['a', 'b']), 'n': 1}) == {'names': ['a', 'b'], 'n': 1}
    with pytest.raises(NotCanonicalError, match='contains an iterator'):
        read_arguments({'it': Lazy(names=['a'])})
    with pytest.raises(NotCanonicalError, match='does not match the type'):
        materialised({'it': Lazy.model_validate({'names': [1]}).names})

    def fail() -> Iterable[str]:
        yield 'a'
        raise OSError('secret')

    with pytest.raises(NotCanonicalError, match='an iterator raised OSError'):
        materialised({'it': fail()})


def test_bytes_in_a_secret_are_compared_too():
    assert in_clear({'a': SecretBytes(b'x')}) != in_clear({'a': SecretBytes(b'y')})


def test_values_in_clear_text_keep_secrets_apart_from_other_values():
    values = {'a': SecretStr('x'), 'b': SecretBytes(b'y'), 'c': Secret[int](1), 'd': 'x'}

    assert in_clear(values) == {'a': {HIDDEN: 'x'}, 'b': {HIDDEN: 'y'}, 'c': {HIDDEN: 1}, 'd': 'x'}


def test_secrets_in_clear_text_have_the_form_in_which_a_model_gives_them():
    values = {'a': SecretStr('x'), 'b': SecretBytes(b'y'), 'c': [Secret[int](1)]}

    assert as_json(values, in_clear=True) == {'a': 'x', 'b': b'y'.hex(), 'c': [1]}
    assert as_json(values) == {'a': HIDDEN, 'b': HIDDEN, 'c': [HIDDEN]}


def test_keys_with_one_json_form_are_refused():
    with pytest.raises(NotCanonicalError, match='two keys'):
        read_arguments({'it': {1: 'harmless', '1': 'EVIL'}})


def test_value_without_a_json_form_is_refused():
    circular: dict[str, Any] = {}
    circular['itself'] = circular
    for value in (object(), circular, b'\xff', float('nan'), Exception):
        with pytest.raises(NotCanonicalError):
            read_arguments({'it': value})


def test_hidden_values_come_back_where_an_approver_left_them():
    shown = {'user': 'u', 'password': HIDDEN, 'all': [HIDDEN, 'b'], 'n': 1}
    given = {'user': 'u', 'password': 'hunter2', 'all': ['a', 'b'], 'n': 1}

    assert restored({**shown, 'user': 'other'}, shown, given) == {**given, 'user': 'other'}
    assert restored({'user': 'u', 'password': 'new'}, shown, given) == {'user': 'u', 'password': 'new'}
    assert restored({'all': ['x']}, shown, given) == {'all': ['x']}
    for moved in ({'user': HIDDEN}, {'all': [HIDDEN]}, {'user': [{'x': HIDDEN}]}, {'all': ['a', HIDDEN]}):
        with pytest.raises(ValueError, match='hidden value'):
            restored(moved, shown, given)
    with pytest.raises(ValueError, match='hidden value'):
        restored({'password': HIDDEN}, shown, {})
