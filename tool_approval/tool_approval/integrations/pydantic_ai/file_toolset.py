"""Offer the file tools as a toolset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.tools.file_sandbox import FileSandbox, FileToolError, FileTools, SandboxConfig

from .results import refuse

_OTHER_PATH = (
    'an approval is bound to the paths that were shown, so a call with another path is refused. To use another path, '
    'deny the call with a note that names the path.'
)


class FileToolset(FunctionToolset[Any]):
    """The eight file operations of a file sandbox, for an agent with `Approvals`.

    An agent with `Approvals` guards them; without them, it runs none.
    """

    def __init__(
        self,
        sandbox: FileSandbox | SandboxConfig | Mapping[str, Any],
        base: str | Path | None = None,
        *,
        prefix: str = '',
        id: str | None = 'files',
    ) -> None:
        """Offer the operations of a sandbox.

        Args:
            sandbox: A file sandbox, or its configuration.
            base: The directory that relative paths of a configuration start from; the current working directory if
                `None`.
            prefix: Prefix of the tools' names.
            id: The toolset's id. Durable agents need a different id for each toolset.

        Raises:
            ApprovalConfigError: Two roots are the same directory.
            ValidationError: The configuration is invalid.
        """
        super().__init__(id=id, sequential=True)  # a call may need a file that an earlier call made
        self.files = FileTools(
            sandbox if isinstance(sandbox, FileSandbox) else FileSandbox(sandbox, base), prefix=prefix
        )
        for name in self.files.names:
            self.add_function(getattr(self.files, name.removeprefix(prefix)), name=name, takes_ctx=False)

    @property
    def presenters(self) -> dict[str, Presenter]:
        """Presenters for `ApprovalController(presenters=...)`, by tool name: they show the effect of each call."""
        return dict.fromkeys(self.files.presenters, self._present)

    def _present(self, request: ApprovalRequest) -> ApprovalPresentation:
        """Show a call; see `FileTools.present`.

        Raises:
            FileToolError: The files have changed since the request was bound to them.
            PermissionError: The rules forbid the call, or the approver has changed the paths in its arguments.
        """
        try:
            return self.files.present(request)
        except FileToolError:
            now = self.files.check_approval(ApprovalContext(tool_name=request.tool_name, args=request.args))
            self.files.forget()
            files: Mapping[str, Any] = {} if now is None else now.bound_to['files']
            if files.keys() != request.bound_to.get('files', {}).keys():
                raise PermissionError(_OTHER_PATH) from None
            raise

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Check a call for the enclosing `ApprovalToolset`; see `FileTools.check_approval`."""
        return self.files.check_approval(ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a file operation.

        Raises:
            UserError: Nothing guards the call.
            ToolFailed: The call was refused or failed.
        """
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except PermissionError as error:
            refuse(str(error), 'refused')
        except FileToolError as error:
            refuse(str(error))
