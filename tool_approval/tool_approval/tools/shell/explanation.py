"""Describe the decision on a command part by part, and the approval that may be remembered for it."""

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
"""Whether a command runs without approval, requires approval, or never runs."""
_RANK: Final[dict[Outcome, int]] = {'allow': 0, 'ask': 1, 'block': 2}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a command, and the decision on it."""

    text: str
    """The part as written in the command."""
    kind: PartKind
    """A program with its arguments, a redirection, a variable that is set, or text that is not understood."""
    decision: Outcome
    """Decision on this part alone."""
    rule: str | None
    """Pattern of the deciding rule, `default`, or `None` if neither a rule nor the default decided."""
    reason: str
    """Reason in one sentence, for the approver."""

    def as_json(self) -> dict[str, Any]:
        """Return the part as a JSON object, with its fields as keys."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Decision on a whole command."""

    command: str
    """The command."""
    parts: tuple[Part, ...]
    """Parts in the order in which they were judged; at least one."""
    description: str | None = None
    """Description of the rule that requires approval, if the rule has a description."""
    remember: tuple[str, ...] | None = None
    """Program and sub-command that an approval may be remembered for; `None` if the command is not plain enough."""
    needs: frozenset[AccessName] = frozenset()
    """Extra access that the command's programs need in an OS sandbox."""
    named_paths: tuple[str, ...] = ()
    """Paths at which files may be created or removed, if `needs` contains `names`."""

    @property
    def decision(self) -> Outcome:
        """The strictest decision of a part."""
        return max((part.decision for part in self.parts), key=lambda outcome: _RANK[outcome])

    @property
    def deciding(self) -> Part:
        """The first part with the strictest decision."""
        return next(part for part in self.parts if part.decision == self.decision)

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object with `decision`, `rule` and `reason` of the deciding part, and `parts` in order."""
        return {
            'decision': self.decision,
            'rule': self.deciding.rule,
            'reason': self.deciding.reason,
            'parts': [part.as_json() for part in self.parts],
        }


_SUB_COMMAND: Final = re.compile(r'[a-z][a-z0-9:_-]*')
_RUNS_MODULE: Final = (('python', '-m'), ('python3', '-m'))
_MODULE: Final = 'pytest'
"""Only module that an approval of `python -m` is remembered for. Other modules may be files of the working
directory."""


def remembered_words(
    commands: Sequence[SimpleCommand], parts: Sequence[Part], is_here: Callable[[Word], bool]
) -> tuple[str, ...] | None:
    """Return the program and sub-command of a line that is a single plain command: `git commit`, `pytest`.

    A plain command has no redirection, assignment or substitution, only arguments listed as safe, and only paths in the
    working directory, and it runs no other command. So an approval remembered for `git fetch` never covers `git fetch
    --upload-pack=...`. A program without sub-commands must be marked `remembered` in its entry.
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
    # Running another target or script is another action, so the name of the target is part of the words.
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
