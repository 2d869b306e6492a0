"""Each value has one JSON form, by which two calls are the same or differ."""

import json
import math
from collections import OrderedDict
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tool_approval.core.canonical import copied, decode_arguments

from tests.tables import table
from tool_approval import NotCanonicalError, canonical_json, digest, fingerprint

KEY = b'k' * 32

text = st.text(st.characters(exclude_categories=['Cs']), max_size=8)
numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
# Few different leaves, so that two values are often nearly the same.
near = st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, 0.0, -1, '', '1', '1.0', 'true', 'null', 'a', 'A'])
leaves = near | st.none() | st.booleans() | numbers | text
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('ab1') | text, inner, max_size=3),
    max_leaves=6,
)
payloads = st.dictionaries(st.sampled_from('ab1') | text, values, max_size=3)
near_payloads = st.dictionaries(st.sampled_from('ab'), near | st.lists(near, max_size=2), max_size=2)


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; written without the module under test."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and one == other


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def in_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_tuples(item) for key, item in value.items()}
    return tuple(map(in_tuples, value)) if isinstance(value, list) else value


@settings(deadline=None)
@given(values, values)
@example({'a': 1}, {'a': 1.0})
@example({'a': 1}, {'a': True})
@example([1, '1'], ['1', 1])
@example({'a': [None]}, {'a': []})
@example(0.0, -0.0)
@example(0, -0.0)
@example({'a': None}, {})
def test_two_values_have_one_form_exactly_when_they_are_the_same(one, other):
    assert (canonical_json(one) == canonical_json(other)) == is_same(one, other)


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(st.sampled_from(['a', 'b', 'A']), st.sampled_from(['exact', 'directory']), near_payloads),
    st.tuples(st.sampled_from(['a', 'b', 'A']), st.sampled_from(['exact', 'directory']), near_payloads),
)
def test_fingerprints_are_equal_exactly_when_tool_option_and_payload_are(one, other):
    is_equal = one[:2] == other[:2] and is_same(one[2], other[2])

    assert (fingerprint(*one, key=KEY) == fingerprint(*other, key=KEY)) == is_equal


@settings(deadline=None)
@given(values)
def test_order_of_keys_never_matters(value):
    assert canonical_json(shuffled(value)) == canonical_json(value)


@settings(deadline=None)
@given(values)
def test_tuples_are_lists(value):
    assert canonical_json(in_tuples(value)) == canonical_json(value)


@settings(deadline=None)
@given(payloads)
def test_decoding_canonical_text_and_writing_it_again_changes_nothing(payload):
    written = canonical_json(payload)

    assert canonical_json(decode_arguments(written)) == written
    assert is_same(decode_arguments(written), payload)


@settings(deadline=None)
@given(payloads, st.sampled_from(['directory', 'program', 'exact ', 'Exact', 'exact","']))
def test_wide_option_never_matches_an_exact_payload(payload, kind):
    exact = {fingerprint(tool, 'exact', payload, key=KEY) for tool in ('write', f'write","{kind}', kind)}

    assert fingerprint('write', kind, payload, key=KEY) not in exact


@settings(deadline=None)
@given(values)
def test_a_copy_is_the_same(value):
    assert is_same(copied(in_tuples(value)), value)


def test_a_copy_shares_nothing_that_can_be_changed():
    value = {'a': [{'b': [1]}], 'c': MappingProxyType({'d': ({'e': 1},)})}

    copy = copied(value)
    copy['a'][0]['b'].append(2)
    copy['c']['d'][0]['e'] = 2

    assert value == {'a': [{'b': [1]}], 'c': {'d': ({'e': 1},)}}


def test_numbers_booleans_and_texts_that_look_alike_all_differ():
    alike = [1, 1.0, True, '1', '1.0', 'true', [1], {'1': 1}, 0, 0.0, -0.0, False, None, '', 'null', [], {}]

    forms = {canonical_json(value) for value in alike}

    assert len(forms) == len(alike)


def test_finer_payload_distinguishes_more_calls():
    coarse = [fingerprint('write', 'exact', {'path': 'a'}, key=KEY) for _ in ('old', 'new')]
    fine = [fingerprint('write', 'exact', {'path': 'a', 'content': content}, key=KEY) for content in ('old', 'new')]

    assert len({*coarse}) == 1
    assert len({*coarse, *fine}) == 3


def test_canonical_form_is_as_documented():
    value = {'b': [1, 1.0, 1e22, -0.0], 'a': 'ä\n"\u2028', '\U0001f600': None, '\uffff': True}

    form = canonical_json(value)

    assert form == '{"a":"ä\\n\\"\u2028","b":[1,1.0,1e+22,-0.0],"\uffff":true,"\U0001f600":null}'


class Colour(StrEnum):
    RED = 'red'


@pytest.mark.parametrize(
    ('value', 'plain'),
    [
        (MappingProxyType({'a': MappingProxyType({'b': 1})}), {'a': {'b': 1}}),
        (OrderedDict(b=1, a=2), {'a': 2, 'b': 1}),
        (Colour.RED, 'red'),
        ({Colour.RED: 1}, {'red': 1}),
        (10**4000, 10**4000),
    ],
    ids=['proxy', 'ordered', 'enum', 'enum as key', 'long integer'],
)
def test_equivalent_types_have_the_same_form(value, plain):
    assert canonical_json(value) == canonical_json(plain)


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


circular: dict[str, Any] = {}
circular['self'] = [circular]

REFUSED = {
    'nan': math.nan,
    'infinity': math.inf,
    'negative infinity': -math.inf,
    'lone surrogate': '\ud800',
    'set': {1},
    'frozenset': frozenset(),
    'bytes': b'a',
    'decimal': Decimal(1),
    'object': object(),
    'complex': 1j,
    'generator': (x for x in ()),
    'huge integer': 10**5000,
    'integer key': {1: 'a'},
    'boolean key': {True: 'a'},
    'none key': {None: 'a'},
    'tuple key': {('a',): 'a'},
    'surrogate key': {'\udfff': 1},
    'integer key in a proxy': MappingProxyType({1: 'a'}),
    'circular': circular,
    'very deep': nested(100_000),
}


@table('value', REFUSED.values())
@table('wrap', [lambda value: value, lambda value: {'a': [value]}])
def test_value_without_a_single_form_is_refused(value, wrap):
    with pytest.raises(NotCanonicalError):
        canonical_json(wrap(value))


@table('value', REFUSED.values())
def test_value_without_a_single_form_has_no_fingerprint_and_no_digest(value):
    with pytest.raises(NotCanonicalError):
        fingerprint('a', 'exact', {'value': value}, key=KEY)
    with pytest.raises(NotCanonicalError):
        digest('a', {}, {'value': value}, key=KEY)


@pytest.mark.parametrize(
    'value',
    ['hunter2\ud800', {'hunter2': {'x': object()}}, {('hunter2',): 1}, [b'hunter2']],
    ids=['surrogate', 'object', 'key', 'bytes'],
)
def test_a_refusal_never_quotes_the_value(value):
    with pytest.raises(NotCanonicalError) as refused:
        canonical_json(value)

    assert 'hunter2' not in str(refused.value)


@pytest.mark.parametrize(
    ('arguments', 'decoded'),
    [
        ('{"path": "a", "force": true}', {'path': 'a', 'force': True}),
        ({'path': 'a'}, {'path': 'a'}),
        (MappingProxyType({'path': 'a'}), {'path': 'a'}),
        (None, {}),
        ('', {}),
        (' \n', {}),
        ('{}', {}),
    ],
)
def test_arguments_become_a_mapping_in_every_form_of_the_host(arguments, decoded):
    assert decode_arguments(arguments) == decoded


def test_decoding_a_mapping_copies_the_mapping():
    given_by_host = {'path': 'a'}

    decoded = decode_arguments(given_by_host)
    decoded['path'] = 'b'

    assert given_by_host == {'path': 'a'}


@table(
    ('arguments', 'problem'),
    [
        ('{"path": ', 'not JSON'),
        ('{"a": 1} {"a": 2}', 'not JSON'),
        ("{'a': 1}", 'not JSON'),
        ('{"a": "\n"}', 'not JSON'),
        ('\ufeff{}', 'not JSON'),
        ('{"a": ' + '9' * 5000 + '}', 'not JSON'),
        ('[]', 'not a JSON object'),
        ('"text"', 'not a JSON object'),
        ('null', 'not a JSON object'),
        ('{"a": 1, "a": 2}', 'duplicate key'),
        ('{"a": {"b": 1, "b": 1}}', 'duplicate key'),
        ('{"a": 1, "\\u0061": 2}', 'duplicate key'),
        ('{"a": NaN}', 'NaN'),
        ('{"a": -Infinity}', '-Infinity'),
        ('{"a": 1e400}', 'too large'),
        ('{"a": -1e400}', 'too large'),
        ('{"a": ' + '[' * 100_000, 'too deeply'),
    ],
)
def test_unreadable_arguments_are_refused(arguments, problem):
    with pytest.raises(NotCanonicalError, match=problem):
        decode_arguments(arguments)


@settings(deadline=None)
@given(st.text(max_size=30) | st.text('{}[]",:\\ue+-0123456789tfn ', max_size=30))
def test_any_text_of_a_model_is_decoded_or_refused(arguments):
    try:
        decoded = decode_arguments(arguments)
    except NotCanonicalError:
        return

    assert isinstance(decoded, dict)
    assert not arguments.strip() or json.loads(arguments) == decoded


def test_fingerprint_differs_from_the_digest_and_depends_on_the_key():
    hashes = [
        fingerprint('a', 'exact', {}, key=KEY),
        fingerprint('a', 'exact', {}, key=b'l' * 32),
        digest('a', {}, {}, key=KEY),
        digest('a', {}, {}, key=b'l' * 32),
        digest('a', {'b': 1}, {}, key=KEY),
        digest('a', {}, {'b': 1}, key=KEY),
    ]

    assert len(set(hashes)) == len(hashes)
    assert all(len(bytes.fromhex(each)) == 32 for each in hashes)


def test_key_of_any_length_counts_whole():
    keys = [b'x', b'x' * 64, b'x' * 65, b'x' * 65 + b'y', b'x' * 10_000]

    hashes = {fingerprint('a', 'exact', {}, key=key) for key in keys}

    assert len(hashes) == len(keys)


def test_an_empty_key_is_refused():
    with pytest.raises(ValueError, match='must not be empty'):
        digest('a', {}, {}, key=b'')
