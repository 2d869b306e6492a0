"""Errors in one line."""

import itertools
from types import SimpleNamespace

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


class Failed(Exception):
    """The error of an HTTP client, with its request."""

    def __init__(self, text, url):
        super().__init__(text)
        self.request = SimpleNamespace(url=url)


class ConnectError(Failed):
    """One that could not connect."""


def chain(*errors):
    """The first error, caused by the second, and so on."""
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    return errors[0]


@pytest.mark.parametrize(
    ('url', 'address'),
    [
        ('https://ada:secret@api.example.com/v1/chat?key=secret', 'https://api.example.com'),
        ('http://127.0.0.1:8080/v1', 'http://127.0.0.1:8080'),
        ('http://[::1]:8080/v1', 'http://[::1]:8080'),
    ],
)
def test_a_connection_that_failed_names_the_address_and_nothing_secret(url, address):
    error = chain(RuntimeError('Connection error.'), ConnectError('All failed', url), OSError('refused\x1b'))

    assert error_text(error) == (
        f'the connection to {address} failed (refused<U+001B>); check the network and the address of your model, '
        'such as the one in OPENAI_BASE_URL'
    )


@pytest.mark.parametrize(
    'error',
    [
        chain(RuntimeError('No such key.'), Failed('401', 'https://api.example.com')),
        chain(RuntimeError('No such key.'), ConnectError('failed', 'no address')),
        chain(RuntimeError('No such key.'), ConnectionError('no request')),
    ],
)
def test_other_errors_are_shown_unchanged(error):
    assert error_text(error) == 'No such key.'


def test_long_error_is_cut():
    assert len(error_text(ValueError('a b ' * LONGEST))) == LONGEST + 1


def test_unexpected_error_becomes_one_sentence():
    with pytest.raises(AssistantError, match='the line is dead'), one_line_errors(debug=False):
        raise ConnectionError('the line is dead')


def test_errors_of_this_project_are_raised_unchanged():
    with pytest.raises(StoreError), one_line_errors(debug=False):
        raise StoreError('file', 'it is odd')


def test_with_debug_the_error_passes():
    with pytest.raises(ConnectionError), one_line_errors(debug=True):
        raise ConnectionError('the line is dead')


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    check_extras()
    monkeypatch.setattr(errors, 'find_spec', lambda name: None)

    with pytest.raises(MissingExtraError, match=r"pip install ./pydantic_ai_slim './tool_approval\[cli\]'"):
        check_extras()
