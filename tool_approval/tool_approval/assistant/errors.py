"""Report what goes wrong before or around a run in one line."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, cast
from urllib.parse import urlsplit

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
    """An error in one line, whatever a server wrote into it. One of a connection names the address, and what to do."""
    text = _unreached(error) or ' '.join(str(error).split())
    if ' ' not in text:  # such as that of a `KeyError`
        text = f'{type(error).__name__} {text}'.strip()
    return escape_line(text if len(text) <= LONGEST else f'{text[:LONGEST]}…')


def _unreached(error: BaseException) -> str | None:
    """The text for a connection that failed; HTTP clients keep its request with one of the errors behind it."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    if not any('Connect' in type(each).__name__ for each in chain):
        return None
    for each in chain:
        # An error without a request may raise where it is asked for.
        with suppress(Exception):
            url = urlsplit(str(cast('Any', each).request.url))
            if url.hostname is not None:
                port = '' if url.port is None else f':{url.port}'
                host = f'[{url.hostname}]' if ':' in url.hostname else url.hostname
                # Not the rest of the address, which may hold a password.
                return (
                    f'the connection to {url.scheme}://{host}{port} failed ({" ".join(str(chain[-1]).split())}); check '
                    'the network, and the address that your model is used at, such as that in OPENAI_BASE_URL'
                )
    return None


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
