"""Refuse every call of the file and shell tools, because an OS sandbox is required and none works."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tool_approval.core.errors import ApprovalBlocked
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.tools.file_sandbox import FileAccess, FileSandbox

from .confinement import ConfinedShell

if TYPE_CHECKING:
    from tool_approval.tools.shell import ShellResult

REFUSED: Final = (
    'File and shell tools are refused: the settings require an OS sandbox, and none works here. Tell the user, because '
    'no call of yours can change this.'
)
"""Message to the model."""


class RefusingShell(ConfinedShell):
    """Shell tool that refuses every command, because an OS sandbox is required but none works."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Refuse the command.

        Raises:
            PermissionError: Raised on every call.
        """
        raise PermissionError(REFUSED)

    async def run(self, command: str, access: Collection[str] | None = None, background: bool = False) -> ShellResult:
        """Refuse the command.

        Raises:
            ApprovalBlocked: Raised on every call.
        """
        raise ApprovalBlocked('shell', REFUSED)


class RefusingFiles(FileSandbox):
    """File sandbox that refuses every operation, because an OS sandbox is required but none works."""

    @contextmanager
    def open(
        self, operation: str, path: str, dest: str | None = None, *, is_exact: bool = False
    ) -> Generator[FileAccess]:
        """Refuse the operation.

        Raises:
            PermissionError: Raised on every call.
        """
        raise PermissionError(REFUSED)
        yield  # pragma: no cover - never reached; `contextmanager` needs a generator
