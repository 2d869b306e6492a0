"""The tools where the operating system confines commands: a command gets what it was allowed, and no more."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from tool_approval.errors import ApprovalBlocked
from tool_approval.os_sandbox import OSProfile, OSSandboxBackend, OSSandboxError, UnconfinedBackend
from tool_approval.request import ApprovalContext, ApprovalRequest
from tool_approval.tools.file_sandbox import Access, FileSandbox
from tool_approval.tools.shell import ShellConfig, ShellResult, ShellTool
from tool_approval.tools.shell.environment import clean_environment
from tool_approval.tools.shell.paths import Root

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
    """For a command that a person approved."""
    unasked: OSProfile
    """For one that ran without a question: it neither reads nor writes where the file tools would have to ask."""
    trusts_questions: bool = True
    """Whether a command that asks really was asked about; not where the policy pre-approves the whole shell tool."""


class ConfinedShell(ShellTool):
    """A shell tool whose commands run under the profile that fits how they were allowed."""

    def __init__(
        self,
        config: ShellConfig,
        confinement: Confinement,
        *,
        cwd: str | os.PathLike[str],
        roots: Mapping[str, Root] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
    ) -> None:
        """Compile the rules; see `ShellTool`.

        Raises:
            ApprovalConfigError: A rule names a root there is not, or does not decide its own examples.
            MissingExtraError: tree-sitter is not installed, and a rule has examples.
        """
        super().__init__(config, cwd=os.fspath(cwd), roots=roots, is_writable=is_writable, wrap=self._confined)
        self._confinement = confinement

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """See `ShellTool.check_approval`. What it said decides how the same command is confined when it runs here."""
        _judged.set(None)
        request = super().check_approval(ctx)
        _judged.set(_Judged(shell=self, command=ctx.args['command'], was_asked=request is not None))
        return request

    async def run(self, command: str) -> ShellResult:
        """See `ShellTool.run`. A command that nobody has judged, here and just now, is confined like an unasked one.

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
        judged = _judged.get()
        _judged.set(None)  # it lets one command run
        is_approved = (
            confinement.trusts_questions
            and judged is not None
            and judged.shell is self
            and judged.command == argv[-1]
            and judged.was_asked
        )
        values = clean_environment(os.environ)
        # Attack: a relative part of the search path, which a backend passes on, finds a program in the workspace.
        variables = [f'{name}={values[name]}' for name in _PASSED]
        profile = confinement.approved if is_approved else confinement.unasked
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
    def open(self, operation: str, path: str, dest: str | None = None) -> Generator[Access]:
        """Refuse.

        Raises:
            PermissionError: Always.
        """
        raise PermissionError(REFUSED)
        yield  # pragma: no cover - never reached; it makes this a generator, as `contextmanager` needs one


@dataclass(frozen=True, kw_only=True, eq=False)
class _Judged:
    """What `check_approval` said last, in this task."""

    shell: ConfinedShell
    command: str
    was_asked: bool


# From the check of a command to its execution, which every caller does in one task: the tool itself gets only the
# command. Judged again at its start, a link that was bent in between could make an unasked command an approved one
# (test_confinement.py).
_judged: ContextVar[_Judged | None] = ContextVar('tool_approval_confined_command', default=None)
