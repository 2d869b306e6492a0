"""What is allowed and still cannot be done."""

from __future__ import annotations

from tool_approval.core.errors import ApprovalError


class FileToolError(ApprovalError):
    """A file operation that the rules allow did not happen. The sentence is made for a model."""

    def __init__(self, file: str, problem: str) -> None:
        """Name the file as `root:path`, never by its place on the host, and say what to do."""
        self.file = file
        self.problem = problem
        super().__init__(f'{file}: {problem}')
