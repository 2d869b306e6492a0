"""Conversations that are kept, where that was asked for: a file each, the user's alone."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart

from tool_approval.storage.private_file import make_private_folder, open_private, replace_private

from .conversation import FAILED, STOPPED
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

    @contextmanager
    def reserved(self, name: str) -> Generator[None]:
        """Hold a name, which nobody else holds until the `with` ends, not even after a crash. Nothing is saved by it.

        Raises:
            AssistantError: Another run holds it, that is no name, or the folder is not the user's alone.
        """
        path = self._path(name)
        with ExitStack() as stack:
            try:
                make_private_folder(path.parent)
                # A file of its own, as that of the conversation is replaced whenever it is saved.
                descriptor = open_private(path.with_name(f'.{path.name}.lock'), os.O_RDWR | os.O_CREAT)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AssistantError(
                    f'the conversation {name!r} is held by another run; end that one, or name another'
                ) from None
            except OSError as error:
                raise AssistantError(f'the name {name!r} cannot be held: {_why(error)}') from None
            yield

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


def has_answer(messages: list[ModelMessage]) -> bool:
    """Whether the model said or called anything; otherwise there is nothing to go on with."""
    return any(
        not (isinstance(part, TextPart) and part.content in (FAILED, STOPPED))
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
    )


def _why(error: OSError) -> str:
    return error.strerror or str(error)
