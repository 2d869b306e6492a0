"""What a configuration lets happen unasked, in words: what somebody has to read before they trust it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tool_approval.settings.model import Settings
from tool_approval.tools.shell import ShellConfig


def allowances(settings: Settings, directory: Path) -> list[str]:
    """One line for each thing that a file loosens, or says in questions; empty if it only tightens the defaults."""
    return [*_tools(settings), *_files(settings, directory), *_commands(settings)]


def _tools(settings: Settings) -> Iterator[str]:
    for name, rule in settings.policy_config.tools.items():
        if rule.approval == 'none':
            yield f'the tool `{name}` runs unasked'
        if rule.description is not None:
            yield f'questions about the tool `{name}` describe it as: {rule.description}'
    if settings.default == 'none':
        yield 'every other tool of which nothing is said runs unasked'
    for profile, capabilities in settings.auto_grant.items():
        yield f'in the profile `{profile}` is granted unasked: {", ".join(capabilities)}'


def _files(settings: Settings, directory: Path) -> Iterator[str]:
    if settings.os_sandbox_fallback == 'refuse_tools':
        yield 'where commands cannot be confined, it starts without file and shell tools'
    top = Path(os.path.realpath(directory))
    for name, path in settings.sandbox.paths.items() if settings.sandbox is not None else ():
        place = os.path.realpath(top / path.root)
        where = (
            f'in {place}{"" if Path(place).is_relative_to(top) else ", outside of the working directory"} (`{name}`)'
        )
        if not path.read_approval:
            yield f'files are read unasked {where}'
        if path.mode == 'rw' and not path.write_approval:
            yield f'files are written and deleted unasked {where}'
        elif not Path(place).is_relative_to(top) and (path.mode == 'rw' or path.read_approval is True):
            yield f'files can be {"changed" if path.mode == "rw" else "read"}, if somebody consents, {where}'


def _commands(settings: Settings) -> Iterator[str]:
    if settings.shell is None:
        return
    for rule in settings.shell.rules:
        if rule.allowed and not rule.approval:
            limit = f', within {", ".join(rule.sandbox_paths)}' if rule.sandbox_paths else ''
            yield f'commands that begin with `{rule.pattern}` run unasked{limit}'
        if rule.description is not None:
            yield f'questions about commands that begin with `{rule.pattern}` describe them as: {rule.description}'
    if settings.shell.default.allowed and not settings.shell.default.approval:
        yield 'every command that no rule is about runs unasked'
    if settings.shell.network:
        yield 'commands may use the network'
    if settings.shell.timeout_s > ShellConfig().timeout_s:
        yield f'a command may take {settings.shell.timeout_s:g} seconds'
