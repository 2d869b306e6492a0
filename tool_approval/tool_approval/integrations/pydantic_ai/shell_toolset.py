"""The shell tool as a toolset that an agent takes as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai.toolsets import FunctionToolset

from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.settings import ConfinedShell
from tool_approval.tools.shell import ShellResult, ShellTool


class ShellToolset(FunctionToolset[Any]):
    """One tool, `run_shell(command)`, that says itself which commands need approval.

    Put it into an `ApprovalToolset`. Without one it defers what needs approval by itself, and runs it where it was
    approved: the rules of the shell hold, those of a policy are not asked.
    """

    def __init__(self, shell: ShellTool, *, id: str | None = None, reasons: Mapping[str, str] | None = None) -> None:
        """Offer a shell tool.

        Args:
            shell: The rules, and how commands run.
            id: The toolset's id, for durable agents.
            reasons: Sentences to add to the result of a command that failed, by a text that it has then: what
                `Read-only file system` means here.
        """
        super().__init__(id=id, sequential=True)  # a call may need what an earlier one made
        self.shell = shell
        self._reasons = dict(reasons or {})
        if isinstance(shell, ConfinedShell) and shell.can_be_given_access:
            self.add_function(self.run_confined_shell, name='run_shell', takes_ctx=False)
        else:
            self.add_function(self.run_shell, name='run_shell', takes_ctx=False)

    async def run_confined_shell(self, command: str, access: list[str] | None = None) -> str:
        """Run a command in bash and return its output.

        Each call starts in the same working directory with a fresh shell; nothing is read from standard input. An OS
        sandbox confines the command. Simple commands are approved more readily than long lines.

        Args:
            command: The command line.
            access: Leave this out at first. Where a command failed and its result names access that it did not have,
                name here what it needs, to have the user asked: `network`, `git`, `environment` or `names`.
        """
        assert isinstance(self.shell, ConfinedShell), 'no other shell has this parameter'
        return self._text_of(await self.shell.run(command, access))

    async def run_shell(self, command: str) -> str:
        """Run a command in bash and return its output.

        Each call starts in the same working directory with a fresh shell; nothing is read from standard input. Simple
        commands are approved more readily than long lines.

        Args:
            command: The command line.
        """
        return self._text_of(await self.shell.run(command))

    def _text_of(self, result: ShellResult) -> str:
        result_text = result.for_model()
        added = [f'[{why}]' for text, why in self._reasons.items() if result.exit_status and text in result.stderr]
        return '\n'.join([result_text, *added])

    @property
    def presenters(self) -> dict[str, Presenter]:
        """For a UI that lets a person change a command: what is shown of the changed one. The first question has it."""
        return {'run_shell': self._present}

    def _present(self, request: ApprovalRequest) -> ApprovalPresentation:
        """The command, and where it runs.

        Raises:
            PermissionError: It is blocked, or no text.
        """
        asked = self.shell.check_approval(ApprovalContext(tool_name=request.tool_name, args=request.args))
        if asked is not None and asked.presentation is not None:
            return asked.presentation
        # It would run unasked, so the tool has nothing to say of it.
        command = request.args['command']
        return ApprovalPresentation(type='command', content=command, language='bash', metadata={'cwd': self.shell.cwd})

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """What `ShellTool.check_approval` says; an `ApprovalToolset` around it calls this.

        Raises:
            PermissionError: The command is blocked.
        """
        return self.shell.check_approval(ctx)
