"""A whole settings file is read, and an error names each mistake in it."""

import copy
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tool_approval.settings import Settings, parse_settings, read_settings

from tests.cases import rows
from tests.tables import table
from tool_approval import ApprovalConfigError, MissingExtraError, PolicyConfig, ToolRule

from .documents import YAML

yaml = pytest.importorskip('yaml')


def mistake_in(text, **options):
    with pytest.raises(ApprovalConfigError) as mistake:
        parse_settings(text, source='approvals.yaml', **options)
    return mistake.value


def test_document_with_every_key_is_read():
    settings = parse_settings(YAML)

    assert settings.mode == 'interactive'
    assert settings.tools['send_notification'] == ToolRule(approval='none')
    assert settings.custom_tools == {'format_output': ToolRule()}
    assert [rule.pattern for rule in settings.shell.rules] == ['git status', 'rm', 'pytest']
    assert settings.shell.timeout_s == 30.5
    assert settings.audit.unasked is False
    assert settings.require_os_sandbox is True
    assert settings.os_sandbox_fallback == 'refuse_tools'
    notes, cache = settings.sandbox.paths['notes'], settings.sandbox.paths['cache']
    assert (notes.mode, notes.suffixes, notes.write_approval, notes.read_approval) == (
        'rw',
        ('.txt', '.md'),
        True,
        False,
    )
    assert (cache.write_approval, cache.read_approval) == (False, False)


def test_settings_survive_being_written_and_read():
    settings = parse_settings(YAML.replace('approval: {write: none, read: none}', 'write_approval: false'))

    assert read_settings(settings.model_dump(mode='json', exclude_defaults=True)) == settings


@pytest.mark.parametrize(
    'text', ['', 'tools:\ncustom_tools:\nauto_grant:\n', 'sandbox:\n', 'shell:\n', 'audit:\n', 'sandbox: {paths: }']
)
def test_sections_that_are_left_out_or_empty_have_defaults(text):
    settings = parse_settings(text)

    assert settings.mode == 'interactive'
    assert settings.policy_config == PolicyConfig()
    assert settings.audit.unasked is True
    assert settings.require_os_sandbox is False
    assert settings.os_sandbox_fallback == 'fail_fast'
    assert not settings.sandbox or settings.sandbox.paths == {}
    assert not settings.shell or (settings.shell.rules, settings.shell.default.approval) == ((), True)


def test_custom_tools_and_tools_are_one_policy():
    policy = parse_settings('{tools: {a: {approval: none}}, custom_tools: {b*: {approval: blocked}}}').policy

    assert policy.rule_for('a').approval == 'none'
    assert policy.rule_for('bc').approval == 'blocked'


@pytest.mark.parametrize(
    ('written', 'mode'), [('strict', 'strict'), ('auto_deny', 'strict'), ('interactive', 'interactive')]
)
def test_older_names_of_modes_are_read(written, mode):
    assert parse_settings(f'mode: {written}').mode == mode


@pytest.mark.parametrize('mode', ['approve_all', 'auto_approve'])
def test_a_file_may_not_approve_everything(mode):
    mistake = mistake_in(f'default: required\nmode: {mode}\n')

    assert str(mistake) == (
        f'approvals.yaml:2: mode: a settings file must not approve everything, so its mode cannot be `{mode}`; use '
        '`interactive` or `strict` here, or choose `approve_all` on the command line or in code'
    )


def test_settings_made_in_code_may_not_approve_everything():
    with pytest.raises(ValidationError, match='a settings file must not approve everything'):
        Settings(mode='approve_all')


@table('why, old, new, key, line, problem', rows(Path(__file__).with_name('mistakes.toml'), 'mistakes'))
def test_a_mistake_is_named_with_file_key_and_line(why, old, new, key, line, problem):
    assert old in YAML

    mistake = mistake_in(YAML.replace(old, new, 1))

    assert (mistake.source, mistake.key, mistake.line) == ('approvals.yaml', key or None, line)
    assert problem in mistake.problem


@pytest.mark.parametrize(('written', 'seconds'), [('30', 30), ('0.5', 0.5), ('120.0', 120), ('86400', 86_400)])
def test_plain_decimal_numbers_are_read(written, seconds):
    assert parse_settings(f'shell: {{timeout_s: {written}}}').shell.timeout_s == seconds


@pytest.mark.parametrize('number', ['-1', '-0', '0', '-1.5'])
def test_numbers_below_the_limit_are_read_and_refused(number):
    assert 'greater than 0' in mistake_in(f'shell: {{timeout_s: {number}}}').problem


@pytest.mark.parametrize(
    'document',
    [
        {'tools': 5},
        {'tools': {'a': {}}, 'custom_tools': 5},
        {'sandbox': 5},
        {'sandbox': {'paths': 5}},
        {'sandbox': {'paths': {5: {'root': 'a'}}}},
        {'shell': []},
        {'shell': {'rules': {}}},
        {'shell': {'rules': [5]}},
        {5: 5},
        {'sandbox': {'paths': {'a': {'root': 'b', 'approval': 'required'}}}},
    ],
)
def test_document_of_the_wrong_shape_is_an_error(document):
    with pytest.raises(ApprovalConfigError):
        read_settings(document)


FULL = yaml.safe_load(YAML)
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


BELOW = list(paths_in(FULL))[1:]
KEYS = sorted(
    {key for path in paths_in(FULL) for key in path if isinstance(key, str)} | {'read', 'colour', 'not_match'}
)


def is_read_or_a_mistake(document):
    try:
        return isinstance(read_settings(document), Settings)
    except ApprovalConfigError as error:
        return error.problem != ''


def test_every_part_may_be_replaced_by_anything_without_a_crash():
    documents = [changed(FULL, path, value) for path in BELOW for value in STRANGE]
    documents += [
        changed(FULL, path, value, added=key) for path in paths_in(FULL) for key in KEYS for value in (True, 'a', None)
    ]

    assert all(map(is_read_or_a_mistake, documents))


TEXTS = st.one_of(st.sampled_from([each for each in STRANGE if isinstance(each, str)]), st.text(max_size=5))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.sampled_from(KEYS), TEXTS), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(BELOW), VALUES), min_size=1, max_size=3))
def test_any_document_is_read_or_refused(changes):
    document = FULL
    for path, value in changes:
        try:
            document = changed(document, path, value)
        except (KeyError, IndexError, TypeError):  # an earlier change took it away
            continue

    assert is_read_or_a_mistake(document)


@pytest.mark.parametrize('name', ['tools', 'custom_tools'])
def test_a_name_in_both_sections_is_an_error_in_code_too(name):
    assert Settings(**{name: {'a': ToolRule()}})

    with pytest.raises(ValidationError, match='is in `tools` and in `custom_tools`'):
        Settings(tools={'a': ToolRule()}, custom_tools={'a': ToolRule()})


def test_error_without_pyyaml_names_the_package_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, 'tool_approval.core.config_yaml', raising=False)
    monkeypatch.setitem(sys.modules, 'yaml', None)

    with pytest.raises(MissingExtraError, match=r'tool_approval\[yaml\]'):
        parse_settings(YAML)


def test_exponential_yaml_aliases_are_refused_at_once():
    lines = ['a0: &a0 [x]', *(f'a{at}: &a{at} [{", ".join([f"*a{at - 1}"] * 10)}]' for at in range(1, 30))]
    start = time.perf_counter()

    mistake = mistake_in('\n'.join(lines))

    assert 'anchors, aliases and tags' in mistake.problem
    assert time.perf_counter() - start < 5
