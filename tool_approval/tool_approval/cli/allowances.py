"""What a configuration lets happen unasked, in words: what somebody has to read before they trust it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tool_approval.settings.model import Settings


def allowances(settings: Settings, directory: Path) -> list[str]:
    """One line for each thing that runs unasked, or is within reach; empty if it only tightens the defaults."""
    return [*_tools(settings), *_files(settings, directory), *_commands(settings)]


def _tools(settings: Settings) -> Iterator[str]:
    for name, rule in settings.policy_config.tools.items():
        if rule.approval == 'none':
            yield f'the tool `{name}` runs unasked'
    if settings.default == 'none':
        yield 'every other tool of which nothing is said runs unasked'
    for profile, capabilities in settings.auto_grant.items():
        yield f'in the profile `{profile}` is granted unasked: {", ".join(capabilities)}'


def _files(settings: Settings, directory: Path) -> Iterator[str]:
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
        elif not Path(place).is_relative_to(top) and (path.mode == 'rw' or path.read_approval):
            yield f'files can be {"changed" if path.mode == "rw" else "read"}, if somebody consents, {where}'


def _commands(settings: Settings) -> Iterator[str]:
    if settings.shell is None:
        return
    for rule in settings.shell.rules:
        if rule.allowed and not rule.approval:
            limit = f', within {", ".join(rule.sandbox_paths)}' if rule.sandbox_paths else ''
            yield f'commands that begin with `{rule.pattern}` run unasked{limit}'
    if settings.shell.default.allowed and not settings.shell.default.approval:
        yield 'every command that no rule is about runs unasked'
    if settings.shell.network:
        yield 'commands may use the network'
