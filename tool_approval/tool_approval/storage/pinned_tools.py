"""Remember the tools of MCP servers as they were when they were first seen, and withhold those that have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import StoreError

from .private_file import locked, make_private_folder, open_private, replace_private

T = TypeVar('T')

Definition = Mapping[str, Any]
"""Definition of a tool as the server lists it: `name`, `description`, `inputSchema` and more."""

_MOST_BYTES = 16 << 20
"""Maximum size of the file. Chosen: a hundred times the largest servers."""


class _Contents(BaseModel):
    model_config = ConfigDict(extra='forbid', strict=True)

    version: Literal[1] = 1
    accepted: dict[str, dict[str, Any]] = {}
    changed: dict[str, dict[str, Any]] = {}


class PinnedTools:
    """The tools of one MCP server, in a private file of the user."""

    def __init__(self, folder: Path, server: str) -> None:
        """Use the file of a server. Nothing is read or written yet.

        Args:
            folder: Absolute path of the folder of all servers.
            server: Name of the server, which must be a file name.
        """
        self._path = folder / f'{server}.json'

    def withheld(self, tools: Sequence[Definition]) -> set[str]:
        """Accept tools that are new, and return the names of those that differ from what was accepted.

        Args:
            tools: Definitions that have a canonical JSON form and a text as `name`.

        Raises:
            StoreError: The file cannot be used.
        """

        def change(contents: _Contents) -> set[str]:
            found: set[str] = set()
            for tool in tools:
                name: str = tool['name']
                if canonical_json(contents.accepted.setdefault(name, dict(tool))) != canonical_json(tool):
                    contents.changed[name] = dict(tool)
                    found.add(name)
                elif name not in found:
                    contents.changed.pop(name, None)
            return found

        return self._with_contents(change)

    def changes(self) -> dict[str, tuple[Definition, Definition]]:
        """Return the accepted and the changed definition of each tool that is withheld, by name.

        Raises:
            StoreError: The file cannot be used.
        """
        return self._with_contents(
            lambda held: {name: (held.accepted[name], new) for name, new in held.changed.items()}
        )

    def accept(self, tools: Sequence[Definition]) -> None:
        """Accept changed definitions, unless they have changed again.

        Raises:
            StoreError: The file cannot be used.
        """

        def change(contents: _Contents) -> None:
            for tool in tools:
                name = tool['name']
                # Not `==`, for which 1 and `true` are equal.
                if name in contents.changed and canonical_json(contents.changed[name]) == canonical_json(tool):
                    contents.accepted[name] = contents.changed.pop(name)

        self._with_contents(change)

    def _with_contents(self, action: Callable[[_Contents], T]) -> T:
        try:
            make_private_folder(self._path.parent)
            with locked(self._path.with_suffix('.lock')):
                before = self._read()
                contents = _Contents.model_validate_json(before) if before else _Contents()
                result = action(contents)
                after = contents.model_dump_json(indent=1).encode()
                if len(after) > _MOST_BYTES:
                    raise StoreError(str(self._path), f'the tools of the server need more than {_MOST_BYTES} bytes')
                if after != before:
                    replace_private(self._path, after)
                return result
        except OSError as error:
            raise StoreError(str(self._path), error.strerror or str(error)) from error
        except (ValidationError, KeyError):
            # The error's text quotes the file, so it is left out.
            problem = 'the file is corrupt, so no tool of the server is offered; delete it to start over'
            raise StoreError(str(self._path), problem) from None

    def _read(self) -> bytes:
        try:
            descriptor = open_private(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return b''
        with os.fdopen(descriptor, 'rb') as file:
            return file.read()
