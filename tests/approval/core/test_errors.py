"""Errors make their sentence from facts, keep the facts, and survive copying."""

import copy
import json
import pickle
import tomllib
from pathlib import Path

import pytest
from tool_approval.core.errors import without_text

from tool_approval import (
    ApprovalBlocked,
    ApprovalConfigError,
    ApprovalDenied,
    ApprovalError,
    ApprovalRefused,
    AuditError,
    MissingExtraError,
    NotCanonicalError,
    StoreError,
)

EVERY_ERROR = [
    (
        ApprovalConfigError('unknown key', key='tools.rm', source='policy.yaml', line=3),
        'policy.yaml:3: tools.rm: unknown key',
        {'problem': 'unknown key', 'key': 'tools.rm', 'source': 'policy.yaml', 'line': 3},
    ),
    (
        NotCanonicalError('a key is of type int, not str'),
        'no canonical JSON: a key is of type int, not str',
        {'problem': 'a key is of type int, not str'},
    ),
    (
        StoreError('approvals.json', 'it is no JSON'),
        "remembered approvals in 'approvals.json': it is no JSON",
        {'path': 'approvals.json', 'problem': 'it is no JSON'},
    ),
    (
        AuditError('audit.jsonl', 'the disk is full'),
        "audit log 'audit.jsonl': the disk is full",
        {'path': 'audit.jsonl', 'problem': 'the disk is full'},
    ),
    (
        MissingExtraError('yaml', extra='yaml'),
        "'yaml' is not installed; in a checkout of tool-approval, run: pip install './tool_approval[yaml]'",
        {'library': 'yaml', 'extra': 'yaml'},
    ),
    (
        ApprovalBlocked('rm', 'never'),
        "Blocked 'rm': never",
        {'tool_name': 'rm', 'reason': 'never'},
    ),
    (
        ApprovalDenied('rm', 'not today'),
        "Denied 'rm': not today",
        {'tool_name': 'rm', 'reason': 'not today'},
    ),
    (
        ApprovalRefused('rm', 'somehow'),
        "Refused 'rm': somehow",
        {'tool_name': 'rm', 'reason': 'somehow'},
    ),
]
each_error = pytest.mark.parametrize(
    ('error', 'sentence', 'facts'), EVERY_ERROR, ids=lambda value: type(value).__name__
)


@each_error
def test_an_error_has_a_sentence_and_its_facts(error, sentence, facts):
    assert str(error) == sentence
    assert vars(error) == facts
    assert isinstance(error, ApprovalError)


@each_error
@pytest.mark.parametrize('duplicate', [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_survives_copying_and_pickling(error, sentence, facts, duplicate):
    twin = duplicate(error)

    assert twin is not error
    assert type(twin) is type(error)
    assert str(twin) == sentence
    assert vars(twin) == facts


@pytest.mark.parametrize(
    ('kind', 'builtin'),
    [
        (ApprovalConfigError, ValueError),
        (NotCanonicalError, ValueError),
        (MissingExtraError, ImportError),
        (ApprovalBlocked, PermissionError),
        (ApprovalDenied, PermissionError),
    ],
)
def test_errors_can_be_caught_as_builtin_errors(kind, builtin):
    assert issubclass(kind, builtin)


def test_refusal_has_no_errno():
    refused = ApprovalDenied('rm', 'not today')

    assert refused.errno is None


@pytest.mark.parametrize(
    ('where', 'sentence'),
    [
        ({}, 'wrong'),
        ({'key': 'a.b'}, 'a.b: wrong'),
        ({'source': 'f'}, 'f: wrong'),
        ({'line': 2}, '2: wrong'),
        ({'source': 'f', 'line': 2}, 'f:2: wrong'),
    ],
)
def test_mistake_in_a_configuration_names_the_known_parts_of_its_place(where, sentence):
    assert str(ApprovalConfigError('wrong', **where)) == sentence


def test_missing_extra_names_the_handler_if_the_extra_needs_it():
    project = tomllib.loads((Path(__file__).parents[3] / 'tool_approval' / 'pyproject.toml').read_text())['project']
    needs = {name: ' '.join(each) for name, each in project['optional-dependencies'].items()}
    with_handler = {name for name, each in needs.items() if 'pydantic-ai-deferred-handler' in each}
    with_handler |= {name for name, each in needs.items() if 'tool-approval[' in each and 'pydantic-ai' in each}

    found = {name for name in needs if './pydantic_ai_slim' in str(MissingExtraError('library', extra=name))}

    assert found == with_handler == {'pydantic-ai', 'cli', 'durable', 'all'}


def made_by(function):
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def test_log_names_the_type_and_the_last_line_of_an_error_and_not_its_text():
    def fails():
        return {}['hunter2']

    line = fails.__code__.co_firstlineno + 1
    assert without_text(made_by(fails)) == f'KeyError at {__file__}:{line}'


def test_log_names_the_last_line_outside_of_the_standard_library():
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads('{')

    assert without_text(raised.value) == f'JSONDecodeError at {__file__}:{raised.traceback[0].lineno + 1}'


def test_log_names_the_type_alone_of_an_error_that_was_never_raised():
    assert without_text(KeyError('hunter2')) == 'KeyError'


def test_name_of_a_file_cannot_begin_a_line_of_the_log():
    error = made_by(lambda: exec(compile('1 / 0', 'a\nb.py', 'exec')))  # noqa: S102 - our own text

    assert without_text(error) == 'ZeroDivisionError at a\\nb.py:1'
