"""Data for showing a request to a person: what it is, not how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

EXTRA_ACCESS: Final = 'extra_access'
"""What a call may touch beyond what its tool is confined to, by the same name in two places: in the metadata of a
presentation as lines for a person, and in what an approval is bound to as the tool reads it."""

BRIEF_ACCESS: Final = 'brief_access'
"""The lines of `EXTRA_ACCESS` in fewer words."""

PresentationType = Literal['text', 'diff', 'file_content', 'command', 'structured']


class ApprovalPresentation(BaseModel):
    """What a person looks at before deciding. UIs escape it; it may contain anything."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    type: PresentationType
    """How to render the content."""
    content: str
    """The text to show, shortened for display."""
    language: str | None = None
    """The language of the content, for highlighting."""
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """More for the UI, by key:

    - `full_content`: The text before it was shortened.
    - `is_summary`: Whether the content is no more than a summary, so that not all of the call is shown.
    - `path`, `is_new`, `cwd`: The file it is about, whether it is a new one, and the directory it happens in.
    - `extra_access`: What the call may touch beyond what such calls usually may, as a list of lines.
    - `brief_access`: For each of these lines, its beginning, for a UI that opens the rest with a key.
    - `defaults`: Arguments by name that mean the same as if they were not given, and so need not be shown.
    - `is_usual`: Whether the request's description says nothing that the presentation does not, and its reason is the
      usual one, which need not be read each time.
    """

    @classmethod
    def of(
        cls,
        type: PresentationType,
        content: str | bytes,
        *,
        language: str | None = None,
        max_lines: int = 50,
        max_chars: int = 8000,
        **metadata: Any,
    ) -> ApprovalPresentation:
        """Present `content`, shortened, with the whole of it in `metadata['full_content']` where it was.

        Args:
            type: How to render it.
            content: Text; bytes are shown by kind and size alone.
            language: Its language.
            max_lines: Lines to show at most.
            max_chars: Characters to show at most.
            **metadata: More for the UI.
        """
        shown = truncate_for_display(content, max_lines=max_lines, max_chars=max_chars)
        if isinstance(content, str) and shown != content:
            metadata['full_content'] = content
        return cls(type=type, content=shown, language=language, metadata=metadata)


def truncate_for_display(content: str | bytes, max_lines: int = 50, max_chars: int = 8000) -> str:
    """Shorten `content` to what a person can take in at once, and say how much was left out.

    Args:
        content: Text; of bytes, only kind and size are told.
        max_lines: Lines to show at most.
        max_chars: Characters to show at most, of all lines together: one line can be as long as a file. A newline at
            the end does not count.

    Returns:
        The content, or its beginning and a last line such as `... [12 more lines, 3400 more characters]`.

    Raises:
        ValueError: A limit is below 1.
    """
    if max_lines < 1 or max_chars < 1:
        raise ValueError('max_lines and max_chars must be at least 1')
    if isinstance(content, bytes):
        kinds = (kind for start, kind in _SIGNATURES.items() if content.startswith(start))
        return f'Binary content: {next(kinds, "application/octet-stream")} ({len(content)} bytes)'
    body = content.removesuffix('\n')
    lines = body.split('\n')
    shown = '\n'.join(lines[:max_lines])[:max_chars]
    if shown == body:
        return content
    left_out: list[str] = []
    if lines_left := len(lines) - (shown.count('\n') + 1):
        left_out.append(_more(lines_left, 'line'))
    if len(shown) == max_chars:
        left_out.append(_more(len(body) - len(shown), 'character'))
    return f'{shown}\n... [{", ".join(left_out)}]'


def _more(count: int, noun: str) -> str:
    return f'{count} more {noun}{"s" if count > 1 else ""}'


_SIGNATURES = {
    b'\x89PNG\r\n\x1a\n': 'image/png',
    b'\xff\xd8\xff': 'image/jpeg',
    b'GIF8': 'image/gif',
    b'%PDF-': 'application/pdf',
    b'PK\x03\x04': 'application/zip',
    b'\x1f\x8b': 'application/gzip',
    b'\x7fELF': 'application/x-elf',
}
"""Media types of common files by their first bytes."""
