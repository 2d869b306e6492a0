"""The records that `explain` works with are what the models would be, or there are none."""

import copy
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.settings import DEFAULT_SANDBOX, PathSettings, SandboxSettings, Settings, plain, read_settings
from tool_approval.settings.documents import parse_text
from tool_approval.tools.shell import ShellConfig, ShellDefault, ShellRule

from tool_approval import ApprovalConfigError, ToolRule

from .documents import TOML

FULL = parse_text(TOML, source=None, format='toml')[0]
STRANGE = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2.5,
    10**9,
    float('nan'),
    float('inf'),
    '',
    ' ',
    'a',
    'a*',
    'no',
    'none',
    'required',
    'blocked',
    'strict',
    'approve_all',
    '.x',
    '~/x',
    'a\0b',
    'a\tb',
    'a\x7f',
    '\ud800',
    '\u202e',
    'ä b',
    [],
    ['a'],
    ['.a/b'],
    [1],
    {},
    {'a': None},
    {'a': {}},
    {'a': 1},
    {'': {'root': 'a'}},
    {'a b': {'root': '.'}},
    {'a': {'root': 'a', 'approval': {'write': 'none'}, 'write_approval': False}},
    {1: {}},
    ('a',),
    object(),
]


def as_model_or_mistake(document):
    try:
        return read_settings(document)
    except ApprovalConfigError:
        return None


def assert_same(record, model):
    """Every field of a record is that of the model, at every depth."""
    match record:
        case dict():
            assert list(record) == list(model)
            for key in record:
                assert_same(record[key], model[key])
        case tuple() | list():
            assert type(record) is type(model)
            for one, other in zip(record, model, strict=True):
                assert_same(one, other)
        case _ if is_dataclass(record):
            for each in fields(record):
                assert_same(getattr(record, each.name), getattr(model, each.name))
        case _:
            assert (type(record), record) == (type(model), model)


def paths_in(document, above=()):
    """Where there is something, from the top down."""
    yield above
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from paths_in(value, (*above, key))


def changed(document, path, value, *, added=None):
    """A copy with another value at a path, or with one more key there."""
    whole = {'top': copy.deepcopy(document)}
    here, path = whole, ('top', *path)
    for key in path[:-1]:
        here = here[key]
    if added is None:
        here[path[-1]] = value
    elif isinstance(here[path[-1]], dict):
        here[path[-1]][added] = value
    return whole['top']


KEYS = sorted(
    {key for path in paths_in(FULL) for key in path if isinstance(key, str)} | {'read', 'colour', 'not_match'}
)


def test_the_whole_of_the_documented_shape_is_read_the_same():
    record = plain.plain_settings(FULL)

    assert record is not None
    assert_same(record, read_settings(FULL))


@pytest.mark.parametrize(
    'document',
    [
        {},
        {'tools': None, 'custom_tools': None, 'auto_grant': None, 'sandbox': None, 'shell': None},
        {'mode': 'auto_deny', 'default': None},
        {'sandbox': {'paths': None}},
        {'sandbox': {'paths': {'a': {'root': '', 'approval': {}}}}},
        {'sandbox': {'paths': {'a': {'root': '/x/../y', 'suffixes': None}}}},
        {'shell': {'timeout_s': 1, 'rules': []}},
        {'shell': {'rules': [{'pattern': 'a  b', 'description': None}]}},
        {'shell': {'default': {'approval': 'blocked'}, 'rules': [{'pattern': 'a', 'approval': 'none'}]}},
        {'shell': {'default': {'approval': 'required'}, 'rules': [{'pattern': 'a', 'approval': 'blocked'}]}},
        {'sandbox': {'paths': {'a': {'root': 'a', 'approval': {'write': 'blocked', 'read': 'blocked'}}}}},
        {
            'sandbox': {
                'paths': {'a': {'root': 'a', 'mode': 'rw', 'write_approval': 'blocked', 'read_approval': 'none'}}
            }
        },
        {'sandbox': {'paths': {'a': {'root': 'a', 'write_approval': 'none', 'read_approval': 'required'}}}},
    ],
)
def test_what_is_left_out_is_the_same(document):
    record = plain.plain_settings(document)

    assert record is not None
    assert_same(record, read_settings(document))


def test_every_part_may_be_replaced_by_anything_without_a_difference():
    documents = [changed(FULL, path, value) for path in paths_in(FULL) for value in STRANGE]
    documents += [
        changed(FULL, path, value, added=key) for path in paths_in(FULL) for key in KEYS for value in (True, 'a', None)
    ]

    certain = [(record, document) for document in documents if (record := plain.plain_settings(document)) is not None]

    assert len(certain) > 100
    for record, document in certain:
        assert_same(record, as_model_or_mistake(document))


TEXTS = st.one_of(st.sampled_from([each for each in STRANGE if isinstance(each, str)]), st.text(max_size=5))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.sampled_from(KEYS), TEXTS), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(paths_in(FULL))), VALUES), min_size=1, max_size=3))
def test_what_is_read_at_all_is_what_the_models_read(changes):
    document = FULL
    for path, value in changes:
        try:
            document = changed(document, path, value)
        except (KeyError, IndexError, TypeError):  # an earlier change took it away
            continue

    record = plain.plain_settings(document)

    if record is not None:
        assert_same(record, as_model_or_mistake(document))


def test_nothing_is_certain_of_a_tool_that_stands_in_both_sections():
    assert plain.plain_settings({'tools': {'a': {}}, 'custom_tools': {'a': {}}}) is None


@pytest.mark.parametrize(
    ('record', 'model', 'taken_over'),
    [
        (plain._ToolRule, ToolRule, set()),
        (plain._Path, PathSettings, {'approval'}),
        (plain._Sandbox, SandboxSettings, set()),
        (plain._ShellDefault, ShellDefault, set()),
        (plain._ShellRule, ShellRule, set()),
        (plain._Shell, ShellConfig, set()),
        (plain._Settings, Settings, set()),
    ],
)
def test_no_field_of_a_model_is_forgotten(record, model, taken_over):
    assert {each.name for each in fields(record)} | taken_over == set(model.model_fields)


def test_the_defaults_are_those_of_the_models():
    assert_same(plain.DEFAULT_SANDBOX, DEFAULT_SANDBOX)
    assert_same(plain.DEFAULT_SHELL, ShellConfig())
    assert DEFAULT_SANDBOX.paths['workspace'].root == Path()
