"""Conversations that are kept, where that was asked for: a file each, the user's alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from tool_approval.storage.private_file import make_private_folder, open_private, replace_private

from .errors import AssistantError

LARGEST = 64 * 1024 * 1024
"""Chosen: bytes of a file that is read. A conversation that is longer fits no model."""

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,63}')


class SavedConversations:
    """The conversations in one folder."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`; it is made when something is saved."""
        self._folder = folder

    def load(self, name: str) -> list[ModelMessage]:
        """The messages of a conversation.

        Raises:
            AssistantError: There is none of that name, it is not the user's alone, or it holds no conversation.
        """
        path = self._path(name)
        try:
            descriptor = open_private(path, os.O_RDONLY)
            with os.fdopen(descriptor, 'rb') as file:
                content = file.read(LARGEST + 1)
        except FileNotFoundError:
            raise AssistantError(f'there is no saved conversation {name!r}') from None
        except OSError as error:
            raise AssistantError(f'the conversation {name!r} cannot be read: {_why(error)}') from None
        if len(content) > LARGEST:
            raise AssistantError(f'the conversation {name!r} is larger than {LARGEST} bytes')
        try:
            return ModelMessagesTypeAdapter.validate_json(content)
        except (ValidationError, RecursionError):
            raise AssistantError(f'the file of the conversation {name!r} holds no conversation') from None

    def has(self, name: str) -> bool:
        """Whether there is something of that name.

        Raises:
            AssistantError: That is no name.
        """
        return os.path.lexists(self._path(name))

    def save(self, name: str, messages: list[ModelMessage]) -> None:
        """Keep a conversation; an older one of that name is replaced as a whole.

        Raises:
            AssistantError: It cannot be written.
        """
        path = self._path(name)
        try:
            make_private_folder(path.parent)
            replace_private(path, ModelMessagesTypeAdapter.dump_json(messages))
        except OSError as error:
            raise AssistantError(f'the conversation {name!r} cannot be saved: {_why(error)}') from None

    def _path(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise AssistantError('a conversation is named with letters, digits, `_`, `-` and `.`, at most 64 of them')
        return self._folder / f'{name}.json'


def _why(error: OSError) -> str:
    return error.strerror or str(error)
