"""The file tools as a toolset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        functions: list[Callable[..., str]] = [
            self._read_file,
            self._list_files,
            self._write_file,
            self._edit_file,
            self._make_directory,
            self._move,
            self._copy,
            self._delete,
        ]
        for function in functions:
            self.add_function(function, name=f'{prefix}{function.__name__[1:]}', takes_ctx=False)

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

    def _read_file(self, path: str) -> str:
        """Read a text file.

        Args:
            path: The file, relative to the working directory.
        """
        return self.files.run(f'{self.files.prefix}read_file', {'path': path})

    def _list_files(self, path: str) -> str:
        """List the names in a directory.

        Args:
            path: The directory, relative to the working directory.
        """
        return self.files.run(f'{self.files.prefix}list_files', {'path': path})

    def _write_file(self, path: str, content: str) -> str:
        """Write a text file, new or in place of an existing one. Directories that are missing are made.

        Args:
            path: The file, relative to the working directory.
            content: Its whole new content.
        """
        return self.files.run(f'{self.files.prefix}write_file', {'path': path, 'content': content})

    def _edit_file(self, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        """Replace a piece of a text file by another.

        Args:
            path: The file, relative to the working directory.
            old_text: What is replaced. It has to match exactly, and to occur once.
            new_text: What takes its place.
            replace_all: Replace it everywhere, if it occurs more than once.
        """
        arguments = {'path': path, 'old_text': old_text, 'new_text': new_text, 'replace_all': replace_all}
        return self.files.run(f'{self.files.prefix}edit_file', arguments)

    def _make_directory(self, path: str) -> str:
        """Make a directory, and those above it that are missing.

        Args:
            path: The directory, relative to the working directory.
        """
        return self.files.run(f'{self.files.prefix}make_directory', {'path': path})

    def _move(self, path: str, dest: str) -> str:
        """Move or rename a file or a directory. A file at the destination is replaced.

        Args:
            path: What to move, relative to the working directory.
            dest: Its new path, name included.
        """
        return self.files.run(f'{self.files.prefix}move', {'path': path, 'dest': dest})

    def _copy(self, path: str, dest: str) -> str:
        """Copy a file. A file at the destination is replaced.

        Args:
            path: The file, relative to the working directory.
            dest: The path of the copy, name included.
        """
        return self.files.run(f'{self.files.prefix}copy', {'path': path, 'dest': dest})

    def _delete(self, path: str) -> str:
        """Delete a file, or a directory with everything in it. Of a link, only the link goes.

        Args:
            path: What to delete, relative to the working directory.
        """
        return self.files.run(f'{self.files.prefix}delete', {'path': path})
