"""The form of RFC 8785, which other programs compute too."""

import hashlib
import json
import math
import struct
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.core.jcs import LARGEST_INTEGER, public_digest, public_json

from tests.tables import table
from tool_approval import NotCanonicalError


# RFC 8785, appendix B: the bits of a number, and its text.
@table(
    ('bits', 'text'),
    [
        ('0000000000000000', '0'),
        ('8000000000000000', '0'),
        ('0000000000000001', '5e-324'),
        ('8000000000000001', '-5e-324'),
        ('7fefffffffffffff', '1.7976931348623157e+308'),
        ('ffefffffffffffff', '-1.7976931348623157e+308'),
        ('4340000000000000', '9007199254740992'),
        ('c340000000000000', '-9007199254740992'),
        ('4430000000000000', '295147905179352830000'),
        ('44b52d02c7e14af5', '9.999999999999997e+22'),
        ('44b52d02c7e14af6', '1e+23'),
        ('44b52d02c7e14af7', '1.0000000000000001e+23'),
        ('444b1ae4d6e2ef4e', '999999999999999700000'),
        ('444b1ae4d6e2ef4f', '999999999999999900000'),
        ('444b1ae4d6e2ef50', '1e+21'),
        ('3eb0c6f7a0b5ed8c', '9.999999999999997e-7'),
        ('3eb0c6f7a0b5ed8d', '0.000001'),
        ('41b3de4355555553', '333333333.3333332'),
        ('41b3de4355555557', '333333333.33333343'),
        ('becbf647612f3696', '-0.0000033333333333333333'),
        ('43143ff3c1cb0959', '1424953923781206.2'),
    ],
)
def test_numbers_are_written_as_the_specification_lists_them(bits, text):
    [number] = struct.unpack('>d', bytes.fromhex(bits))

    assert public_json(number) == text


def test_keys_are_sorted_by_utf16_code_units_as_in_the_specification():
    # RFC 8785, section 3.2.3.
    value = {
        '\u20ac': 'Euro Sign', '\r': 'Carriage Return', '\ufb33': 'Hebrew Letter Dalet With Dagesh', '1': 'One',
        '\U0001f600': 'Emoji: Grinning Face', '\x80': 'Control', '\xf6': 'Latin Small Letter O With Diaeresis',
    }  # fmt: skip

    assert list(json.loads(public_json(value))) == ['\r', '1', '\x80', '\xf6', '\u20ac', '\U0001f600', '\ufb33']


def test_the_example_of_the_specification_has_its_form():
    # RFC 8785, section 3.2.2.
    value = {
        'numbers': [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        'string': '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
        'literals': [None, True, False],
    }

    assert public_json(value) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@table(
    ('value', 'problem'),
    [
        ([LARGEST_INTEGER + 1], 'an integer is larger than 2^53 - 1'),
        ([-LARGEST_INTEGER - 1], 'an integer is larger than 2^53 - 1'),
        ([1, 1.0], 'two different numbers have the same form in RFC 8785'),
        ({'a': 0, 'b': [-0.0]}, 'two different numbers have the same form in RFC 8785'),
        ([math.nan], 'a number is not finite'),
        ([-math.inf], 'a number is not finite'),
        (['\ud800'], 'a text contains a lone surrogate'),
        ({'\ud800': 1}, 'a text contains a lone surrogate'),
        ({1: 2}, 'a key is of type int, not str'),
        ([b'x'], 'a value cannot be represented in JSON'),
    ],
)
def test_what_other_programs_cannot_read_exactly_has_no_form(value, problem):
    with pytest.raises(NotCanonicalError) as caught:
        public_json(value)

    assert caught.value.problem == problem


def test_a_value_that_contains_itself_has_no_form():
    value: list[object] = []
    value.append(value)

    with pytest.raises(NotCanonicalError):
        public_json(value)


def test_numbers_at_the_limit_have_a_form():
    assert public_json([LARGEST_INTEGER, -LARGEST_INTEGER, 1.0, True]) == f'[{2**53 - 1},-{2**53 - 1},1,true]'


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(st.characters(exclude_categories=['Cs'])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=['Cs'])), inner),
    max_leaves=20,
)


@given(JSON)
def test_the_form_is_the_same_json_value_and_its_own_form(value):
    text = public_json(value)

    assert json.loads(text) == value
    assert public_json(json.loads(text)) == text


def _unusual(value):
    if isinstance(value, dict):
        return MappingProxyType({key: _unusual(item) for key, item in value.items()})
    return tuple(map(_unusual, value)) if isinstance(value, list) else value


@given(JSON)
def test_values_that_pythons_encoder_writes_have_the_same_form_as_others(value):
    # Mappings and tuples are written by the code that also writes floats.
    assert public_json(value) == public_json(_unusual(value))


def test_the_digest_is_over_tool_and_payload():
    text = '{"payload":{"a":1},"tool_name":"pay"}'

    assert public_digest('pay', {'a': 1}) == (hashlib.sha256(text.encode()).hexdigest(), None)
    assert public_digest('pay', {'a': 2**53}) == (None, 'an integer is larger than 2^53 - 1')
