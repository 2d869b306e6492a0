"""Propose rules that spare questions which were always approved, from the calls of a verified log.

Attack: an agent, or a text that it reads, fills the log with calls that suggest a rule for more than the user approved,
or that shows otherwise than it works (test_proposals.py, test_suggest.py). So a rule names only plain ASCII texts, and
is proposed only if the rules with it let run no logged call that was refused, and cause no new warning of
`tool-approval check`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

from tool_approval.audit.calls import LoggedCall
from tool_approval.audit.stats import FAST_S
from tool_approval.core.arguments import HIDDEN
from tool_approval.core.config import parse_document
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.core.redact import REDACTED
from tool_approval.display.escape import is_plain
from tool_approval.settings.adding import rule_lines, with_rule
from tool_approval.settings.files import LoadedSettings
from tool_approval.settings.model import read_settings

from .check import remarks
from .conditions import LONGEST_VALUE, calls_with, conditions_of, runs_code
from .judging import FILE_TOOLS, SHELL_TOOLS
from .replay import Replayed, key_of

FEWEST: Final = 5
"""Number of approvals that a rule needs. Fewer questions cost less than a rule that is never read again."""
MOST: Final = 20
"""Number of rules that are proposed at once. A person is to read each of them."""

_MOST_TRIED: Final = 200
_LONGEST_LINE: Final = 1_000
_TOOL: Final = re.compile(r'[A-Za-z_][A-Za-z0-9_.-]{0,63}')
_FOLDER: Final = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})*')
_READING: Final = ('read_file', 'list_files')
_WRITING: Final = ('write_file', 'edit_file', 'delete', 'make_directory')


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A rule, what speaks for it, and what it would newly allow."""

    path: Sequence[str]
    """Keys from the top of the settings to the mapping or list that gets the rule."""
    name: str | None
    """Key of the rule, or `None` for an item of a list."""
    value: Mapping[str, Any]
    allows: str
    """Calls that would newly run without a question, in one line."""
    evidence: Sequence[LoggedCall] = ()
    """Approved calls that the rule would let run, oldest first."""

    @property
    def lines(self) -> list[str]:
        """Lines of the rule in a settings file, under its keys."""
        return rule_lines(self.path, self.name, self.value)

    def evidence_line(self) -> str:
        """Return how often, in how much time, and how fast the calls were approved."""
        times = [call.at for call in self.evidence if call.at is not None]
        days = len({at.date() for at in times})
        answered = [call.answered_s for call in self.evidence if call.answered_s is not None]
        fast = sum(seconds < FAST_S for seconds in answered)
        hasty = f'; {fast} of the answers took less than {FAST_S:g} s' if fast else ''
        period = f' on {days} {"day" if days == 1 else "days"}' if days else ''
        return f'approved {len(self.evidence)} times{period}, never denied{hasty}'


class Proposer:
    """Finds rules for one settings file, by what a verified log says about calls in its directory."""

    def __init__(self, loaded: LoadedSettings, text: str, directory: Path) -> None:
        """Use the settings of a file, and the text of this file.

        Raises:
            ApprovalError: The settings have a mistake.
        """
        self._loaded = loaded
        self._directory = directory
        self._now = Replayed(loaded, directory)
        self._remarks = _warnings_of(loaded, self._now)
        self._then = self._now
        self.text = text
        """Text of the file, with all rules that were proposed."""

    def proposals(self, calls: Iterable[LoggedCall], digests: frozenset[str]) -> list[Proposal]:
        """Return the rules, most evidence first, which can be added together.

        Args:
            calls: All calls of the log.
            digests: Digests that the settings file has had. Calls with other settings do not speak for a rule, but
                refusing them speaks against it.
        """
        approved: list[LoggedCall] = []
        refused: dict[bytes, LoggedCall] = {}
        for call in calls:
            if call.fate == 'approved' and not call.is_changed:
                is_here = call.settings_digest is None or call.settings_digest in digests
                if is_here and call.how == 'person' and self._now.decide(call) == 'ask':
                    approved.append(call)
            elif call.fate not in ('unasked', 'open') and self._now.decide(call) != 'allow':
                refused.setdefault(key_of(call), call)
        candidates = sorted(self._candidates(approved, list(refused.values())), key=_rank)
        found = (self._checked(each, refused.values()) for each in candidates[:_MOST_TRIED])
        return list(islice((each for each in found if each is not None), MOST))

    def _candidates(self, approved: Sequence[LoggedCall], refused: Sequence[LoggedCall]) -> Iterator[Proposal]:
        groups: dict[tuple[str, ...], list[LoggedCall]] = {}
        known: dict[bytes, list[tuple[str, ...]]] = {}
        for call in approved:
            same = key_of(call)
            if same not in known:
                known[same] = list(self._groups_of(call))
            for key in known[same]:
                groups.setdefault(key, []).append(call)
        names: dict[str, set[str]] = {}
        for call in (*approved, *refused):
            names.setdefault(call.tool_name, set()).update(call.payload or ())
        for (kind, *of), evidence in groups.items():
            if len(evidence) < FEWEST:
                continue
            if kind == 'tool':
                proposal = self._for_tool(of[0], evidence, names[of[0]])
            elif kind == 'command':
                proposal = _for_command(of[0])
            else:
                proposal = self._for_folder(*of, is_write=kind == 'write')
            if proposal is not None:
                yield replace(proposal, evidence=evidence)

    def _groups_of(self, call: LoggedCall) -> Iterator[tuple[str, ...]]:
        """Yield the rules that could spare the question: kind, and what the rule is about."""
        if call.tool_name not in FILE_TOOLS and call.tool_name not in SHELL_TOOLS:
            yield 'tool', call.tool_name
            return
        judgement = self._now.judgement(call)
        asks = [] if judgement is None else [part for part in judgement.parts if part.decision == 'ask']
        # A person decides each time about extra access, and about commands outside of the sandbox.
        if judgement is None or judgement.extra_access or len(asks) != 1:
            return
        part = asks[0]
        if part.kind == 'path' and call.tool_name in (*_READING, *_WRITING):
            kind = 'read' if call.tool_name in _READING else 'write'
            folders = part.text.partition(':')[2].split('/')[:-1]
            for depth in range(1, len(folders) + 1):
                yield kind, str(part.rule), '/'.join(folders[:depth])
        # A rule that a person wrote stays as it is.
        elif part.kind == 'command' and part.rule in (None, 'default'):
            # One part of a longer line becomes a rule, too.
            is_whole = call.payload is not None and part.text == call.payload.get('command')
            words = judgement.remember if is_whole else self._now.judge.shell.explain(part.text).remember
            if words is not None:
                yield 'command', ' '.join(words)

    def _for_tool(self, tool: str, evidence: Sequence[LoggedCall], names: Collection[str]) -> Proposal | None:
        found = self._now.rules.find(tool)
        if _TOOL.fullmatch(tool) is None or runs_code(tool):
            return None
        # A rule that a person wrote stays as it is.
        if found.decided_by is not None or found.has_cases or tool in self._loaded.settings.policy_config.tools:
            return None
        alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for call in evidence:
            payload = cast('Mapping[str, Any]', call.payload)  # else the call could not be judged
            alike.setdefault(tuple(sorted(payload)), []).append(payload)
        cases: list[dict[str, Any]] = []
        allows: list[str] = []
        for given, payloads in alike.items():
            when = conditions_of(given, payloads, names) if len(payloads) >= FEWEST else None
            if when is not None:
                cases.append({'when': when, 'approval': 'none'})
                allows.append(calls_with(tool, given, when))
        if not cases:
            return None
        is_limited = all(case['when'] for case in cases)
        value: dict[str, Any] = {'cases': cases} if is_limited else {'approval': 'none'}
        return Proposal(path=['tools'], name=tool, value=value, allows='; '.join(allows))

    def _for_folder(self, root: str, folder: str, *, is_write: bool) -> Proposal | None:
        paths = self._now.judge.files.config.paths
        if _FOLDER.fullmatch(folder) is None or root not in paths:
            return None
        outer, name = paths[root], folder.replace('/', '-')[:64]
        place = posixpath.normpath(posixpath.join(str(outer.root), folder))
        if name in paths or not is_plain(place) or len(place) > LONGEST_VALUE:
            return None
        value: dict[str, Any] = {
            'root': place,
            'mode': outer.mode,
            'write_approval': outer.write_approval and not is_write,
            'read_approval': outer.read_approval and is_write,
        }
        if outer.suffixes is not None:
            value['suffixes'] = list(outer.suffixes)
        done = 'change, create and delete' if is_write else 'read and list'
        allows = f'tools and commands can {done} every file in `{place}`, except secrets'
        return Proposal(path=['sandbox', 'paths'], name=name, value=value, allows=allows)

    def _checked(self, candidate: Proposal, refused: Iterable[LoggedCall]) -> Proposal | None:
        """Return a candidate with the evidence that it spares, or `None` if it must not or need not be proposed."""
        if any(not is_plain(line) or len(line) > _LONGEST_LINE for line in (*candidate.lines, candidate.allows)):
            return None
        try:
            text = with_rule(self.text, candidate.path, candidate.name, candidate.value)
            loaded = replace(self._loaded, settings=read_settings(parse_document(text)[0]))
            then = Replayed(loaded, self._directory)
        except ApprovalConfigError:
            return None
        spared = (call for call in candidate.evidence if self._then.decide(call) == 'ask')
        evidence = [call for call in spared if then.decide(call) == 'allow']
        if len(evidence) < FEWEST or _warnings_of(loaded, then) - self._remarks:
            return None
        concerned = [call for call in refused if _concerns(candidate, call)]
        if any(_is_unclear(candidate, call) or then.decide(call) in ('allow', 'unknown') for call in concerned):
            return None
        self.text, self._then = text, then
        return replace(candidate, evidence=evidence)


def _rank(proposal: Proposal) -> tuple[int, int, list[str]]:
    # Of folders with the same calls, the innermost comes first.
    return -len(proposal.evidence), -len(proposal.name or ''), proposal.lines


def _concerns(candidate: Proposal, call: LoggedCall) -> bool:
    match candidate.path[0]:
        case 'tools':
            return call.tool_name == candidate.name
        case 'shell':
            return call.tool_name in SHELL_TOOLS
        case _:
            return call.tool_name in FILE_TOOLS or call.tool_name in SHELL_TOOLS


def _is_unclear(candidate: Proposal, call: LoggedCall) -> bool:
    """Whether the log hides what a condition would compare."""
    text = json.dumps(call.payload)
    return candidate.path[0] == 'tools' and (call.payload is None or HIDDEN in text or REDACTED in text)


def _for_command(words: str) -> Proposal:
    allows = f'commands that begin with `{words}`, with arguments that are listed as safe'
    return Proposal(path=['shell', 'rules'], name=None, value={'pattern': words, 'approval': False}, allows=allows)


def _warnings_of(loaded: LoadedSettings, replayed: Replayed) -> frozenset[str]:
    found = remarks(loaded.settings, replayed.judge)
    return frozenset(each.message for each in found if each.level != 'note')
