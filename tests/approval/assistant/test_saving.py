"""Conversations on disk."""

import os

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from tool_approval.assistant import saving
from tool_approval.assistant.conversation import FAILED, STOPPED
from tool_approval.assistant.errors import AssistantError
from tool_approval.assistant.saving import SavedConversations, has_answer

MESSAGES = [ModelRequest.user_text_prompt('Hello.'), ModelResponse([TextPart('Hi.')])]


def test_what_was_saved_is_loaded_and_is_the_users_alone(tmp_path):
    saved = SavedConversations(tmp_path / 'conversations')

    saved.save('work', MESSAGES)

    assert [type(message) for message in saved.load('work')] == [ModelRequest, ModelResponse]
    assert saved.load('work')[1].parts[0].content == 'Hi.'
    assert (tmp_path / 'conversations' / 'work.json').stat().st_mode & 0o777 == 0o600
    assert (tmp_path / 'conversations').stat().st_mode & 0o777 == 0o700


def test_saving_again_replaces(tmp_path):
    saved = SavedConversations(tmp_path)
    saved.save('work', MESSAGES)

    saved.save('work', MESSAGES[:1])

    assert len(saved.load('work')) == 1


def test_a_name_is_held_by_one_at_a_time_and_free_afterwards(tmp_path):
    saved, other = SavedConversations(tmp_path / 'conversations'), SavedConversations(tmp_path / 'conversations')

    with saved.reserved('work'):
        with (
            pytest.raises(AssistantError, match="the conversation 'work' is held by another run"),
            other.reserved('work'),
        ):
            pass
        with other.reserved('play'):
            pass

    with other.reserved('work'):
        assert not other.has('work')


def test_a_name_that_cannot_be_held_is_an_error(tmp_path):
    (tmp_path / 'file').write_text('')

    with pytest.raises(AssistantError, match="the name 'work' cannot be held"):
        SavedConversations(tmp_path / 'file').reserved('work').__enter__()


def test_an_error_while_a_name_is_held_is_left_as_it_is(tmp_path):
    with pytest.raises(BlockingIOError), SavedConversations(tmp_path).reserved('work'):
        raise BlockingIOError


@pytest.mark.parametrize(
    ('messages', 'expected'),
    [
        ([], False),
        (MESSAGES, True),
        (MESSAGES[:1], False),
        ([MESSAGES[0], ModelResponse([TextPart(FAILED)])], False),
        ([MESSAGES[0], ModelResponse([TextPart(STOPPED)])], False),
        ([*MESSAGES, MESSAGES[0], ModelResponse([TextPart(FAILED)])], True),
        ([MESSAGES[0], ModelResponse([ToolCallPart('pay', {})]), ModelResponse([TextPart(FAILED)])], True),
    ],
)
def test_a_conversation_without_a_word_of_the_model_is_not_worth_keeping(messages, expected):
    assert has_answer(messages) is expected


@pytest.mark.parametrize('name', ['', '.hidden', '../up', 'a/b', 'a\0b', 'x' * 65, '-option'])
def test_a_name_is_no_path(tmp_path, name):
    with pytest.raises(AssistantError, match='is named with'):
        SavedConversations(tmp_path).load(name)


def test_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(AssistantError, match='there is no saved conversation'):
        SavedConversations(tmp_path).load('work')


@pytest.mark.parametrize('content', [b'', b'{', b'[{"kind": "other"}]', b'[' * 100_000, b'\xff\xfe'])
def test_what_is_no_conversation_is_refused(tmp_path, content):
    saved = SavedConversations(tmp_path)
    saved.save('work', MESSAGES)
    (tmp_path / 'work.json').write_bytes(content)

    with pytest.raises(AssistantError, match='holds no conversation'):
        saved.load('work')


def test_a_file_that_others_can_read_is_refused(tmp_path):
    saved = SavedConversations(tmp_path)
    saved.save('work', MESSAGES)
    (tmp_path / 'work.json').chmod(0o644)

    with pytest.raises(AssistantError, match='others may use it'):
        saved.load('work')


def test_a_link_is_refused(tmp_path):
    saved = SavedConversations(tmp_path)
    saved.save('work', MESSAGES)
    os.symlink(tmp_path / 'work.json', tmp_path / 'other.json')

    with pytest.raises(AssistantError, match='symbolic link'):
        saved.load('other')


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    saved = SavedConversations(tmp_path)
    saved.save('work', MESSAGES)
    monkeypatch.setattr(saving, 'LARGEST', 10)

    with pytest.raises(AssistantError, match='larger than 10 bytes'):
        saved.load('work')


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / 'file').write_text('')

    with pytest.raises(AssistantError, match='cannot be saved'):
        SavedConversations(tmp_path / 'file').save('work', MESSAGES)
