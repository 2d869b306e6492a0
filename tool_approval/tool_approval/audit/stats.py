"""Count the questions of a log: how many there are, how they are answered, how fast, and by whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from .calls import LoggedCall

FAST_S = 2.0
"""Seconds under which an answer counts as fast. A question of one short line takes about as long to read."""

_MOST_NAMED = 10
"""Number of approvers that are listed by name."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers of one approver, or of all."""

    approved: int
    denied: int
    answered: int
    """Number of answers in place of the tool."""

    @property
    def total(self) -> int:
        """Number of answers."""
        return self.approved + self.denied + self.answered


@dataclass(frozen=True, kw_only=True)
class Stats:
    """Figures about the questions and answers of a log."""

    calls: int
    unasked: int
    """Number of calls that ran without a question."""
    blocked: int
    asked: int
    """Number of calls that a person answered, or that wait for an answer."""
    otherwise: int
    """Number of calls that were decided otherwise: by memory, a timeout or a mode."""
    hours: int
    """Number of hours of the clock in which the log has calls."""
    answers: Answers
    """Answers of people."""
    by: Sequence[tuple[str, Answers]]
    """Answers by approver, most answers first. The names are untrusted, and must be escaped."""
    reviewed: int
    """Number of people's answers to calls that a reviewer in shadow mode saw."""
    reviewer: Answers
    """People's answers to those of these calls that the reviewer would have approved."""
    times_s: Sequence[float]
    """Seconds from question to answer, shortest first."""

    def share_of_times(self, share: float) -> float | None:
        """Return the seconds within which this share of questions was answered; `None` if no time is known."""
        times = self.times_s
        return times[ceil(share * len(times)) - 1] if times else None


def count(calls: Iterable[LoggedCall]) -> Stats:
    """Count calls."""
    fates: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {}
    all_answers: Counter[str] = Counter()
    reviewed, reviewer = 0, Counter[str]()
    times: list[float] = []
    hours: set[datetime] = set()
    for call in calls:
        is_answer = call.how == 'person'
        fates['asked' if is_answer or call.fate == 'open' else 'otherwise' if call.was_asked else call.fate] += 1
        if call.at is not None:
            hours.add(call.at.replace(minute=0, second=0, microsecond=0))
        if is_answer:
            all_answers[call.fate] += 1
            reviewed += call.reviewer_would is not None
            if call.reviewer_would == 'approve':
                reviewer[call.fate] += 1
            for name in set(call.decided_by):
                by.setdefault(name, Counter())[call.fate] += 1
            if call.answered_s is not None:
                times.append(call.answered_s)
    ranked = sorted(by.items(), key=lambda each: (-each[1].total(), each[0]))
    return Stats(
        calls=fates.total(),
        unasked=fates['unasked'],
        blocked=fates['blocked'],
        asked=fates['asked'],
        otherwise=fates['otherwise'],
        hours=len(hours),
        answers=_answers(all_answers),
        by=[(name, _answers(counted)) for name, counted in ranked],
        reviewed=reviewed,
        reviewer=_answers(reviewer),
        times_s=sorted(times),
    )


def stats_lines(stats: Stats) -> list[tuple[str, str]]:
    """Return names and values of the figures, in the order in which they are shown. Names of people are untrusted."""
    answers, times = stats.answers, stats.times_s
    asked = f'{stats.unasked} ran unasked, {stats.asked} asked a person'
    lines = [
        (
            'calls',
            f'{stats.calls}: {asked}, {stats.otherwise} decided otherwise, {stats.blocked} blocked',
        ),
        (
            'questions an hour',
            f'{stats.asked / stats.hours:.1f}, in {stats.hours} h with calls' if stats.hours else '-',
        ),
        ('approved', _share(answers.approved, answers.total)),
    ]
    median, most = stats.share_of_times(0.5), stats.share_of_times(0.9)
    if median is not None and most is not None:
        fast = sum(time < FAST_S for time in times)
        lines += [
            ('time to answer', f'median {_duration(median)}, 90 % within {_duration(most)}'),
            (f'answered in less than {FAST_S:g} s', _share(fast, len(times))),
        ]
    lines += [(f'by {name}', _share(each.approved, each.total)) for name, each in stats.by[:_MOST_NAMED]]
    if stats.reviewed:
        agreed = _share(stats.reviewer.approved, stats.reviewer.total)
        told = f'would have approved {stats.reviewer.total} of {stats.reviewed}; of these, people approved {agreed}'
        lines.append(('reviewer in shadow mode', told))
    more = len(stats.by) - _MOST_NAMED
    return [*lines, ('by others', f'{more} more approvers')] if more > 0 else lines


def _answers(counted: Counter[str]) -> Answers:
    return Answers(approved=counted['approved'], denied=counted['denied'], answered=counted['answered'])


def _share(part: int, whole: int) -> str:
    return f'{part} of {whole}{f" ({part / whole:.0%})" if whole else ""}'.replace('%', ' %')


def _duration(seconds: float) -> str:
    for unit, size in (('d', 86_400), ('h', 3_600), ('min', 60)):
        if seconds >= size:
            return f'{seconds / size:.1f} {unit}'
    return f'{seconds:.1f} s'
