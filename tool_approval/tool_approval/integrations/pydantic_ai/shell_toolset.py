"""The shell tool as a toolset that an agent takes as it is."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from tool_approval.request import ApprovalContext, ApprovalRequest
from tool_approval.tools.shell import ShellTool

from .binding import CHANGED, find_binding
from .requests import REQUEST_KEY
from .results import refuse


class ShellToolset(FunctionToolset[Any]):
    """One tool, `run_shell(command)`, that says itself which commands need approval.

    Put it into an `ApprovalToolset`. Without one it defers what needs approval by itself, and runs it where it was
    approved: the rules of the shell hold, those of a policy are not asked.
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
        """What `ShellTool.check_approval` says; an `ApprovalToolset` around it calls this.

        Raises:
            PermissionError: The command is blocked.
        """
        request = self.shell.check_approval(ctx)
        _judged.set((self, ctx.args['command']))
        return request

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a command that was judged; judge it where nobody has.

        Raises:
            ApprovalRequired: Somebody has to consent first, and no `ApprovalToolset` asked.
            ToolFailed: It is refused; on hosts without it, that is the result.
        """
        judged = _judged.get()
        _judged.set(None)  # it lets one command run
        try:
            if judged is None or judged[0] is not self or judged[1] != tool_args.get('command'):
                self._judge(name, tool_args, ctx)
            return await super().call_tool(name, tool_args, ctx, tool)
        except PermissionError as error:
            return refuse(str(error))

    def _judge(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any]) -> None:
        request = self.shell.check_approval(ApprovalContext(tool_name=name, args=tool_args))
        if request is None:
            return
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={REQUEST_KEY: request, 'approval_description': request.description})
        binding = find_binding(ctx)
        if binding is not None and binding.get('bound_to') != request.bound_to:
            raise PermissionError(CHANGED)


# From the check of a command to its execution, which an `ApprovalToolset` does in one task.
_judged: ContextVar[tuple[ShellToolset, str] | None] = ContextVar('tool_approval_judged_command', default=None)
