"""What became of a request, in words."""

from __future__ import annotations

from datetime import UTC, datetime

from tool_approval.display import escape_line
from tool_approval.inbox import InboxEntry

LONGEST_NAME = 80
"""Chosen, in characters: of a longer name of a person or of a run the beginning is shown."""


def short(name: str) -> str:
    """A name, escaped and on one line."""
    return escape_line(name if len(name) <= LONGEST_NAME else f'{name[:LONGEST_NAME]}...')


def outcome_of(entry: InboxEntry) -> str:
    """What became of a request, escaped and without the time; empty while it is open."""
    if entry.state == 'pending':
        return ''
    if entry.answer is None:
        why = 'nobody answered in time' if entry.state == 'expired' else 'its run does not wait any more'
        return f'{entry.state.capitalize()}: {why}'
    decision = entry.answer.decision
    changed = '' if decision.override_args is None else ' with changed arguments'
    spans = {'none': '', 'session': ' for this session', 'always': ', always'}
    return f'{entry.state.capitalize()}{changed}{spans[decision.remember]} by {short(entry.answer.by.id)}'


def time_of(moment: datetime) -> str:
    """The date and the time in UTC, for readers without script; with it, the page shows the reader's own."""
    return f'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC'
