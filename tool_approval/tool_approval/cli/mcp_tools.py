"""Implement `tool-approval mcp-tools`: offer the tools of `run` to an MCP client."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, cast

import anyio
from pydantic import ValidationError

from tool_approval import __version__
from tool_approval.assistant.build import limits_of
from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import ApprovalError
from tool_approval.core.execute import execute_tool
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.integrations.mcp import refusal
from tool_approval.integrations.pydantic_ai import FileToolset, ShellToolset
from tool_approval.integrations.pydantic_ai.shell_toolset import EXTRAS
from tool_approval.settings.workspace import RUN_SHELL

from .guarded import Guarded, open_chosen
from .mcp import failures_for_client, served, stdio
from .output import Output

# After `integrations.mcp`, which says how to install the SDK.
from mcp.server.lowlevel import Server  # isort: skip
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool  # isort: skip


def run(options: argparse.Namespace, output: Output) -> int:
    """Serve until the client ends. Returns: 0, or 128 + N for a signal."""
    with failures_for_client(), ExitStack() as stack:
        return served(_serve(_Tools(open_chosen(options, stack, output))))


async def _serve(tools: _Tools) -> int:
    async def list_tools(context: object, params: object) -> ListToolsResult:
        return ListToolsResult(tools=tools.listed)

    async def call_tool(context: object, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult.model_validate(await tools.call(params.name, dict(params.arguments or {})))

    server = Server('tool-approval', version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio() as (read, write):
        # The SDK's own type of streams is private.
        await server.run(cast('Any', read), cast('Any', write), server.create_initialization_options())
    return 0


class _Tools:
    """File tools and shell of a directory. Their calls run one after the other, in order of arrival."""

    def __init__(self, guarded: Guarded) -> None:
        workspace = guarded.workspace
        shell = ShellToolset(workspace.shell, reasons=limits_of(workspace)[1])
        self._guarded = guarded
        self._shell = shell
        self._known = {**FileToolset(workspace.files).tools, **shell.tools}
        self._turn = anyio.Lock()
        self._session = secrets.token_hex(8)

    @property
    def listed(self) -> list[Tool]:
        """The definitions that `run` gives its model."""
        found = [each.tool_def for each in self._known.values()]
        return [
            Tool(name=each.name, description=each.description, input_schema=each.parameters_json_schema)
            for each in found
        ]

    async def call(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool if it is allowed, and return its result, or why there is none."""
        if name not in self._known:
            return refusal(f'There is no tool {name!r}.')
        wanted = {key: value for key, value in given.items() if name != RUN_SHELL or key not in EXTRAS}
        # The presenters of the controller are those of these file tools.
        if name in self._shell.tools:
            tool = _Tool(self._shell.check_approval, self._known[name].function)
        else:
            tool = _Tool(self._guarded.files[name].check_approval, self._guarded.files[name])
        facts = {'caller': 'mcp-tools', 'session_id': self._session, 'run_id': self._session}
        try:
            args = self._known[name].function_schema.validator.validate_python(wanted)
            async with self._turn:
                result = await execute_tool(tool, name, args, self._guarded.controller, facts, default='required')
        except ValidationError as error:
            problems = [f'{".".join(map(str, each["loc"]))}: {each["msg"]}' for each in error.errors()]
            return refusal(f'The arguments of {name!r} are invalid: {"; ".join(problems)}')
        except (ApprovalError, PermissionError) as error:
            return refusal(str(error))
        text = result if isinstance(result, str) else canonical_json(result)
        if tool.ran not in (None, args):
            changed = f'The approver changed the arguments of this call, which ran with: {canonical_json(tool.ran)}'
            text = f'{text}\n\n[{changed}]'
        return {'content': [{'type': 'text', 'text': text}]}


class _Tool:
    """A tool with its check. It keeps the arguments with which it ran."""

    def __init__(
        self, check: Callable[[ApprovalContext], ApprovalRequest | None], function: Callable[..., Any]
    ) -> None:
        self._check = check
        self._function = function
        self.ran: dict[str, Any] | None = None

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        return self._check(ctx)

    def __call__(self, **arguments: Any) -> Any:
        self.ran = arguments
        return self._function(**arguments)
