"""What can go wrong before a command is confined. In every case it does not run."""

from __future__ import annotations

from tool_approval.core.errors import ApprovalError


class OSSandboxError(ApprovalError):
    """A command cannot be confined as its profile says, so it does not run."""

    def __init__(self, problem: str, *, path: str | None = None) -> None:
        """Say what stands in the way, and at which path of the host."""
        self.problem = problem
        self.path = path
        super().__init__(problem if path is None else f'{path!r}: {problem}')


class OSSandboxUnavailable(OSSandboxError):
    """No backend works on this machine, and the configuration requires one."""
