"""Describe the decision on a command, part by part, and the wider approval that it allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from tool_approval.os_sandbox.access import AccessName

from .labels import label
from .names import MANY_TARGETS
from .unlisted import find_unlisted
from .words import SimpleCommand, Word, fixed
from .wrappers import unwrap

PartKind = Literal['command', 'redirection', 'assignment', 'syntax']
Outcome = Literal['allow', 'ask', 'block']
"""Runs unasked, asks, or never runs."""
_RANK: Final[dict[Outcome, int]] = {'allow': 0, 'ask': 1, 'block': 2}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing that a command does, and what was decided of it."""

    text: str
    """The stretch of the command."""
    kind: PartKind
    """What it is: a program with its arguments, a file that is written, a variable, or what is not understood."""
    decision: Outcome
    """What holds for this part alone."""
    rule: str | None
    """The pattern of the rule that decided, `default`, or `None` where no rule may."""
    reason: str
    """Why, in one sentence for a person."""

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON object with the names of the fields as keys."""
        return asdict(self)


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
    needs: frozenset[AccessName] = frozenset()
    """The extra access that its programs need where an OS sandbox gives them none."""
    named_paths: tuple[str, ...] = ()
    """Paths at which names may be made or removed, where `needs` has `names`."""

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


_SUB_COMMAND: Final = re.compile(r'[a-z][a-z0-9:_-]*')
_RUNS_MODULE: Final = (('python', '-m'), ('python3', '-m'))
_MODULE: Final = 'pytest'
"""Another could be a file of the working directory; this one runs the project's code by either name."""


def remembered_words(
    commands: Sequence[SimpleCommand], parts: Sequence[Part], is_here: Callable[[Word], bool]
) -> tuple[str, ...] | None:
    """The program and sub-command of a line that is one simple command and nothing else: `git commit`, `pytest`.

    No redirection, assignment or substitution, no argument that is not listed as safe, no path outside of the working
    directory, nothing that runs other commands: what is remembered for `git fetch` must never let
    `git fetch --upload-pack=...` run. A program without sub-commands is one that its entry says `remembered` of.
    """
    if len(commands) != 1 or any(part.kind != 'command' or part.decision != 'ask' for part in parts):
        return None
    [command] = commands
    words = command.words
    if command.redirects or command.assignments or command.is_fed or not all(word.is_fixed for word in words):
        return None
    before = tuple(word.value for word in words[:2])
    if before in _RUNS_MODULE and len(parts) == 2 and [word.value for word in words[2:3]] == [_MODULE]:
        inner = _plain_words(words[2:], is_here)
        return None if inner is None else (*before, *inner)
    return _plain_words(words, is_here) if len(parts) == 1 else None


def _plain_words(words: Sequence[Word], is_here: Callable[[Word], bool]) -> tuple[str, ...] | None:
    if not words or unwrap(words) is not None:
        return None
    found = label(words)
    end = found.sub_at
    # To run another target, or another script, is to run something else.
    entry = found.entry
    if entry is None or (entry.operands or ())[-1:] == ('command',) or entry.name == 'go run' or '/' in words[0].value:
        return None
    names_script = 'runs_files' in entry.flags and (entry.operands or ())[:1] == ('text',)
    if (
        entry.name in MANY_TARGETS
        or entry.name.endswith(' run')
        or (names_script and not entry.name.startswith('git '))
    ):
        end += 1
    names = tuple(word.value for word in words[:end])
    is_plain = end == len(names) and all(map(_SUB_COMMAND.fullmatch, names[1:]))
    if not is_plain or (end == 1 and 'remembered' not in entry.flags):
        return None
    paths = [each.value for each in found.labels if each.holds in ('read', 'write') and each.value is not None]
    is_elsewhere = not all(is_here(fixed(path)) for path in paths)
    return None if is_elsewhere or find_unlisted(words, named=found.sub_at) is not None else names
