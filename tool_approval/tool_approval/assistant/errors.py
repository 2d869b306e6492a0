"""Report what goes wrong before or around a run in one line."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec

from tool_approval.core.errors import ApprovalError, MissingExtraError
from tool_approval.display import escape_line


class AssistantError(ApprovalError):
    """The text says what is wrong, and what to do where something can be done."""


LONGEST = 600
"""Chosen: characters of an error that are shown. A server may send a page."""

_LIBRARIES = ('pydantic_ai', 'pydantic_ai_deferred', 'tree_sitter', 'tree_sitter_bash')


def check_extras() -> None:
    """Raise `MissingExtraError` where a library is missing that a run needs."""
    for module in _LIBRARIES:
        if find_spec(module) is None:
            raise MissingExtraError(module, extra='cli')


def error_text(error: BaseException) -> str:
    """An error in one line, whatever a server wrote into it."""
    text = ' '.join(str(error).split())
    if ' ' not in text:  # such as that of a `KeyError`
        text = f'{type(error).__name__} {text}'.strip()
    return escape_line(text if len(text) <= LONGEST else f'{text[:LONGEST]}…')


@contextmanager
def one_line_errors(*, debug: bool) -> Generator[None]:
    """Raise what goes wrong as an `AssistantError`, unless it is a sentence already, or `debug` wants it as it is."""
    try:
        yield
    except ApprovalError:
        raise
    except Exception as error:
        if debug:
            raise
        raise AssistantError(error_text(error)) from error
