"""From a document to settings: mistakes are named with their key and line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tool_approval.core.config import LineOf, parse_document, plain_rules, read_model
from tool_approval.core.errors import ApprovalConfigError

from .model import Settings

_MAY_BE_EMPTY = ('sandbox', 'shell')


def read_settings(
    document: Mapping[str, Any], *, source: str | None = None, line_of: LineOf = lambda path: None
) -> Settings:
    """Check a document that was read already.

    Args:
        document: As nested mappings, with the keys of `approvals.yaml`.
        source: The file it was read from, for the error.
        line_of: The line of the value at a path of keys, for the error.

    Raises:
        ApprovalConfigError: An unknown key or value, or one of the wrong kind. It names the first in the file, with its
            line.
    """
    plain = plain_rules(document)
    for key in _MAY_BE_EMPTY:
        if plain.get(key, ...) is None:
            plain[key] = {}
    sandbox = plain.get('sandbox')
    if isinstance(sandbox, Mapping):
        plain['sandbox'] = {
            key: value
            for key, value in cast('Mapping[str, object]', sandbox).items()
            if key != 'paths' or value is not None
        }
    both = _in_both(plain)
    if both is not None:
        raise ApprovalConfigError(
            'this tool stands in `tools` as well; write it once',
            key=f'custom_tools.{both}',
            source=source,
            line=line_of(('custom_tools', both)),
        )
    return read_model(Settings, plain, source=source, line_of=line_of)


def parse_settings(text: str, *, source: str | None = None) -> Settings:
    """Read a document in YAML, or in JSON.

    Args:
        text: The document.
        source: The file it comes from, for errors.

    Raises:
        ApprovalConfigError: A mistake in it; the error names key, file and line.
        MissingExtraError: PyYAML is not installed.
    """
    document, line_of = parse_document(text, source=source)
    return read_settings(document, source=source, line_of=line_of)


def _in_both(plain: Mapping[str, Any]) -> str | None:
    sections = [plain.get('tools'), plain.get('custom_tools')]
    if not all(isinstance(section, Mapping) for section in sections):
        return None
    tools, custom = (cast('Mapping[str, object]', section) for section in sections)
    return next((name for name in custom if name in tools), None)
