"""Configurations are read and checked; an error names the key and the valid values."""

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from tool_approval.core.config import read_config
from tool_approval.core.errors import dotted

from tests.cases import rows
from tests.tables import table
from tool_approval import ApprovalConfigError, ApprovalPolicy, MissingExtraError, PolicyConfig, ToolRule


def mistake_in(document, **where):
    with pytest.raises(ApprovalConfigError) as mistake:
        read_config(document, **where)
    return mistake.value


def test_empty_configuration_has_only_defaults():
    assert read_config({}) == PolicyConfig(default=None, tools={}, auto_grant={})


@pytest.mark.parametrize('document', [{'tools': None}, {'auto_grant': None}, {'tools': {}, 'auto_grant': None}])
def test_empty_section_configures_nothing(document):
    assert read_config(document) == PolicyConfig()


@pytest.mark.parametrize('approval', ['required', 'none', 'blocked', None])
def test_approval_of_a_tool_has_one_of_three_values_or_none(approval):
    config = read_config({'tools': {'write': {'approval': approval, 'description': 'Write'}, 'read': None, 'list': {}}})

    assert config.tools == {
        'write': ToolRule(approval=approval, description='Write'),
        'read': ToolRule(),
        'list': ToolRule(),
    }


def test_a_configuration_survives_being_written_and_read():
    config = read_config({'default': 'none', 'tools': {'rm*': {'approval': 'blocked'}}, 'auto_grant': {'vm': ['net']}})

    assert read_config(config.model_dump()) == config


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValidationError):
        PolicyConfig().default = 'none'


@table(
    ('why', 'document', 'key', 'problem'),
    [
        *rows(Path(__file__).with_name('invalid_config.toml'), 'mistakes'),
        ('no such TOML', {'tools': {1: {}}}, 'tools.1', 'the value must be a string; quote it'),
        (
            'no such TOML',
            {'auto_grant': {'vm': ['net', None]}},
            'auto_grant.vm.1',
            'the value must be a string; quote it',
        ),
    ],
)
def test_invalid_config_is_an_error_that_names_the_key_and_the_valid_values(why, document, key, problem):
    mistake = mistake_in(document)

    assert (mistake.key, mistake.problem) == (key, problem), why
    assert str(mistake) == f'{key}: {problem}'


def test_the_first_mistake_in_the_file_is_named():
    document = {'tools': {'rm': {'approval': 'x'}}, 'default': 'y', 'unknown': 1}
    lines = {('tools',): 7, ('tools', 'rm', 'approval'): 9, ('default',): 5, ('unknown',): 3}

    mistake = mistake_in(document, source='policy.yaml', line_of=lines.get)

    assert str(mistake) == 'policy.yaml:3: unknown: unknown key'


def test_very_long_key_or_value_is_not_quoted_whole():
    for document in (
        {'x' * 100_000: 1},
        {'default': 'x' * 100_000},
        {'tools': {'x' * 100_000: {'approval': 'y' * 9999}}},
    ):
        assert len(str(mistake_in(document))) < 300


@pytest.mark.parametrize(
    ('document', 'shown'),
    [
        ({'\x1b[2J': 1}, '\\x1b[2J'),
        ({'a\nb': 1}, 'a\\nb'),
        ({'default': '\x1b]0;x\x07'}, '\\x1b]0;x\\x07'),
        ({'tools': {'\u202e': {'x': 1}}}, '\\u202e'),
    ],
)
def test_an_error_is_safe_to_print_on_a_terminal(document, shown):
    text = str(mistake_in(document))

    assert shown in text
    assert text.isprintable()


def test_key_that_is_half_a_character_is_an_error():
    assert mistake_in({'\ud800': 1}).source is None


def test_a_path_is_shown_with_dots():
    assert dotted(('auto_grant', 'vm', 0)) == 'auto_grant.vm.0'
    assert dotted(()) is None


def test_missing_yaml_library_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, 'yaml', None)
    monkeypatch.delitem(sys.modules, 'tool_approval.core.config_yaml', raising=False)

    with pytest.raises(MissingExtraError, match=r"pip install './tool_approval\[yaml\]'"):
        ApprovalPolicy.from_yaml('tools: {}')
