"""Show how many questions a log has, and how they are answered."""

from __future__ import annotations

from collections.abc import Sequence

from tool_approval.audit.calls import LoggedCall
from tool_approval.audit.stats import count, stats_lines
from tool_approval.display import escape_line

from .html import Html, element

FIGURES_OF = 2_000
"""Number of entries, the newest of the log, that are counted on the page. `tool-approval stats` counts all."""

_LONGEST_NAME = 80


def figures(calls: Sequence[LoggedCall], *, is_part: bool) -> Html | None:
    """Render the figures of these calls, or return `None` if there are none.

    Args:
        calls: Calls of the newest entries.
        is_part: Whether the log has older entries.
    """
    if not calls:
        return None
    rows = [(_short(name), escape_line(value)) for name, value in stats_lines(count(calls))]
    of = f'Questions and answers in the newest {FIGURES_OF} entries' if is_part else 'Questions and answers'
    table = element(
        'table', *(element('tr', element('th', name, scope='row'), element('td', value)) for name, value in rows)
    )
    return element('details', element('summary', of), table, id='figures')


def _short(name: str) -> str:
    return escape_line(name[:_LONGEST_NAME]) + ('...' if len(name) > _LONGEST_NAME else '')
