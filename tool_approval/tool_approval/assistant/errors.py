"""Report each error on one line, whether the error occurs before a run or during it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, cast
from urllib.parse import urlsplit

from tool_approval.core.errors import ApprovalError, MissingExtraError
from tool_approval.display import escape_line


class AssistantError(ApprovalError):
    """The message states the problem and, if possible, the solution."""


LONGEST = 600
"""An error is cut to this many characters, because some servers respond with a whole HTML page."""

_LIBRARIES = ('pydantic_ai', 'pydantic_ai_deferred', 'tree_sitter', 'tree_sitter_bash')


def check_extras() -> None:
    """Raise `MissingExtraError` if a library that a run needs is not installed."""
    for module in _LIBRARIES:
        if find_spec(module) is None:
            raise MissingExtraError(module, extra='cli')


def error_text(error: BaseException) -> str:
    """Return an error as one escaped line. For a failed connection, the line contains the address and advice."""
    text = _unreached(error) or ' '.join(str(error).split())
    if ' ' not in text:  # such as the text of a `KeyError`
        text = f'{type(error).__name__} {text}'.strip()
    return escape_line(text if len(text) <= LONGEST else f'{text[:LONGEST]}…')


def _unreached(error: BaseException) -> str | None:
    """Return the text for a failed connection, including the address, or `None` for other errors."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    if not any('Connect' in type(each).__name__ for each in chain):
        return None
    for each in chain:
        # Reading `request` may raise if the error has none.
        with suppress(Exception):
            url = urlsplit(str(cast('Any', each).request.url))
            if url.hostname is not None:
                port = '' if url.port is None else f':{url.port}'
                host = f'[{url.hostname}]' if ':' in url.hostname else url.hostname
                # Only this part of the address: the rest may contain a password.
                return (
                    f'the connection to {url.scheme}://{host}{port} failed ({" ".join(str(chain[-1]).split())}); check '
                    'the network and the address of your model, such as the one in OPENAI_BASE_URL'
                )
    return None


@contextmanager
def one_line_errors(*, debug: bool) -> Generator[None]:
    """Turn exceptions other than `ApprovalError` into `AssistantError`. With `debug`, leave exceptions unchanged."""
    try:
        yield
    except ApprovalError:
        raise
    except Exception as error:
        if debug:
            raise
        raise AssistantError(error_text(error)) from error
