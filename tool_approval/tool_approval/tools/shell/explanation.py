"""What was decided of a command, part by part, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

Outcome = Literal['allow', 'ask', 'block']
"""Runs unasked, somebody is asked, or never runs."""
_RANK: Final[dict[Outcome, int]] = {'allow': 0, 'ask': 1, 'block': 2}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing that a command does, and what was decided of it."""

    text: str
    """The stretch of the command."""
    kind: Literal['command', 'redirection', 'assignment', 'syntax']
    """What it is: a program with its arguments, a file that is written, a variable, or what is not understood."""
    decision: Outcome
    """What holds for this part alone."""
    rule: str | None
    """The pattern of the rule that decided, `default`, or `None` where no rule may."""
    reason: str
    """Why, in one sentence for a person."""

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON object with the names of the fields as keys."""
        return {
            'text': self.text,
            'kind': self.kind,
            'decision': self.decision,
            'rule': self.rule,
            'reason': self.reason,
        }


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What was decided of a whole command."""

    command: str
    """The command."""
    parts: tuple[Part, ...]
    """Its parts in the order in which they are judged; at least one."""
    description: str | None = None
    """What the rule that asks says of it, where it says something."""
    remember: tuple[str, ...] | None = None
    """The program and sub-command that a wider approval may name, if the command is plain enough for one."""

    @property
    def decision(self) -> Outcome:
        """The strictest of the parts'."""
        return max((part.decision for part in self.parts), key=lambda outcome: _RANK[outcome])

    @property
    def deciding(self) -> Part:
        """The first part that is as strict as the whole."""
        return next(part for part in self.parts if part.decision == self.decision)

    def as_json(self) -> dict[str, Any]:
        """A JSON object: `decision`, `rule` (of the deciding part), `reason` (likewise), `parts` in order."""
        return {
            'decision': self.decision,
            'rule': self.deciding.rule,
            'reason': self.deciding.reason,
            'parts': [part.as_json() for part in self.parts],
        }
