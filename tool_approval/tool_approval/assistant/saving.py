"""Keep a conversation, where that was asked for, in a file of the user's alone."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from tool_approval.storage.private_file import make_private_folder, open_private, replace_private

from .errors import AssistantError

LARGEST = 64 * 1024 * 1024
"""Chosen: bytes of a file that is read. A conversation that is longer fits no model."""

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,63}')


class SavedConversation:
    """The file of a conversation."""

    def __init__(self, folder: Path, name: str) -> None:
        """Name it; `folder` is made when the name is held, or something is saved.

        Raises:
            AssistantError: The name is invalid.
        """
        if _NAME.fullmatch(name) is None:
            raise AssistantError('a conversation is named with letters, digits, `_`, `-` and `.`, at most 64 of them')
        self._name = name
        self._path = folder / f'{name}.json'

    def exists(self) -> bool:
        """Whether there is something of that name."""
        return os.path.lexists(self._path)

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold the name until the `with` ends, also against other processes; a crash frees it. Nothing is saved by it.

        Raises:
            AssistantError: Another run holds it, or the folder is not the user's alone.
        """
        with _explained(f'the name {self._name!r} cannot be held'):
            make_private_folder(self._path.parent)
            # A file of its own, as that of the conversation is replaced whenever it is saved.
            descriptor = open_private(self._path.with_name(f'.{self._path.name}.lock'), os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AssistantError(
                    f'the conversation {self._name!r} is held by another run; end that one, or name another'
                ) from None
            yield
        finally:
            os.close(descriptor)

    def load(self) -> list[ModelMessage]:
        """The messages.

        Raises:
            AssistantError: The file is missing, open to other users, or holds no conversation.
        """
        if not self.exists():
            raise AssistantError(f'there is no saved conversation {self._name!r}')
        with (
            _explained(f'the conversation {self._name!r} cannot be read'),
            os.fdopen(open_private(self._path, os.O_RDONLY), 'rb') as file,
        ):
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise AssistantError(f'the conversation {self._name!r} is larger than {LARGEST} bytes')
        try:
            return ModelMessagesTypeAdapter.validate_json(content)
        except (ValidationError, RecursionError):
            raise AssistantError(f'the file of the conversation {self._name!r} holds no conversation') from None

    def save(self, messages: list[ModelMessage]) -> None:
        """Keep the messages; what was saved before is replaced as a whole.

        Raises:
            AssistantError: They cannot be written.
        """
        with _explained(f'the conversation {self._name!r} cannot be saved'):
            make_private_folder(self._path.parent)
            replace_private(self._path, ModelMessagesTypeAdapter.dump_json(messages))


@contextmanager
def _explained(problem: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise AssistantError(f'{problem}: {error.strerror or error}') from None
