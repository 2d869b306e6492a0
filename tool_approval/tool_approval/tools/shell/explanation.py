"""Describe the decision on each part of a command, and the approval that may be remembered for the command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from tool_approval.os_sandbox.access import AccessName

from .labels import LabelledCommand, label
from .names import MANY_TARGETS
from .needs import needed_access
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
    """Kind: a program with its arguments, a redirection, an assignment, or text that could not be parsed."""
    decision: Outcome
    """Decision on this part alone."""
    rule: str | None
    """Pattern of the deciding rule; `default` if the default decided; otherwise `None`."""
    reason: str
    """Reason for the decision, for the approver."""

    def as_json(self) -> dict[str, Any]:
        """Return the part as a JSON object, with its fields as keys."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Decision on a whole command."""

    command: str
    """The command."""
    parts: tuple[Part, ...]
    """Parts in the order in which they were checked. Every command has at least one part."""
    description: str | None = None
    """Description of the rule that requires approval, or `None`."""
    remember: tuple[str, ...] | None = None
    """Program and sub-command for which an approval can be remembered; `None` if the command is not plain."""
    needs: frozenset[AccessName] = frozenset()
    """Extra access that the command needs if an OS sandbox confines it."""
    is_local: bool = False
    """Whether all network addresses of the command are on this machine. Servers of the same conversation need no
    access."""
    only_reads: bool = False
    """Whether every program of the command is known to write nothing with its arguments, and to run nothing."""

    @property
    def decision(self) -> Outcome:
        """The strictest decision on any part."""
        return max((part.decision for part in self.parts), key=lambda outcome: _RANK[outcome])

    @property
    def deciding(self) -> Part:
        """The first part with the strictest decision."""
        return next(part for part in self.parts if part.decision == self.decision)

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object with the decision, its rule and reason, and all parts of the command."""
        return {
            'decision': self.decision,
            'rule': self.deciding.rule,
            'reason': self.deciding.reason,
            'parts': [part.as_json() for part in self.parts],
        }


_SUB_COMMAND: Final = re.compile(r'[a-z][a-z0-9:_-]*')
_MODULES: Final = (('python', '-m', 'pytest'), ('python3', '-m', 'pytest'))
"""The only module for which an approval of `python -m` can be remembered. Any other module could come from a file in
the working directory."""


def remembered_words(
    commands: Sequence[SimpleCommand], parts: Sequence[Part], is_here: Callable[[Word], bool]
) -> tuple[str, ...] | None:
    """Return program and sub-command, such as `git commit`, if the line is a single plain command; otherwise `None`.

    In a plain command, all arguments are listed as safe, and all paths are in the working directory. A plain command
    contains no redirection, assignment, substitution or other command. For example, an approval for `git fetch` does
    not cover `git fetch --upload-pack=...`. A program without sub-commands must be marked `remembered` in its entry.
    """
    # A command that the default allows may still ask for more access.
    is_open = all(part.decision == 'ask' or (part.decision == 'allow' and part.rule == 'default') for part in parts)
    if len(commands) != 1 or not is_open or any(part.kind != 'command' for part in parts):
        return None
    [command] = commands
    words = command.words
    if command.redirects or command.assignments or command.is_fed or not all(word.is_fixed for word in words):
        return None
    before = 2 if tuple(word.value for word in words[:3]) in _MODULES else 0
    inner = _plain_words(words[before:], is_here) if len(parts) == (2 if before else 1) else None
    return None if inner is None else (*(word.value for word in words[:before]), *inner)


def _plain_words(words: Sequence[Word], is_here: Callable[[Word], bool]) -> tuple[str, ...] | None:
    if not words or unwrap(words) is not None:
        return None
    found = label(words)
    end = found.sub_at
    entry = found.entry
    if entry is None or (entry.operands or ())[-1:] == ('command',) or '/' in words[0].value:
        return None
    # Running another target is another action, so the name of the target is part of the words.
    end += entry.name in MANY_TARGETS
    names = tuple(word.value for word in words[:end])
    is_plain = end == len(names) and all(map(_SUB_COMMAND.fullmatch, names[1:]))
    if not is_plain or (end == 1 and 'remembered' not in entry.flags):
        return None
    if entry.name.startswith('git ') and not _is_covered_git(found):
        return None
    # Attack: `openssl rsa -in /x` and `-in=/x`, where the file is only a text to the entry.
    values = [each.word.value if each.value is None else each.value for each in found.labels[found.sub_at :]]
    paths = [part for value in values for part in (value, *re.split('[=:,]', value)[1:])]
    is_elsewhere = not all(is_here(fixed(path)) for path in paths)
    return None if is_elsewhere or find_unlisted(words, named=found.sub_at) is not None else names


_GIT: Final[Mapping[str, frozenset[str]]] = {
    'git add': frozenset(
        {'-A', '--all', '-u', '--update', '-v', '--verbose', '-n', '--dry-run', '-N', '--intent-to-add'}
    ),
    'git commit': frozenset({'-m', '--message', '-q', '--quiet', '-a', '--all', '-s', '--signoff', '-v', '--verbose'}),
}
"""Git sub-commands that write and for which an approval can be remembered, with the options that it covers."""


def _is_covered_git(found: LabelledCommand) -> bool:
    """Return whether an approval of a git sub-command can be remembered for other arguments.

    Attack: `git checkout -b x` and `git checkout .`, which discards changes; `git commit` and `git commit --ame`.
    """
    assert found.entry is not None, 'the caller has checked it'
    covered = _GIT.get(found.entry.name)
    if covered is None:
        return not needed_access(found.words)
    given = (each.word.value.partition('=')[0] for each in found.labels if each.word.value.startswith('--'))
    return found.options <= covered and covered.issuperset(name for name in given if name != '--')
