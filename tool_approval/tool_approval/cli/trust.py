"""Implement `tool-approval trust`: show what a configuration would allow, and trust its current content."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tool_approval.core.config import RuleCase
from tool_approval.core.offers import Offer
from tool_approval.settings.files import LoadedSettings, expanded, find_settings, trust_settings
from tool_approval.settings.model import Settings
from tool_approval.settings.trust import TrustStore
from tool_approval.tools.shell import ShellConfig

from .check import alike, inspect, unasked_commands, worst
from .judging import existing_directory
from .output import FAILED, Output, UsageError

QUESTION: Final = 'Trust this file as it is now?'
NOT_TRUSTED: Final = 'the file was not trusted'


def run(options: argparse.Namespace, output: Output) -> int:
    """Show what the file would allow, and ask whether to trust it. With `--revoke`, only revoke the trust."""
    if options.revoke:
        return _revoke(options, output)
    _, loaded, findings = inspect(options.file, options.cwd)
    for first, *others in alike([each for each in findings if each.level != 'note']):
        more = f' (the same applies to {", ".join(each.about for each in others)})' if others else ''
        output.note(f'{first.level}: {": ".join(part for part in (first.key, first.message) if part)}{more}')
    if loaded is None or worst(findings) == 'error':
        output.note(f'{NOT_TRUSTED}: correct its errors first')
        return FAILED
    if loaded.trusted:
        output.line(f'{loaded.source} is trusted already')
        return 0
    for text in what_it_would_allow(loaded):
        output.line(text)
    if not (options.yes or output.agrees(QUESTION, NOT_TRUSTED)):
        return FAILED
    trust_settings(loaded, TrustStore())
    output.line('The file is trusted until it changes.')
    return 0


def what_it_would_allow(loaded: LoadedSettings) -> list[str]:
    """Return the lines that help the user to decide whether to trust a configuration."""
    found = allowances(loaded.settings, loaded.directory) or ['nothing beyond the defaults']
    return [f'{loaded.source} would allow:', *(f'  - {text}' for text in found)]


def _revoke(options: argparse.Namespace, output: Output) -> int:
    found = options.file or find_settings(existing_directory(options.cwd))
    if found is None:
        raise UsageError('there is no approvals.yaml here; give the path of the file')
    # The file may not exist any more.
    was = TrustStore().revoke(os.path.abspath(found))
    output.line(f'{found} is not trusted any more' if was else f'{found} was not trusted')
    return 0


def allowances(settings: Settings, directory: Path) -> list[str]:
    """Return a line for each setting that loosens a default or adds text to questions. Presets' settings are included.

    The list is empty if no setting is less strict than the default.

    Raises:
        ApprovalConfigError: A preset and the settings use the same name for two directories.
        MissingExtraError: The settings extend presets, and PyYAML is not installed.
    """
    settings = expanded(settings)
    unlogged = [] if settings.audit.unasked else ['calls that run without approval have no line `unasked` in the log']
    return [*_tools(settings), *_files(settings, directory), *_commands(settings), *unlogged]


def _tools(settings: Settings) -> Iterator[str]:
    free = [f'`{name}`' for name, rule in settings.policy_config.tools.items() if rule.approval == 'none']
    if free:
        yield f'tools that need no approval: {", ".join(free)}'
    for name, rule in settings.policy_config.tools.items():
        for case in rule.cases:
            if case.approval == 'none':
                yield f'calls of the tool `{name}` need no approval if {_joined(list(_conditions(case)), "and")}'
        for description in filter(None, (rule.description, *(case.description for case in rule.cases))):
            yield f'in questions, the tool `{name}` is described as: {description}'
        for offer in rule.remember:
            yield f'questions about the tool `{name}` offer approvals {_offered(offer)}'
        if 'respond' in (rule.answers or ()):
            yield f'an approver can answer in place of the tool `{name}`'
    if settings.default == 'none':
        yield 'every tool without a rule runs without approval'
    for profile, capabilities in settings.auto_grant.items():
        yield f'the profile `{profile}` grants these capabilities without approval: {", ".join(capabilities)}'


def _offered(offer: Offer) -> str:
    match offer.same:
        case None:
            covers = 'of calls with the same other arguments' if offer.total else 'of the same call'
        case ():
            covers = 'of every call'
        case names:
            covers = f'of calls with the same {_joined([f"`{name}`" for name in names], "and")}'
    return f'{covers}, {offer.text}'


def _conditions(case: RuleCase) -> Iterator[str]:
    for argument, condition in case.when.items():
        for key, value in condition.model_dump(by_alias=True, exclude_unset=True).items():
            yield f'`{argument}` {key} {json.dumps(value, ensure_ascii=False)}'


def _files(settings: Settings, directory: Path) -> Iterator[str]:
    if settings.os_sandbox_fallback == 'refuse_tools':
        yield 'if commands cannot be confined, an agent starts without file and shell tools'
    for folder in settings.sandbox.toolchains if settings.sandbox is not None else ():
        yield f'commands can read and run everything in {folder}'
    for glob in settings.sandbox.visible if settings.sandbox is not None else ():
        yield f'files that match `{glob}` are treated as free of secrets: commands can read them'
    top = Path(os.path.realpath(directory))
    for name, path in settings.sandbox.paths.items() if settings.sandbox is not None else ():
        place = os.path.realpath(top / path.root)
        is_far = not Path(place).is_relative_to(top)
        where = f'in {place}{", outside of the working directory" if is_far else ""} (`{name}`)'
        is_written = path.mode == 'rw' and not path.write_approval
        done = [*([] if path.read_approval else ['read']), *(['written', 'deleted'] if is_written else [])]
        if done:
            yield f'files can be {_joined(done, "and")} without approval {where}'
        if is_far and not is_written and (path.mode == 'rw' or path.read_approval is True):
            yield f'files can be {"changed" if path.mode == "rw" else "read"} with approval {where}'


def _commands(settings: Settings) -> Iterator[str]:
    if settings.shell is None:
        return
    for conditions, patterns in unasked_commands(settings).items():
        yield f'commands that begin with {_joined(patterns, "or")} run without approval{conditions}'
    for rule in settings.shell.rules:
        if rule.description is not None:
            yield f'in questions, a command that begins with `{rule.pattern}` is described as: {rule.description}'
    if settings.shell.default.allowed and not settings.shell.default.approval:
        yield 'confined commands without a matching rule run without approval'
    if settings.shell.host:
        listed = _joined([f'`{each}`' for each in settings.shell.host], 'or')
        yield f'commands that begin with {listed} may run outside of the OS sandbox, as you, each time you approve one'
    if settings.shell.environment:
        yield f'commands get {_joined([f"`{each}`" for each in settings.shell.environment], "and")} of your environment'
    if settings.shell.network:
        yield 'commands may use the network'
    if settings.shell.timeout_s > ShellConfig().timeout_s:
        yield f'a command may run for up to {settings.shell.timeout_s:g} seconds'


def _joined(words: list[str], last: str) -> str:
    return words[0] if len(words) == 1 else f'{", ".join(words[:-1])} {last} {words[-1]}'
