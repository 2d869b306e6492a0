"""The shell tool as a toolset that an agent takes as it is."""

from __future__ import annotations

from typing import Any

from pydantic_ai.toolsets import FunctionToolset

from tool_approval.request import ApprovalContext, ApprovalRequest
from tool_approval.tools.shell import ShellTool


class ShellToolset(FunctionToolset[Any]):
    """One tool, `run_shell(command)`, that says itself which commands need approval.

    Put it into an `ApprovalToolset`. By itself it refuses what is blocked and runs everything else: nobody is there to
    be asked.
    """

    def __init__(self, shell: ShellTool, *, id: str | None = None) -> None:
        """Offer a shell tool.

        Args:
            shell: The rules, and how commands run.
            id: The toolset's id, for durable agents.
        """
        super().__init__(id=id)
        self.shell = shell
        self.add_function(self.run_shell, name='run_shell', takes_ctx=False)

    async def run_shell(self, command: str) -> str:
        """Run a command in bash and return its output.

        Each call starts in the same working directory with a fresh shell; nothing is read from standard input. Simple
        commands are approved more readily than long lines.

        Args:
            command: The command line.
        """
        return await self.shell(command)

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """What `ShellTool.check_approval` says.

        Raises:
            PermissionError: The command is blocked.
        """
        return self.shell.check_approval(ctx)
