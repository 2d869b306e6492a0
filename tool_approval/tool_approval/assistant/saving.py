"""Save conversations in files that only the user can read."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Self

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from tool_approval.display import escape_line, escape_text
from tool_approval.storage.private_file import make_private_folder, open_private, replace_private

from .errors import AssistantError

LARGEST = 64 * 1024 * 1024
"""Maximum size of a file to read, in bytes. No model accepts a conversation of this length."""

MOST_UNNAMED = 50
"""Maximum number of unnamed conversations to keep for each directory."""

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,63}')


class SavedConversation:
    """The file of one conversation."""

    def __init__(self, folder: Path, name: str) -> None:
        """Set the name. `folder` is created only when the name is locked or a conversation is saved.

        Raises:
            AssistantError: The name is invalid.
        """
        if _NAME.fullmatch(name) is None:
            raise AssistantError('a conversation name must have at most 64 characters: letters, digits, `_`, `-`, `.`')
        self._name = name
        self._path = folder / f'{name}.json'
        self.is_named = True
        """Whether the user chose the name."""

    @classmethod
    def unnamed(cls, folder: Path, directory: Path) -> Self:
        """Return a new conversation that is named after the directory and the time."""
        saved = cls(folder, f'{_place(directory)}-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}')
        saved.is_named = False
        return saved

    @classmethod
    def last(cls, folder: Path, directory: Path) -> Self:
        """Return the last saved unnamed conversation of this directory.

        Raises:
            AssistantError: There is no saved conversation for this directory.
        """
        found = cls._all_unnamed(folder, _place(directory))
        if not found:
            raise AssistantError('there is no conversation to continue in this directory')
        return found[0]

    @classmethod
    def _all_unnamed(cls, folder: Path, place: str) -> list[Self]:
        """Return the unnamed conversations of a directory, the most recently saved first."""
        found: list[tuple[int, str]] = []
        for path in folder.glob(f'{place}-{"?" * 8}T{"?" * 6}.{"?" * 6}.json'):
            with suppress(FileNotFoundError):  # another run may remove the file meanwhile
                status = path.lstat()
                if not stat.S_ISLNK(status.st_mode):
                    found.append((status.st_mtime_ns, path.stem))
        every = [cls(folder, name) for _, name in sorted(found, reverse=True)]
        for saved in every:
            saved.is_named = False
        return every

    def exists(self) -> bool:
        """Whether the conversation's file exists."""
        return os.path.lexists(self._path)

    @contextmanager
    def held(self) -> Generator[None]:
        """Lock the name against other runs until the `with` block or the process ends. The method saves nothing.

        Raises:
            AssistantError: Another run has locked the name, or other users can access the folder.
        """
        with _explained(f'the conversation {self._name!r} cannot be locked'):
            make_private_folder(self._path.parent)
            # A separate lock file, because each save replaces the file of the conversation.
            lock = self._path.with_name(f'.{self._path.name}.lock')
            descriptor = open_private(lock, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AssistantError(
                    f'another run uses the conversation {self._name!r}; end that run, or choose another name'
                ) from None
            try:
                yield
            finally:
                if not self.is_named and not self.exists():
                    lock.unlink(missing_ok=True)  # no other run knows the name
        finally:
            os.close(descriptor)

    def load(self) -> list[ModelMessage]:
        """Return the saved messages.

        Raises:
            AssistantError: The file does not exist, is accessible to other users, or does not contain a conversation.
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
            raise AssistantError(f'the file of the conversation {self._name!r} is not valid') from None

    def save(self, messages: list[ModelMessage]) -> None:
        """Replace the saved messages with these messages.

        If the directory now has more than `MOST_UNNAMED` unnamed conversations, the oldest are deleted.

        Raises:
            AssistantError: The file cannot be written.
        """
        is_new = not self.is_named and not self.exists()
        with _explained(f'the conversation {self._name!r} cannot be saved'):
            make_private_folder(self._path.parent)
            replace_private(self._path, ModelMessagesTypeAdapter.dump_json(messages))
        if is_new:
            for old in self._all_unnamed(self._path.parent, self._name.partition('-')[0])[MOST_UNNAMED:]:
                # Keep one that another run has locked, or that cannot be deleted.
                with suppress(AssistantError), old.held():
                    old.discard()

    def discard(self) -> None:
        """Delete the saved conversation, if there is one.

        Raises:
            AssistantError: The file cannot be deleted.
        """
        with _explained(f'the conversation {self._name!r} cannot be deleted'):
            self._path.unlink(missing_ok=True)


def _place(directory: Path) -> str:
    return sha256(os.fsencode(directory)).hexdigest()[:16]


def prompts_of(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the texts of the user's messages."""
    parts = [part for message in messages for part in message.parts]
    return [part.content for part in parts if isinstance(part, UserPromptPart) and isinstance(part.content, str)]


def write_transcript(messages: Sequence[ModelMessage], path: Path) -> None:
    """Write the conversation as Markdown to a new file that only the user can read. Control characters are escaped.

    Raises:
        AssistantError: The file exists, or cannot be written.
    """
    lines: list[str] = []
    for message in messages:
        for part in message.parts:
            match part:
                case UserPromptPart(content=str(text)):
                    lines += ['## You', '', *_begun('> ', text), '']
                case TextPart(content=text):
                    lines += ['## Agent', '', *_begun('> ', text), '']
                case ToolCallPart(tool_name=name):
                    lines += [f'Call of {escape_line(name)}:', '', *_begun('    ', part.args_as_json_str()), '']
                case ToolReturnPart(tool_name=name):
                    lines += [f'Result of {escape_line(name)}:', '', *_begun('    ', part.model_response_str()), '']
                case _:
                    pass
    with _explained(f'{str(path)!r} cannot be written'):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), 'w', encoding='utf-8') as file:
            file.write('\n'.join(lines))


def _begun(sign: str, text: str) -> list[str]:
    # Attack: a message contains the heading of another one (test_saving.py).
    return [f'{sign}{line}' if line else sign.rstrip() for line in escape_text(text).split('\n')]


@contextmanager
def _explained(problem: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise AssistantError(f'{problem}: {error.strerror or error}') from None
