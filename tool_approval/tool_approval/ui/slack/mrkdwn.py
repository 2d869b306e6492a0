"""Render text in Slack's markup so that quoted text cannot become a mention, a link or formatting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tool_approval.display import fenced

LONGEST_SECTION = 3000
"""Maximum number of characters in the text of a `section` block. Source: Slack's reference."""

_ROOM = 2_800
"""Maximum number of content characters in a section. The rest of the section is for fences and a label."""

# Source: Slack's "Formatting text for app surfaces": only these three begin a mention, a link or an entity.
_ENTITIES = {'&': '&amp;', '<': '&lt;', '>': '&gt;'}


def plain(text: str) -> str:
    """Escape text for Slack. Formatting characters such as `*` still have an effect."""
    return ''.join(_ENTITIES.get(char, char) for char in text)


def code(text: str) -> str:
    """Render untrusted text as one line of inline code. The text cannot close the inline code."""
    return plain(fenced.inline_code(text))


def sections(lines: Iterable[fenced.Line]) -> list[str]:
    """Divide lines among sections, and return the sections' texts. Each text is within Slack's limit."""
    return fenced.sections(lines, room=_ROOM, ours=_ENTITIES, quoted=_ENTITIES)


def cut(texts: Sequence[str], most: int) -> tuple[list[str], bool]:
    """Return at most `most` sections, and whether all sections were kept."""
    return fenced.cut(texts, most, '_[... {} not shown here; press View full request]_')
