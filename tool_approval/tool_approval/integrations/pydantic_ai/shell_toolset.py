"""Offer the shell tool as a toolset for an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool
from pydantic_ai.toolsets.abstract import SchemaValidatorProt
from pydantic_core import SchemaValidator, ValidationError, from_json

from tool_approval.core.errors import check_type
from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.settings import ConfinedShell
from tool_approval.tools.shell import ShellResult, ShellTool

EXTRAS: Final = ('description', 'timeout')
"""Arguments that the shell tools of other agents have, and that models therefore give. They have no effect."""
BACKGROUND: Final = 'background_processes'
"""Name of the tool for commands that run in the background."""
_TMP: Final = ('empty at the start of each call', 'lasts for the conversation')
"""Words of the description about `/tmp`, and their replacement if `/tmp` lasts."""


class _TakesExtras:
    """Validates the arguments of a call without `EXTRAS`."""

    def __init__(self, inner: SchemaValidator | SchemaValidatorProt) -> None:
        self._inner = inner

    def validate_json(self, input: str | bytes | bytearray, **options: Any) -> Any:
        try:
            return self._inner.validate_json(input, **options)
        except ValidationError as error:
            if not _names_extras(error):
                raise
        return self._inner.validate_python(_without_extras(from_json(input)), **options)

    def validate_python(self, input: Any, **options: Any) -> Any:
        try:
            return self._inner.validate_python(input, **options)
        except ValidationError as error:
            if not _names_extras(error):
                raise
        return self._inner.validate_python(_without_extras(input), **options)


def _names_extras(error: ValidationError) -> bool:
    return any(
        each['type'] in ('extra_forbidden', 'unexpected_keyword_argument') and each['loc'][0] in EXTRAS
        for each in error.errors(include_input=False)
    )


def _keeping_tmp(tool: ToolDefinition) -> ToolDefinition:
    return replace(tool, description=(tool.description or '').replace(*_TMP))


def _without_extras(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in EXTRAS}


class ShellToolset(FunctionToolset[Any]):
    """One tool, `run_shell(command)`, which itself decides which commands need approval.

    If commands can run in the background, `background_processes(number, end)` lists, reads and ends these.

    An agent with `Approvals` guards it; without them, it runs no command.
    """

    def __init__(self, shell: ShellTool, *, id: str | None = None, reasons: Mapping[str, str] | None = None) -> None:
        """Offer a shell tool.

        Args:
            shell: The shell tool, which has the rules and runs the commands.
            id: The toolset's id, for durable agents.
            reasons: Explanations to add to the result of a failed command. Each key is a text in the error output, such
                as `Read-only file system`, and its value explains the text.

        Raises:
            TypeError: `shell` is not a `ShellTool`.
        """
        check_type('shell', shell, 'a `ShellTool`', ShellTool)
        super().__init__(id=id, sequential=True)  # a call may need a file that an earlier call made
        self.shell = shell
        self._reasons = dict(reasons or {})
        if isinstance(shell, ConfinedShell) and shell.can_be_given_access:
            self.add_function(self.run_confined_shell, name='run_shell', takes_ctx=False)
            if shell.can_run_in_background:
                self.add_function(self.background_processes, takes_ctx=False)
        else:
            self.add_function(self.run_shell, name='run_shell', takes_ctx=False)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools. They also take the arguments `EXTRAS`."""
        tools = await super().get_tools(ctx)
        keeps_tmp = isinstance(self.shell, ConfinedShell) and self.shell.keeps_tmp
        return {
            name: replace(
                tool,
                args_validator=_TakesExtras(tool.args_validator),
                tool_def=_keeping_tmp(tool.tool_def) if keeps_tmp else tool.tool_def,
            )
            for name, tool in tools.items()
        }

    async def run_confined_shell(self, command: str, access: list[str] | None = None, background: bool = False) -> str:
        """Run a command in bash and return its output.

        Each call starts in the same working directory with a fresh shell; nothing is read from standard input. An OS
        sandbox confines the command; its `/tmp` is private, and empty at the start of each call. To end a command after
        a minute, write `timeout 60 command`. Simple commands are approved more readily than long lines.

        Args:
            command: The command line.
            access: Leave this out at first. If a command failed and its result names missing access, pass that access
                here, and the user is asked to allow it: `write`, `git`, `network` or `environment`. `host`, alone, runs
                one simple command outside of the sandbox with the keys and logins of the user, if the settings list it.
            background: Whether to return at once and let the command run on, such as a server for later commands. It
                writes only in a `/tmp` of its own, and can be given no access but `network`.
        """
        assert isinstance(self.shell, ConfinedShell), 'only a confined shell has the parameter `access`'
        return self._text_of(await self.shell.run(command, access, background))

    async def background_processes(self, number: int | None = None, end: bool = False) -> str:
        """List the commands that run in the background, or read what one has printed since the last time.

        Args:
            number: Number of the process to read. Leave this out for a list.
            end: Whether to end the process.
        """
        assert isinstance(self.shell, ConfinedShell), 'only a confined shell has background processes'
        return await self.shell.background_processes(number, ends=end)

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
        """Presenter for UIs in which the approver can change a command. The presenter shows the changed command."""
        return {'run_shell': self._present}

    def _present(self, request: ApprovalRequest) -> ApprovalPresentation:
        """Show the command and its working directory.

        Raises:
            PermissionError: The command is blocked, or is not a string.
        """
        asked = self.shell.check_approval(ApprovalContext(tool_name=request.tool_name, args=request.args))
        if asked is not None and asked.presentation is not None:
            return asked.presentation
        # The command would run without asking, so the tool has no presentation for it.
        command = request.args['command']
        return ApprovalPresentation(type='command', content=command, language='bash', metadata={'cwd': self.shell.cwd})

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Check a call for the enclosing `ApprovalToolset`; see `ShellTool.check_approval`.

        Raises:
            PermissionError: The command is blocked.
        """
        # It reaches only what this conversation has started, so it needs no approval.
        if ctx.tool_name.endswith(BACKGROUND) and 'command' not in ctx.args:
            return None
        return self.shell.check_approval(ctx)
