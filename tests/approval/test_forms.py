"""A form shows flat arguments exactly, and reads back only values of their kinds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.answering import UnreadableArguments
from tool_approval.forms import LONGEST_TEXT, MOST_CHOICES, MOST_FIELDS, form_of, read_form

from tool_approval import ApprovalRequest

TEXT, NUMBER, NULL = {'type': 'string'}, {'type': 'number'}, {'type': 'null'}


def asked(value: Any, declared: Any, **schema: Any) -> ApprovalRequest:
    return ApprovalRequest(tool_name='t', args={'a': value}, args_schema={'properties': {'a': declared}, **schema})


def entered(request: ApprovalRequest, text: str | None) -> Any:
    fields = form_of(request)
    assert fields is not None
    return read_form(fields, {'a': text})['a']


@pytest.mark.parametrize(
    ('value', 'declared', 'text', 'other', 'read'),
    [
        ('x', TEXT, 'x', ' null ', ' null '),
        ('', TEXT, '', 'a\nb', 'a\nb'),
        (3, {'type': 'integer'}, '3', ' -12 ', -12),
        (1.5, NUMBER, '1.5', '2', 2),
        (1, NUMBER, '1', '1e3', 1000.0),
        (True, {'type': 'boolean'}, 'true', 'false', False),
        ('s', {'enum': ['s', 2, True]}, '"s"', '2', 2),
        (7, {'const': 7}, '7', '7', 7),
        (None, {'anyOf': [TEXT, NULL]}, '', 'x', 'x'),
        (3, {'anyOf': [{'type': 'integer'}, NULL]}, '3', '', None),
        ('s', {'anyOf': [{'enum': ['s']}, NULL]}, '"s"', '', None),
        ('s', {'$ref': '#/$defs/Kind'}, '"s"', '"t"', 't'),
    ],
)
def test_flat_arguments_have_fields(value: Any, declared: Any, text: str, other: str, read: Any):
    request = asked(value, declared, **{'$defs': {'Kind': {'enum': ['s', 't']}}})

    [field] = form_of(request) or ()

    assert field.text == text
    assert entered(request, other) == read
    assert type(entered(request, other)) is type(read)


@pytest.mark.parametrize(
    ('value', 'declared'),
    [
        ([1], {'type': 'array'}),
        ({'b': 1}, {'type': 'object'}),
        ('x', {'anyOf': [TEXT, NUMBER]}),
        ('x', {'anyOf': [NULL]}),
        ('x', {}),
        ('x', None),
        ('x', {'$ref': '#/$defs/Missing'}),
        ('x', {'$ref': '#/other'}),
        ('x', {'enum': []}),
        ('x', {'enum': ['y']}),
        ('x', {'enum': ['x', None]}),
        (0, {'enum': list(range(MOST_CHOICES + 1))}),
        (1, TEXT),
        ('1', {'type': 'integer'}),
        (True, {'type': 'integer'}),
        (1.0, {'type': 'integer'}),
        (None, TEXT),
        ('', {'anyOf': [TEXT, NULL]}),
        ('a\tb', TEXT),
        ('a\r\nb', TEXT),
        ('\u202e', TEXT),
        ('x' * (LONGEST_TEXT + 1), TEXT),
    ],
)
def test_what_a_form_cannot_show_exactly_is_edited_as_json(value: Any, declared: Any):
    assert form_of(asked(value, declared)) is None


def test_a_form_needs_a_schema_and_few_arguments():
    many = {str(number): number for number in range(MOST_FIELDS + 1)}
    properties = {name: {'type': 'integer'} for name in many}

    assert form_of(ApprovalRequest(tool_name='t', args={'a': 1})) is None
    assert form_of(ApprovalRequest(tool_name='t', args={'a': 1}, args_schema={'properties': []})) is None
    assert form_of(ApprovalRequest(tool_name='t', args={}, args_schema={'properties': {}})) is None
    assert form_of(ApprovalRequest(tool_name='t', args=many, args_schema={'properties': properties})) is None


def test_arguments_that_the_tool_hides_have_no_field():
    request = ApprovalRequest(
        tool_name='t',
        args={'a': 'x', 'key': 's'},
        payload={'a': 'x'},
        args_schema={'properties': {'a': TEXT, 'key': TEXT}},
    )

    assert [field.name for field in form_of(request) or ()] == ['a']


@pytest.mark.parametrize(
    'text', [None, '', 'null', 'x', '"1"', '1, "b": 2', '1}', '{', 'NaN', '1.5', 'true', '1' * 5000]
)
def test_other_texts_are_refused_with_the_name_of_the_field(text: str | None):
    with pytest.raises(UnreadableArguments, match=r'^`a` is '):
        entered(asked(1, {'type': 'integer'}), text)


def test_the_name_in_a_refusal_is_escaped():
    request = ApprovalRequest(
        tool_name='t', args={'a\x1b[2J': 1}, args_schema={'properties': {'a\x1b[2J': {'type': 'integer'}}}
    )

    with pytest.raises(UnreadableArguments, match=r'^`a<U\+001B>\[2J` is missing$'):
        read_form(form_of(request) or (), {})


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.one_of(
            st.text(max_size=20).map(lambda text: (text, TEXT)),
            st.integers(-(10**20), 10**20).map(lambda number: (number, {'type': 'integer'})),
            st.floats(allow_nan=False, allow_infinity=False).map(lambda number: (number, NUMBER)),
            st.booleans().map(lambda value: (value, {'type': 'boolean'})),
            st.none().map(lambda value: (value, {'anyOf': [{'type': 'integer'}, NULL]})),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_form_that_is_sent_as_it_was_shown_changes_nothing(given: Any):
    args = {name: value for name, (value, _) in given.items()}
    schema = {'properties': {name: declared for name, (_, declared) in given.items()}}

    fields = form_of(ApprovalRequest(tool_name='t', args=args, args_schema=schema))

    if fields is not None:
        again = read_form(fields, {each.name: None if each.value is None else each.text for each in fields})
        assert json.dumps(again) == json.dumps(args)
