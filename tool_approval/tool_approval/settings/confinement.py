"""The tools where the operating system confines commands: a command gets what it was allowed, and no more."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tool_approval.core.errors import ApprovalBlocked
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.tool_checks import take_approval
from tool_approval.os_sandbox import OSProfile, OSSandboxBackend, OSSandboxError, UnconfinedBackend
from tool_approval.tools.file_sandbox import FileAccess, FileSandbox
from tool_approval.tools.shell import ShellConfig, ShellResult, ShellTool
from tool_approval.tools.shell.environment import clean_environment
from tool_approval.tools.shell.paths import ShellRoot

REFUSED: Final = (
    'Files and commands are refused: the settings require that the operating system confines commands, and it cannot '
    'here. Tell the user; nothing you can call changes it.'
)
"""For a model. What is missing, and how to install it, is in the error at the start and in the log."""

_NOT_CONFINED: Final = 'The command was not run: the operating system cannot confine it as the settings require.'
_ENV: Final = '/usr/bin/env'
_PASSED: Final = ('PATH', 'PAGER', 'GIT_PAGER', 'GIT_TERMINAL_PROMPT', 'TERM')
"""What a confined command is given in the values that the shell tool has for them, and a backend does not."""

_log = logging.getLogger('tool_approval')


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """What the operating system lets commands do."""

    backend: OSSandboxBackend
    """Who confines them."""
    approved: OSProfile
    """For a command that an approver approved, the mode `approve_all`, or memory."""
    unasked: OSProfile
    """For every other one, whichever rule let it run: it neither reads nor writes where the file tools would have to
    ask."""


class ConfinedShell(ShellTool):
    """A shell tool whose commands run under the profile that fits how they were allowed."""

    def __init__(
        self,
        config: ShellConfig,
        confinement: Confinement,
        *,
        cwd: str | os.PathLike[str],
        roots: Mapping[str, ShellRoot] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
    ) -> None:
        """Compile the rules; see `ShellTool`.

        Raises:
            ApprovalConfigError: A rule names a root there is not, or does not decide its own examples.
            MissingExtraError: tree-sitter is not installed, and a rule has examples.
        """
        super().__init__(config, cwd=os.fspath(cwd), roots=roots, is_writable=is_writable, wrap=self._confined)
        self._confinement = confinement

    async def run(self, command: str) -> ShellResult:
        """See `ShellTool.run`. Only the command of a call whose own decision approved it gets the wider profile.

        Raises:
            ApprovalBlocked: A rule blocks it, or it cannot be confined.
            MissingExtraError: tree-sitter is not installed.
            asyncio.CancelledError: The wait was cancelled, and the command ended.
        """
        try:
            return await super().run(command)
        except OSSandboxError as error:
            _log.error('A command was not run: %s', error)
            raise ApprovalBlocked('shell', _NOT_CONFINED) from error

    def _confined(self, argv: list[str]) -> list[str]:
        confinement = self._confinement
        if isinstance(confinement.backend, UnconfinedBackend):
            return argv
        values = clean_environment(os.environ)
        # Attack: a relative part of the search path, which a backend passes on, finds a program in the workspace.
        profile = confinement.approved if take_approval({'command': argv[-1]}) else confinement.unasked
        passed = {name: values[name] for name in _PASSED} | dict(profile.variables)
        variables = [f'{name}={passed[name]}' for name in _PASSED]
        return confinement.backend.wrap([_ENV, *variables, *argv], profile, self.cwd)


class RefusingShell(ConfinedShell):
    """Where an OS sandbox is required and none works: every command is refused, and nobody is asked."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Refuse.

        Raises:
            PermissionError: Always.
        """
        raise PermissionError(REFUSED)

    async def run(self, command: str) -> ShellResult:
        """Refuse.

        Raises:
            ApprovalBlocked: Always.
        """
        raise ApprovalBlocked('shell', REFUSED)


class RefusingFiles(FileSandbox):
    """The same for files."""

    @contextmanager
    def open(self, operation: str, path: str, dest: str | None = None) -> Generator[FileAccess]:
        """Refuse.

        Raises:
            PermissionError: Always.
        """
        raise PermissionError(REFUSED)
        yield  # pragma: no cover - never reached; it makes this a generator, as `contextmanager` needs one
