"""Data for showing a request to an approver, independent of the UI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

EXTRA_ACCESS: Final = 'extra_access'
"""Metadata key for a call's extra access, beyond the tool's usual limits. In a presentation, the value of this key is a
list of lines for the approver. In `bound_to`, the value may be of any type."""

SHOWN_FILES: Final = 'files'
"""Key in `bound_to` for the files that the approver was shown. An approver's edit cannot change it."""

BRIEF_ACCESS: Final = 'brief_access'
"""Metadata key for a shorter version of the `EXTRA_ACCESS` lines."""

NEEDS_A_PERSON: Final = 'needs_a_person'
"""Key in `bound_to`. If its value is true, only a person can approve the call, each time: the mode `approve_all` blocks
it, and no remembered approval covers it."""

PresentationType = Literal['text', 'diff', 'file_content', 'command', 'structured']


class ApprovalPresentation(BaseModel):
    """Content that the approver sees before deciding. The content may contain anything, so UIs must escape it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    type: PresentationType
    """How to render the content."""
    content: str
    """Text to show, already shortened."""
    language: str | None = None
    """Language of the content for syntax highlighting."""
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """More information for the UI, by key:

    - `full_content`: The text before it was shortened.
    - `is_summary`: Whether the content is only a summary, so that part of the call is not shown.
    - `path`, `is_new`, `cwd`: The file concerned, whether it is new, and the working directory.
    - `extra_access`: Lines that list access beyond the tool's usual limits.
    - `brief_access`: The beginning of each `extra_access` line, for a UI that shows the rest when a key is pressed.
    - `defaults`: Arguments that have their default values, by name. These arguments need not be shown.
    - `is_usual`: Whether a UI may omit the description and the reason. True if the presentation contains the
      whole description, and if the reason is the tool's usual reason."""

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
        """Present `content`. If `content` is shortened, the whole text is in `metadata['full_content']`.

        Args:
            type: How to render the content.
            content: Text or bytes; for bytes, only the kind and the size are shown.
            language: Language of the content.
            max_lines: Maximum number of lines to show.
            max_chars: Maximum number of characters to show.
            **metadata: More information for the UI.
        """
        shown = truncate_for_display(content, max_lines=max_lines, max_chars=max_chars)
        if isinstance(content, str) and shown != content:
            metadata['full_content'] = content
        return cls(type=type, content=shown, language=language, metadata=metadata)


def truncate_for_display(content: str | bytes, max_lines: int = 50, max_chars: int = 8000) -> str:
    """Shorten `content` for display, and state how much was left out.

    Args:
        content: Text or bytes; for bytes, only the kind and the size are shown.
        max_lines: Maximum number of lines to show.
        max_chars: Maximum number of characters in all lines together, since a single line can be as long as a file. A
            newline at the end is not counted.

    Returns:
        The content, or its beginning followed by a line such as `... [12 more lines, 3400 more characters]`.

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
