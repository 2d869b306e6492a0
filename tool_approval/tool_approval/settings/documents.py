"""From a text to a document, and where its lines are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tool_approval.core.errors import MissingExtraError, Path

Format = Literal['yaml', 'toml']
"""How a document is written; JSON is YAML."""


def parse_text(text: str, *, source: str | None, format: Format) -> tuple[dict[str, Any], Callable[[Path], int | None]]:
    """The document of a text, and where its lines are.

    Raises:
        ApprovalConfigError: It is neither YAML nor TOML, as it should be.
        MissingExtraError: It is YAML, and PyYAML is not installed.
    """
    if format == 'toml':
        from .toml_lines import parse_toml

        return parse_toml(text, source=source)
    try:
        from tool_approval.core.config_yaml import parse_yaml
    except ImportError:
        raise MissingExtraError('yaml', extra='yaml') from None
    return parse_yaml(text, source=source)
