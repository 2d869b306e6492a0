"""What holds in a folder that has no settings file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tool_approval.settings import PathSettings, SandboxSettings, Settings
from tool_approval.tools.shell import ShellConfig, ShellRule

ROOT: Final = 'project'
"""What messages call the working directory."""

LOOKING: Final = (
    'ls', 'pwd', 'cat', 'head', 'tail', 'wc', 'grep', 'rg', 'find', 'stat', 'file', 'diff', 'sort', 'uniq', 'cut', 'tree',
    'git status', 'git log', 'git diff', 'git show', 'git branch',
)  # fmt: skip
"""Commands that only look, as long as they have none of the options that write or execute. Where they name no path, they
look at the working directory."""


def default_settings(*, is_confined: bool) -> Settings:
    """Reading in the working directory is free, changes and commands are asked about.

    Args:
        is_confined: Whether an OS sandbox confines commands. Only then those that look at the working directory, and
            at nothing beside it, run unasked.
    """
    rules = [ShellRule(pattern=pattern, approval=False, sandbox_paths=(ROOT,)) for pattern in LOOKING]
    return Settings(
        sandbox=SandboxSettings(paths={ROOT: PathSettings(root=Path('.'), mode='rw')}),
        shell=ShellConfig(rules=tuple(rules) if is_confined else ()),
    )
