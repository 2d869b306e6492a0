"""Which of the configured rules is in force for a tool: found by its name, and by the globs that match it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Final, Literal, Protocol

Approval = Literal['required', 'none', 'blocked']
"""Ask about every call, about none, or refuse them all."""


class Rule(Protocol):
    """What is configured under one name or glob, as `ToolRule` has it."""

    @property
    def approval(self) -> Approval | None:
        """Ask, do not ask, or refuse; `None` leaves it to the tool."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def description(self) -> str | None:
        """One line for the person who is asked."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, kw_only=True)
class InForce:
    """What all matching rules come to."""

    approval: Approval | None = None
    """As in a rule; `None` also if nothing is configured."""
    description: str | None = None
    """Of the rule that decides, or of a weightier one that leaves the decision to it."""
    decided_by: str | None = None
    """The name or glob of the rule that decides; `None` if none does."""


class ToolRules:
    """The rules under `tools`. An exact name beats a glob, more literal characters beat fewer, a block beats all."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        """Compile the globs."""
        self._rules = rules
        # The weightiest first; the pattern itself comes last, so that the order of the mapping never matters.
        globs = sorted(
            (name for name in rules if any(character in name for character in '*?[')),
            key=lambda name: (_literals(name), _STRICTNESS[rules[name].approval], name),
            reverse=True,
        )
        self._globs = [(re.compile(translate(name)).fullmatch, name) for name in globs]

    def find(self, tool_name: str) -> InForce:
        """What is in force for a tool."""
        names = [name for matches, name in self._globs if matches(tool_name)]
        if tool_name in self._rules:
            names.insert(0, tool_name)
        approval: Approval | None = None
        description: str | None = None
        decided_by: str | None = None
        for name in names:
            rule = self._rules[name]
            # Not of a rule that weighs less than the one that decides: it would hide what the tool says itself.
            if approval is None:
                approval, description = rule.approval, description or rule.description
                decided_by = None if approval is None else name
        block = next((name for name in names if self._rules[name].approval == 'blocked'), None)
        if block is not None:
            approval, decided_by = 'blocked', block
        return InForce(approval=approval, description=description, decided_by=decided_by)


_STRICTNESS: Final[dict[Approval | None, int]] = {None: 0, 'none': 1, 'required': 2, 'blocked': 3}


def _literals(pattern: str) -> int:
    # A class matches one character, however many it lists. `]` is listed where it stands first, and a `[` that is never
    # closed is a character like others: this is how `fnmatch` reads them.
    return len(re.sub(r'\[!?+\]?+[^\]]*+\]|[*?]', '', pattern))
