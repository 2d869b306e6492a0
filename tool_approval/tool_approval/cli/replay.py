"""Implement `tool-approval replay`: what other rules would have decided about the calls of a log."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from tool_approval.audit.calls import LoggedCall, logged_calls
from tool_approval.core.approvers import ApproverRule
from tool_approval.core.canonical import canonical_json
from tool_approval.core.config import ToolRules
from tool_approval.core.errors import NotCanonicalError
from tool_approval.os_sandbox import BubblewrapBackend
from tool_approval.settings.files import LoadedSettings, load_settings

from .judging import CallJudge, Judgement, existing_directory, read_call
from .log_file import known_entries
from .output import Output, UsageError

NEW_ACCESS: Final = 1
Decided = Literal['allow', 'ask', 'block', 'unknown']
"""Decision about a call; `unknown` if the log lacks what the rules need to know."""


def run(options: argparse.Namespace, output: Output) -> int:
    """Print what changes, and a summary."""
    directory = existing_directory(options.cwd)
    loaded = settings_in(directory, options.settings)
    replayed = Replayed(loaded, directory)
    entries, is_verified = known_entries(options.log, options.key)
    unreadable = 0

    def readable() -> Iterator[Mapping[str, Any] | None]:
        nonlocal unreadable
        for entry in entries:
            unreadable += entry is None
            yield entry

    changes: Counter[tuple[str, str, str, str]] = Counter()
    total = same = new = looser = unknown = 0
    for call in logged_calls(readable()):
        before, after = decided_then(call), replayed.decide(call)
        total += 1
        unknown += after == 'unknown'
        is_looser = after == before == 'ask' and not replayed.asks_as_many(call)
        if after == before and not is_looser:
            same += 1
            continue
        looser += is_looser
        new += after == 'allow'
        mark = '  (other approvers suffice)' if is_looser else _mark(after)
        changes[_shown(call), f'{before} ({call.fate})' if before == 'ask' else before, after, mark] += 1
    for (what, before, after, mark), times in changes.items():
        output.line(f'{times:6}x  {before} -> {after}{mark}  {what}')
    output.line(f'{total} calls: {same} decided as before, {new} would newly run unasked, {unknown} not judged')
    if looser:
        output.line(f'for {looser} of these, other or fewer people than before could approve')
    if unreadable:
        output.line(f'{unreadable} lines of the log cannot be read')
    if not is_verified:
        output.note('the log was not verified; with `--key FILE`, it is')
    return NEW_ACCESS if options.no_new_access and (new or looser or unknown or unreadable) else 0


def settings_in(directory: Path, file: str | None) -> LoadedSettings:
    """Return the named settings, or those of a directory.

    Raises:
        UsageError: There is no settings file.
        ApprovalError: The settings have a mistake.
    """
    loaded = load_settings(None if file is None else Path(file).absolute(), directory=directory)
    if loaded.source is None:
        raise UsageError(f'there is no approvals.yaml in {directory}; `tool-approval init` writes one')
    return loaded


def decided_then(call: LoggedCall) -> Decided:
    """Return what the log says was decided by the rules."""
    return 'ask' if call.was_asked else 'allow' if call.fate == 'unasked' else 'block'


class Replayed:
    """Decides calls of a log with certain settings, as on a machine whose OS sandbox works. Runs nothing."""

    def __init__(self, loaded: LoadedSettings, directory: Path) -> None:
        """Use the settings as if they were trusted.

        Raises:
            ApprovalError: The settings have a mistake.
        """
        # The answers must not depend on the machine, because a check in CI must not pass for lack of a sandbox.
        self.judge = CallJudge(replace(loaded, trusted=True), directory, find_backend=lambda _: BubblewrapBackend())
        self.rules = ToolRules(loaded.settings.policy_config.tools)
        self._known: dict[bytes, Judgement | None] = {}

    def decide(self, call: LoggedCall) -> Decided:
        """Return the decision about a call, by what the log has of it."""
        found = self.rules.find(call.tool_name)
        if found.approval == 'blocked' and not found.has_cases:  # also if the log has no payload
            return 'block'
        judgement = self.judgement(call)
        return 'unknown' if judgement is None else judgement.deciding.decision

    def judgement(self, call: LoggedCall) -> Judgement | None:
        """Return the whole decision about a call, or `None` if it cannot be judged."""
        key = key_of(call)
        if key not in self._known:
            self._known[key] = self._judge(call)
        return self._known[key]

    def asks_as_many(self, call: LoggedCall) -> bool:
        """Return whether all approvals that would now be enough for a call would have been so then."""
        judgement = self.judgement(call)
        now = () if judgement is None else judgement.approvers
        try:
            then = [ApproverRule.model_validate(each) for each in call.approvers]
        except ValidationError:
            return False
        return all(any(mine.is_as_strict_as(each) for mine in now) for each in then)

    def _judge(self, call: LoggedCall) -> Judgement | None:
        try:
            return self.judge.judge(*read_call(call.tool_name, call.payload))
        except Exception:  # noqa: BLE001 - judge the other calls too; no command takes this one as allowed
            return None


def key_of(call: LoggedCall) -> bytes:
    """Return a digest of the tool and the payload, for comparing calls."""
    # Attack: a text in a log that was not verified has half a character, and no canonical form.
    return sha256(json.dumps([call.tool_name, call.payload], sort_keys=True).encode()).digest()


def _shown(call: LoggedCall) -> str:
    try:
        return f'{call.tool_name} {"-" if call.payload is None else canonical_json(call.payload)}'
    except NotCanonicalError:
        return f'{call.tool_name} {json.dumps(call.payload)}'


def _mark(after: Decided) -> str:
    return '  (newly unasked)' if after == 'allow' else ''
