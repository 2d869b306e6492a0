import os

import pytest
from pydantic import ValidationError
from tool_approval.tools.file_sandbox import FileSandbox, PathConfig, SandboxConfig

from tool_approval import ApprovalConfigError


def test_configuration_without_fields_is_the_careful_choice():
    config = PathConfig(root='notes')

    assert (config.mode, config.suffixes, config.write_approval, config.read_approval) == ('ro', None, True, False)


def test_approval_can_be_written_with_the_words_of_tools():
    config = PathConfig.model_validate({'root': 'a', 'approval': {'write': 'none', 'read': 'required'}})

    assert (config.write_approval, config.read_approval) == (False, True)


def test_approval_without_fields_is_the_careful_choice():
    config = PathConfig.model_validate({'root': 'a', 'approval': {}})

    assert (config.write_approval, config.read_approval) == (True, False)


@pytest.mark.parametrize(
    'wrong',
    [
        {'root': 'a', 'approval': {'write': 'none'}, 'write_approval': True},
        {'root': 'a', 'approval': {'write': 'never'}},
        {'root': 'a', 'approval': {'writes': 'none'}},
        {'root': 'a', 'mode': 'w'},
        {'root': 'a', 'suffix': ['.txt']},
        {'root': 'a', 'suffixes': []},
        {'root': 'a', 'suffixes': ['txt']},
        {'root': 'a', 'suffixes': ['.']},
        {'root': 'a\0b'},
        {'mode': 'rw'},
    ],
)
def test_invalid_configuration_is_refused(wrong):
    with pytest.raises(ValidationError):
        SandboxConfig.model_validate({'paths': {'notes': wrong}})


@pytest.mark.parametrize('name', ['', 'a:b', 'a/b', '..', '.a', 'ä', 'a b', 'a' * 65])
def test_a_name_that_messages_could_not_show_is_refused(name):
    with pytest.raises(ValidationError):
        SandboxConfig.model_validate({'paths': {name: {'root': 'a'}}})


def test_a_configuration_cannot_be_changed():
    config = SandboxConfig.model_validate({'paths': {'notes': {'root': 'a'}}})

    with pytest.raises(ValidationError):
        config.paths['notes'].mode = 'rw'


def test_two_names_for_one_directory_are_refused(tmp_path):
    with pytest.raises(ApprovalConfigError, match=r'sandbox\.paths\.b\.root: this root is the same directory as `a`'):
        FileSandbox({'paths': {'a': {'root': 'x'}, 'b': {'root': './x/../x'}}}, tmp_path)


def test_a_system_without_directory_descriptors_has_no_sandbox(tmp_path, monkeypatch):
    monkeypatch.setattr(os, 'supports_dir_fd', set())

    with pytest.raises(NotImplementedError):
        FileSandbox({}, tmp_path)
