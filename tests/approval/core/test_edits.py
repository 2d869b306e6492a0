"""An edit changes exactly the leaves that the approver changed, in what the tool receives, or is refused."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    Json,
    RootModel,
    SecretStr,
    ValidationError,
    create_model,
    model_validator,
)
from tool_approval.core.arguments import HIDDEN, read_arguments
from tool_approval.core.edits import Reading, edited
from tool_approval.core.fields import parameters_of

from tests.approval.argument_kinds import ALIASES, VALUES, cents, model_of
from tests.tables import table


class Tool:
    """A tool whose parameters are the fields of a model."""

    def __init__(self, model: type[BaseModel]):
        self.model = model
        self.parameters = parameters_of(model.model_fields, model.model_config)

    @classmethod
    def of(cls, **fields: Any) -> Tool:
        return cls(
            create_model(
                'Arguments', **{name: each if isinstance(each, tuple) else (each, ...) for name, each in fields.items()}
            )
        )

    def read(self, given: Mapping[str, Any]) -> Reading:
        try:
            model = self.model.model_validate(copy.deepcopy(dict(given)))
        except ValidationError as error:
            raise ValueError('; '.join(each['msg'] for each in error.errors())) from None
        except KeyError as error:
            raise ValueError('KeyError') from error
        values = {name: getattr(model, name) for name in type(model).model_fields}
        return Reading(values, read_arguments(values, given, parameters=self.parameters))

    def edit(self, given: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the arguments for the tool after `change` was applied to the arguments as they are shown."""
        before, was = self.read(given), copy.deepcopy(given)
        new = copy.deepcopy(before.arguments.shown)
        change(new)
        result = edited(new, given, before, self.read, parameters=self.parameters)
        assert given == was
        return result


class Shape(NamedTuple):
    """A way to give a tool a model's fields."""

    model: Callable[[type[BaseModel]], type[BaseModel]]
    """Returns the model of the tool's parameters."""
    given: Callable[[dict[str, Any]], dict[str, Any]]
    """Returns the tool's arguments."""
    path: tuple[str | int, ...] = ()
    """Where the fields are shown."""


SHAPES = {
    'parameters': Shape(lambda model: model, lambda fields: fields),
    'a model beside others': Shape(
        lambda model: create_model('A', it=(model, ...), more=(str, 'x')), lambda fields: {'it': fields}, ('it',)
    ),
    'the only parameter': Shape(
        lambda model: create_model('A', it=(model, ...)), lambda fields: {'it': fields}, ('it',)
    ),
    'models in a list': Shape(
        lambda model: create_model('A', it=(list[model], ...)), lambda fields: {'it': [fields, fields]}, ('it', 1)
    ),
    'a model behind an alias': Shape(
        lambda model: create_model('A', it=(model, Field(validation_alias='that'))),
        lambda fields: {'that': fields},
        ('it',),
    ),
}
CASES = [
    *itertools.product(['parameters', 'a model beside others'], ALIASES, VALUES),
    *itertools.product(SHAPES, ['validation_alias', 'AliasPath into a list'], VALUES),
]


def at(tree: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        tree = tree[step] if isinstance(tree, dict | list) else getattr(tree, str(step))
    return tree


@functools.cache
def tool_for(shape: str, alias: str, value: str) -> Tool:
    return Tool(SHAPES[shape].model(model_of(ALIASES[alias], VALUES[value])))


def given_for(shape: str, alias: str, value: str) -> dict[str, Any]:
    memo = 'MEMO' if alias == 'AliasGenerator' else 'memo'
    return SHAPES[shape].given({**ALIASES[alias].given(VALUES[value].given), memo: 'old'})


@table(('shape', 'alias', 'value'), CASES)
def test_an_edit_of_another_leaf_leaves_the_value_as_it_is(shape: str, alias: str, value: str):
    tool, path = tool_for(shape, alias, value), SHAPES[shape].path
    memo = 'memo_' if path and alias == 'AliasGenerator' else 'memo'
    before = tool.read(given_for(shape, alias, value)).values

    result = tool.edit(given_for(shape, alias, value), lambda shown: at(shown, path).update({memo: 'new'}))

    after = tool.read(result).values
    held, holds = at(before, (*path, 'value')), at(after, (*path, 'value'))
    assert at(after, (*path, 'memo')) == 'new'
    assert (held, type(held)) == (holds, type(holds))


@table(('shape', 'alias', 'value'), CASES)
def test_an_edited_value_is_what_the_tool_gets_or_the_edit_is_refused(shape: str, alias: str, value: str):
    tool, path, kind = tool_for(shape, alias, value), SHAPES[shape].path, VALUES[value]
    name = ALIASES[alias].shown if path else 'value'

    def change(shown: Any) -> None:
        assert at(shown, path)[name] == kind.shown
        at(shown, path)[name] = kind.new

    if not kind.takes_effect:
        with pytest.raises(ValueError):
            tool.edit(given_for(shape, alias, value), change)
        return
    after = tool.read(tool.edit(given_for(shape, alias, value), change))

    holds = at(after.values, (*path, 'value'))
    secret = getattr(holds, 'get_secret_value', lambda: None)()
    assert secret in (None, 'other', b'other')
    assert at(after.arguments.shown, path)[name] == (HIDDEN if secret else kind.after)
    assert at(after.values, (*path, 'memo')) == 'old'


def leaves_of(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], type, Any]]:
    """Yield path, type and text of every leaf and every model that a tool receives."""
    if isinstance(value, RootModel):
        value = value.root
    if isinstance(value, BaseModel):
        yield path, type(value), None
        fields = {
            each.serialization_alias or name: getattr(value, name) for name, each in type(value).model_fields.items()
        }
        value = {**fields, **(value.model_extra or {})}
    elif dataclasses.is_dataclass(value):
        yield path, type(value), None
        value = vars(value)
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves_of(item, (*path, str(step) if isinstance(value, dict) else step))
    else:
        yield path, type(value), repr(getattr(value, 'get_secret_value', lambda: value)())


LEAF = st.sampled_from(
    ['new', '7', 'a,b', 'aGVsbG8=', 'NEW', '2027-03-04', 7, 7.5, True, None, [], {}, ['a'], {'a': 1}, HIDDEN]
)


@settings(max_examples=200, deadline=None)
@given(
    fields=st.lists(st.tuples(st.sampled_from([*ALIASES]), st.sampled_from([*VALUES])), min_size=1, max_size=3),
    shape=st.sampled_from([*SHAPES]),
    data=st.data(),
)
def test_exactly_the_edited_leaf_changes_or_the_edit_is_refused(
    fields: list[tuple[str, str]], shape: str, data: st.DataObject
):
    models = {
        f'part{number}': (model_of(ALIASES[alias], VALUES[value]), ...) for number, (alias, value) in enumerate(fields)
    }
    tool = Tool(SHAPES[shape].model(create_model('Parts', **models)))
    given = SHAPES[shape].given(
        {f'part{number}': given_for('parameters', alias, value) for number, (alias, value) in enumerate(fields)}
    )
    before = tool.read(given)
    event: dict[str, Any] = {}

    def change(shown: Any) -> None:
        path: tuple[Any, ...] = ()
        while isinstance(at(shown, path), dict | list) and at(shown, path):
            within = at(shown, path)
            path = (*path, data.draw(st.sampled_from([*within] if isinstance(within, dict) else range(len(within)))))
            if data.draw(st.booleans()):
                break
        new = at(shown, path[:-1])
        if data.draw(st.booleans()):
            new[path[-1]] = data.draw(LEAF)
        else:
            del new[path[-1]]
            event['is_removed'] = True
        event['path'] = path if isinstance(new, dict) or not event.get('is_removed') else path[:-1]

    new = copy.deepcopy(before.arguments.shown)
    change(new)
    path = event['path']
    try:
        result = edited(new, given, before, tool.read, parameters=tool.parameters)
    except ValueError:
        return
    after = tool.read(result)

    was, now = ({each[0]: each for each in leaves_of(reading.values)} for reading in (before, after))
    elsewhere = {each for each in was.keys() | now.keys() if each[: len(path)] != path and path[: len(each)] != each}
    assert {each: was.get(each) for each in elsewhere} == {each: now.get(each) for each in elsewhere}
    if not event.get('is_removed'):
        assert covered(at(new, path), at(after.arguments.shown, path)) or at(before.arguments.shown, path) == HIDDEN


def covered(wanted: Any, now: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(now, dict):
        return all(name in now and covered(item, now[name]) for name, item in wanted.items())
    return (wanted, type(wanted)) == (now, type(now))


class Account(BaseModel):
    account: str = Field('DEFAULT', validation_alias='iban')
    amount: int = 1


TRANSFER = Tool.of(t=Account, memo=(str, ''))


def test_an_unchanged_call_is_given_as_the_model_gave_it():
    given = {'t': {'iban': 'a', 'amount': '5'}, 'unknown': 1}

    assert TRANSFER.edit(given, lambda shown: None) == given


def test_an_edit_reaches_the_place_that_an_alias_names():
    given = {'t': {'iban': 'EVIL'}}

    assert TRANSFER.edit(given, lambda shown: shown['t'].update(account='SAFE')) == {'t': {'iban': 'SAFE'}}
    assert TRANSFER.edit(given, lambda shown: shown['t'].update(amount=5)) == {'t': {'iban': 'EVIL', 'amount': 5}}


def test_a_removed_leaf_gets_its_default():
    assert TRANSFER.edit({'t': {'iban': 'a'}, 'memo': 'x'}, lambda shown: shown.pop('memo')) == {'t': {'iban': 'a'}}
    assert TRANSFER.edit({'t': {'iban': 'a'}}, lambda shown: shown['t'].pop('amount')) == {'t': {'iban': 'a'}}
    assert TRANSFER.edit({'t': {'iban': 'DEFAULT'}}, lambda shown: shown['t'].pop('account')) == {'t': {}}


def copying(data: dict[str, Any]) -> dict[str, Any]:
    return {'bcc': data.get('to'), **data}


class Copying(BaseModel):
    to: str
    bcc: str | None = None
    copies: int = Field(default_factory=lambda: 3)

    @model_validator(mode='before')
    @classmethod
    def _copy(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {'bcc': data['to'], **data}


REFUSED = {
    'a leaf that stays although it was removed': (
        Copying,
        {'to': 'a', 'bcc': 'a'},
        lambda shown: shown.pop('bcc'),
        'the value of bcc would not be removed',
    ),
    'another leaf that changes too': (
        Copying,
        {'to': 'a'},
        lambda shown: shown.update(to='b'),
        'the edit would also change bcc',
    ),
    'a required leaf that is removed': (Copying, {'to': 'a'}, lambda shown: shown.pop('to'), 'KeyError'),
    'a name that the tool does not read': (
        create_model('M', it=(Account, ...)),
        {'it': {'iban': 'a'}},
        lambda shown: shown['it'].update(other='b'),
        'the edit of it.other does not take effect$',
    ),
    'an alias of a value that is shown under its name': (
        create_model('M', it=(Account, ...)),
        {'it': {'iban': 'a'}},
        lambda shown: shown['it'].update(iban='b'),
        'the edit would also change it.account',
    ),
    'another item of a list that changes too': (
        create_model('M', them=(list[Copying], ...)),
        {'them': [{'to': 'a'}, {'to': 'b'}]},
        lambda shown: shown['them'][1].update(to='c'),
        'the edit would also change them.1.bcc',
    ),
    'a key that comes back': (
        create_model('M', it=(Annotated[dict[str, int], BeforeValidator(lambda data: {'a': 1, **data})], ...)),
        {'it': {'b': 2}},
        lambda shown: shown['it'].pop('a'),
        'the value of it.a would not be removed',
    ),
    'a key that appears': (
        create_model(
            'M',
            it=(
                Annotated[dict[str, int], BeforeValidator(lambda data: {'c': 1, **data} if data['b'] > 2 else data)],
                ...,
            ),
        ),
        {'it': {'b': 2}},
        lambda shown: shown['it'].update(b=3),
        'the edit would also set it.c',
    ),
    'text for a number of a set': (
        create_model('M', it=(set[int], ...)),
        {'it': [2, 1]},
        lambda shown: shown['it'].__setitem__(0, 'x'),
        'valid integer',
    ),
    'text for a list that is given as text': (
        create_model('M', it=(Json[list[int]], ...)),
        {'it': '[1, 2]'},
        lambda shown: shown['it'].__setitem__(0, 'x'),
        'valid integer|JSON input',
    ),
    'a value that validation changes': (
        create_model('M', euros=(cents, ...)),
        {'euros': 10},
        lambda shown: shown.update(euros=2000),
        'the edit of euros does not take effect: the tool would get 200000',
    ),
    'a long value that validation changes': (
        create_model('M', text=(Annotated[str, BeforeValidator(lambda text: text + 'x' * 90)], ...)),
        {'text': ''},
        lambda shown: shown.update(text='a'),
        'the tool would get "a' + 'x' * 58 + '...',
    ),
    'a secret that validation changes': (
        create_model('M', pin=(Annotated[SecretStr, BeforeValidator(str.upper)], ...)),
        {'pin': 'abc'},
        lambda shown: shown.update(pin='def'),
        'the edit of pin does not take effect$',
    ),
    'a hidden value in another place': (
        create_model('M', pin=(SecretStr, ...), memo=(str, '')),
        {'pin': 'hunter2'},
        lambda shown: shown.update(memo=HIDDEN),
        'the edit moved a hidden value to another place',
    ),
    'a hidden value that the model did not give': (
        create_model(
            'M',
            it=(
                create_model('N', pin=(SecretStr, SecretStr('a')), n=(int, 1)),
                create_model('N', pin=(SecretStr, SecretStr('a')), n=(int, 1))(),
            ),
        ),
        {},
        lambda shown: shown['it'].update(n=2),
        'the value of it.n cannot be edited',
    ),
    'an item of a list of which only the beginning is read': (
        create_model('M', a=(str, Field('x', validation_alias=AliasPath('data', 5)))),
        {'data': ['y']},
        lambda shown: shown.update(a='b'),
        'the value of a cannot be edited',
    ),
}


@pytest.mark.parametrize(('model', 'given', 'change', 'reason'), REFUSED.values(), ids=REFUSED)
def test_an_edit_without_its_effect_is_refused_with_the_reason(
    model: type[BaseModel], given: dict[str, Any], change: Callable[[Any], Any], reason: str
):
    with pytest.raises(ValueError, match=reason):
        Tool(model).edit(given, change)


def test_a_secret_stays_where_the_approver_left_it():
    class Key(BaseModel):
        name: str
        token: SecretStr

    tool = Tool.of(keys=list[Key], host=(str, 'h'))
    given = {'keys': [{'name': 'a', 'token': 'one'}, {'name': 'b', 'token': 'two'}, {'name': 'c', 'token': 'three'}]}

    assert tool.edit(given, lambda shown: shown.update(host='x')) == {**given, 'host': 'x'}
    assert tool.edit(given, lambda shown: shown['keys'].pop(1)) == {'keys': [given['keys'][0], given['keys'][2]]}
    assert tool.edit(given, lambda shown: shown['keys'][0].update(token='new'))['keys'][0]['token'] == 'new'
    with pytest.raises(ValueError, match='moved a hidden value'):
        tool.edit(given, lambda shown: shown['keys'].append(shown['keys'][0]))


def test_a_field_that_was_not_given_is_put_where_validation_looks_first():
    tool = Tool.of(
        first=(str, Field('x', validation_alias=AliasChoices(AliasPath('data', 0), 'second'))),
        spec=(Account, Account(iban='z')),
    )

    assert tool.edit({}, lambda shown: shown.update(first='new')) == {'data': ['new']}
    assert tool.edit({'data': 'text'}, lambda shown: shown.update(first='new')) == {'data': 'text', 'second': 'new'}
    assert tool.edit({}, lambda shown: shown['spec'].update(amount=2)) == {'spec': {'iban': 'z', 'amount': 2}}
