"""What holds of a file: all of it if it is trusted, and otherwise what makes the defaults stricter, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from tool_approval.core.config import ToolRule
from tool_approval.tools.shell import ShellConfig, ShellDefault, ShellRule

from .files import LoadedSettings
from .model import DEFAULT_SANDBOX, PathSettings, SandboxSettings, Settings


def effective(loaded: LoadedSettings) -> Settings:
    """The settings to work under.

    Those of a file that is not trusted only tighten: under them nothing runs unasked that would be asked about without
    the file, nothing outside of the working directory is within reach, and what the file blocks is blocked.

    - `mode`, `require_os_sandbox` and `os_sandbox_fallback` hold as they are.
    - `default: none` and each `approval: none` are as if they were not there, and so is `auto_grant`.
    - Every `description` is gone: it would stand in the question that the user is asked.
    - Roots outside of the working directory are gone; the rest is asked about, for reading too.
    - Shell rules that let a command run unasked are gone, so the rules behind them decide, or the default, which asks
      or blocks. A rule that asks no longer holds in roots that are gone; one that blocks there blocks everywhere.
    - There is no network, and the time limit is that of the file or the default one, whichever is shorter.
    """
    settings = loaded.settings
    if loaded.trusted:
        return settings
    sandbox = None if settings.sandbox is None else _sandbox(settings.sandbox, loaded.directory)
    known = frozenset((sandbox or DEFAULT_SANDBOX).paths)
    return Settings(
        mode=settings.mode,
        default=None if settings.default == 'none' else settings.default,
        tools={name: _rule(rule) for name, rule in settings.tools.items()},
        custom_tools={name: _rule(rule) for name, rule in settings.custom_tools.items()},
        sandbox=sandbox,
        shell=None if settings.shell is None else _shell(settings.shell, known),
    )


def _rule(rule: ToolRule) -> ToolRule:
    return ToolRule(approval=None if rule.approval == 'none' else rule.approval)


def _sandbox(sandbox: SandboxSettings, directory: Path) -> SandboxSettings:
    top = Path(os.path.realpath(directory))
    paths = {
        name: PathSettings(
            root=path.root,
            mode=path.mode,
            suffixes=path.suffixes,
            write_approval=True,
            read_approval=path.read_approval or True,
        )
        for name, path in sandbox.paths.items()
        if Path(os.path.realpath(top / path.root)).is_relative_to(top)
    }
    return SandboxSettings(
        paths=paths, require_os_sandbox=sandbox.require_os_sandbox, os_sandbox_fallback=sandbox.os_sandbox_fallback
    )


def _shell(shell: ShellConfig, known: frozenset[str]) -> ShellConfig:
    kept = [_shell_rule(rule, known) for rule in shell.rules if rule.approval or not rule.allowed]
    return ShellConfig(
        default=ShellDefault(allowed=shell.default.allowed),
        rules=tuple(rule for rule in kept if rule is not None),
        timeout_s=min(shell.timeout_s, ShellConfig().timeout_s),
    )


def _shell_rule(rule: ShellRule, known: frozenset[str]) -> ShellRule | None:
    paths = tuple(name for name in rule.sandbox_paths if name in known)
    if paths != rule.sandbox_paths:
        if rule.allowed and not paths:
            return None
        paths = paths if rule.allowed else ()
    # Its examples may be decided by other rules now.
    return ShellRule(pattern=rule.pattern, allowed=rule.allowed, sandbox_paths=paths)
