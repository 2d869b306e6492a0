"""Errors in one line."""

import pytest
from tool_approval.assistant import errors
from tool_approval.assistant.errors import LONGEST, AssistantError, check_extras, error_text, one_line_errors
from tool_approval.core.errors import MissingExtraError, StoreError


@pytest.mark.parametrize(
    ('error', 'told'),
    [
        (ValueError('no such\n  model'), 'no such model'),
        (KeyError('name'), "KeyError 'name'"),
        (TimeoutError(), 'TimeoutError'),
        (RuntimeError('red \x1b[31m text'), 'red <U+001B>[31m text'),
    ],
)
def test_an_error_is_one_line_that_draws_nothing(error, told):
    assert error_text(error) == told


def test_a_page_of_error_is_cut():
    assert len(error_text(ValueError('a b ' * LONGEST))) == LONGEST + 1


def test_a_sentence_takes_the_place_of_any_error():
    with pytest.raises(AssistantError, match='the line is dead'), one_line_errors(debug=False):
        raise ConnectionError('the line is dead')


def test_sentences_pass_as_they_are():
    with pytest.raises(StoreError), one_line_errors(debug=False):
        raise StoreError('file', 'it is odd')


def test_with_debug_the_error_passes():
    with pytest.raises(ConnectionError), one_line_errors(debug=True):
        raise ConnectionError('the line is dead')


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    check_extras()
    monkeypatch.setattr(errors, 'find_spec', lambda name: None)

    with pytest.raises(MissingExtraError, match=r"pip install 'tool-approval\[cli\]'"):
        check_extras()
