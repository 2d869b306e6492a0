"""What is said of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

Decision = Literal['allow', 'ask', 'block']
"""It runs unasked, somebody is asked, or it never runs."""
STRICTNESS: Final[dict[Decision, int]] = {'allow': 0, 'ask': 1, 'block': 2}


@dataclass(frozen=True, kw_only=True)
class Said:
    """What one rule says of one part of a call."""

    text: str
    """The part: a command, a file that is written, a path, or the tool itself."""
    kind: str
    """`command`, `redirection`, `assignment` or `syntax`; `path`; `tool`; `arguments`."""
    decision: Decision
    """What holds for this part alone."""
    rule: str | None
    """The pattern of the shell rule, the name of the root, the name or glob of the tool rule, or `default`; `None`
    where no rule may decide."""
    reason: str
    """Why, for a person."""

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
class Judgement:
    """What the policy says of a call."""

    deciding: Said
    """What counts."""
    parts: Sequence[Said]
    """All that was said, the deciding one among it."""

    @property
    def decision(self) -> Decision:
        """What holds for the call."""
        return self.deciding.decision

    @property
    def rule(self) -> str | None:
        """The rule that decides; see `Said`."""
        return self.deciding.rule

    def as_json(self) -> dict[str, Any]:
        """`decision`, `rule` and `parts`."""
        return {
            'decision': self.decision,
            'rule': self.rule,
            'parts': [part.as_json() for part in self.parts],
        }


S = TypeVar('S', Said, Judgement)


def strictest(said: Sequence[S]) -> S:
    """The first of the strictest; of what is allowed, the first that a rule allows."""
    return max(said, key=lambda each: (STRICTNESS[each.decision], each.decision == 'allow' and each.rule is not None))
