"""Put the entries of a log together to calls: what was asked, how the call was decided, and how long that took."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from .reading import text_in

Fate = Literal['approved', 'denied', 'answered', 'open', 'unasked', 'blocked']
"""Fate of a call, by the log: a question was answered with yes or no, or in place of the tool, or has no answer yet;
or the call ran without a question, or was blocked without one."""


@dataclass(frozen=True, kw_only=True)
class LoggedCall:
    """A call in a log. Its texts are untrusted, and must be escaped."""

    line: int
    """1-based number of the line that decided the call, or of the open question."""
    at: datetime | None
    """Time of this line in UTC; `None` if the line has no valid time."""
    tool_name: str
    payload: Mapping[str, Any] | None
    """Redacted payload as the model made it; `None` if the log does not have it."""
    fate: Fate
    how: str
    """Source of the decision, as in the log; `-` for a call without a decision."""
    decided_by: tuple[str, ...]
    """Names of those who decided, or the reason, as in the log."""
    is_changed: bool
    """Whether the approver changed arguments."""
    settings_digest: str | None
    """Digest of the settings that applied, if the log has it."""
    answered_s: float | None
    """Seconds from the question to the answer; `None` without either, or if the clock was set back in between."""
    reviewer_would: str | None = None
    """Answer that a reviewer in shadow mode would have given, `approve` or `ask`, as in the log; `None` without one."""
    approvers: tuple[object, ...] = ()
    """Rules for who had to approve, as in the log."""

    @property
    def was_asked(self) -> bool:
        """Whether the call was decided by an answer, or waits for one."""
        return self.fate not in ('unasked', 'blocked')


def logged_calls(entries: Iterable[Mapping[str, Any] | None]) -> Iterator[LoggedCall]:
    """Yield the calls of a log in the order of their decisions, then those whose question has no answer.

    Args:
        entries: The entries of a log, in order; `None` for a line that is not one.
    """
    asked: dict[tuple[str, str, str], deque[tuple[int, Mapping[str, Any]]]] = {}
    for line, entry in enumerate(entries, start=1):
        if entry is None:
            continue
        match entry.get('event'):
            case 'question':
                waiting = asked.setdefault(_key(entry, 'digest'), deque())
                if not waiting:  # else it was asked again
                    waiting.append((line, entry))
            case 'decision':
                waiting = asked.get(_key(entry, 'question_digest'))
                question = waiting.popleft()[1] if waiting else None
                yield _call(line, entry, _decided(entry), question)
            case 'unasked':
                yield _call(line, entry, 'unasked')
            case 'blocked':
                yield _call(line, entry, 'blocked')
            case _:
                pass
    for line, entry in sorted((each for waiting in asked.values() for each in waiting), key=lambda each: each[0]):
        yield _call(line, entry, 'open')


def time_of(entry: Mapping[str, Any], key: str = 'at') -> datetime | None:
    """Return a time of an entry in UTC, or `None` if it has no valid time with an offset."""
    try:
        at = datetime.fromisoformat(text_in(entry, key))
        return None if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _decided(entry: Mapping[str, Any]) -> Fate:
    if entry.get('response') is not None:
        return 'answered'
    return 'approved' if entry.get('approved') is True else 'denied'


def _call(line: int, entry: Mapping[str, Any], fate: Fate, question: Mapping[str, Any] | None = None) -> LoggedCall:
    payload, by = entry.get('payload'), entry.get('decided_by')
    digest = entry.get('settings_digest')
    return LoggedCall(
        line=line,
        at=time_of(entry),
        tool_name=text_in(entry, 'tool_name'),
        payload=cast('Mapping[str, Any]', payload) if isinstance(payload, Mapping) else None,
        fate=fate,
        how=text_in(entry, 'how'),
        decided_by=tuple(map(str, cast('list[object]', by))) if isinstance(by, list) else (),
        is_changed=entry.get('has_changed_arguments') is True,
        approvers=tuple(cast('list[object]', who)) if isinstance(who := entry.get('approvers'), list) else (),
        reviewer_would=would if isinstance(would := entry.get('reviewer_would'), str) else None,
        settings_digest=digest if isinstance(digest, str) else None,
        answered_s=None if question is None else _seconds(time_of(question), time_of(entry, 'decided_at')),
    )


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def _key(entry: Mapping[str, Any], digest: str) -> tuple[str, str, str]:
    return text_in(entry, 'tool_name'), text_in(entry, 'tool_call_id'), text_in(entry, digest)
