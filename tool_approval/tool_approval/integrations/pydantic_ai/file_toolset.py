"""The file tools as a toolset."""

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
    'an approval is bound to the paths that were shown, so with another path it is refused. Deny it with a note that '
    'names the path instead.'
)


class FileToolset(FunctionToolset[Any]):
    """The eight file operations under a file sandbox, for `ApprovalToolset(FileToolset(...), controller)`.

    Without an `ApprovalToolset` around it, it defers what needs approval by itself, and runs it where it was approved:
    the rules of the sandbox hold, those of a policy are not asked.
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
            sandbox: The rules, or the configuration to make them of.
            base: Where relative paths begin, for a configuration; the working directory as it is now if `None`.
            prefix: Stands before the name of each tool.
            id: The toolset's id; durable agents need one of each.

        Raises:
            ApprovalConfigError: Two roots are the same directory.
            ValidationError: The configuration says something that nobody can mean.
        """
        super().__init__(id=id, sequential=True)  # a call may need what an earlier one made
        self.files = FileTools(
            sandbox if isinstance(sandbox, FileSandbox) else FileSandbox(sandbox, base), prefix=prefix
        )
        for name in self.files.names:
            self.add_function(getattr(self.files, name.removeprefix(prefix)), name=name, takes_ctx=False)

    @property
    def presenters(self) -> dict[str, Presenter]:
        """For `ApprovalController(presenters=...)`: what is shown of each tool's calls."""
        return dict.fromkeys(self.files.presenters, self._present)

    def _present(self, request: ApprovalRequest) -> ApprovalPresentation:
        """See `FileTools.present`.

        Raises:
            FileToolError: The files are no longer what the request is bound to.
            PermissionError: The rules forbid the call, or a person has changed its paths.
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
        """See `FileTools.check_approval`; an `ApprovalToolset` around it calls this."""
        return self.files.check_approval(ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Do the operation.

        Raises:
            ApprovalRequired: Somebody has to consent first, and no `ApprovalToolset` asked.
            ToolFailed: It is refused, or could not be done; on hosts without it, that is the result.
        """
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except PermissionError as error:
            return refuse(str(error), 'refused')
        except FileToolError as error:
            return refuse(str(error))
