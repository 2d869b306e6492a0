"""A call as somebody writes it down to have it explained: on a command line, or as a line of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import NotCanonicalError

from .problems import UsageError

SHELL_TOOLS: Final = ('shell', 'run_shell')
"""The shell tool: its short name, and what agents call it."""
FILE_TOOLS: Final[dict[str, tuple[str, ...]]] = {
    'read_file': ('path',),
    'write_file': ('path',),
    'edit_file': ('path',),
    'delete': ('path',),
    'make_directory': ('path',),
    'list_files': ('path',),
    'move': ('path', 'dest'),
    'copy': ('path', 'dest'),
}
"""What each file tool has to be told; what it would write may be left out."""
_LONGEST_NAME: Final = 200
"""Chosen: hosts allow 64 characters."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool and its arguments."""

    tool: str
    """Its name."""
    args: Mapping[str, Any]
    """Values by parameter name."""

    @property
    def is_shell(self) -> bool:
        """Whether it is a command."""
        return self.tool in SHELL_TOOLS


def read_call(tool: object, args: object) -> Call:
    """A call of JSON values.

    Raises:
        UsageError: It is none, or lacks what the tool has to be told.
    """
    if not isinstance(tool, str) or not tool or len(tool) > _LONGEST_NAME:
        raise UsageError(f'`tool` has to be the name of a tool, at most {_LONGEST_NAME} characters long')
    if not isinstance(args, Mapping):
        raise UsageError('`args` has to be an object')
    call = Call(tool=tool, args=cast('Mapping[str, Any]', args))
    needed = ('command',) if call.is_shell else FILE_TOOLS.get(tool, ())
    for name in needed:
        if not isinstance(call.args.get(name), str):
            raise UsageError(f'`{tool}` needs `{name}` as a text in its `args`')
    if tool in FILE_TOOLS and 'dest' not in needed and call.args.get('dest') is not None:
        raise UsageError(f'`{tool}` takes no `dest`')
    return call


def call_of_words(tool: str, words: Sequence[str], dest: str | None) -> Call:
    """A call of a command line.

    Args:
        tool: The tool.
        words: A command as one word, a path, a path and a destination, or a JSON object.
        dest: The destination, where it was given by its option.

    Raises:
        UsageError: They do not fit the tool.
    """
    if tool in SHELL_TOOLS:
        if len(words) != 1 or dest is not None:
            raise UsageError(f"`{tool}` takes the whole command as one word; put it in quotes: '{tool}' 'git status'")
        return read_call(tool, {'command': words[0]})
    if tool in FILE_TOOLS:
        given = [*words, *([] if dest is None else [dest])]
        names = FILE_TOOLS[tool]
        if len(given) != len(names):
            wanted = 'a path and a destination' if len(names) > 1 else 'one path'
            raise UsageError(f'`{tool}` takes {wanted}; put names with blanks in quotes')
        return read_call(tool, dict(zip(names, given, strict=True)))
    if len(words) > 1 or dest is not None:
        raise UsageError(f'`{tool}` takes its arguments as one JSON object, such as \'{{"to": "ada"}}\'')
    try:
        return read_call(tool, decode_arguments(words[0] if words else None))
    except NotCanonicalError as error:
        raise UsageError(f'the arguments of `{tool}` have to be a JSON object: {error.problem}') from None
