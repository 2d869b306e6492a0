"""Remember the tool name and arguments of each call that was approved for the session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tool_approval.core.arguments import read_arguments
from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError

from .types import ApprovalDecision


class ApprovalMemory:
    """Approvals for the session, kept in this process.

    Two calls are the same if their tool names and their arguments in canonical JSON are equal. A call is not remembered
    if JSON cannot represent its arguments, or if the tool's own JSON form hides or alters them. The approver is asked
    about such a call each time.
    """

    def __init__(self) -> None:
        self._approvals: dict[tuple[str, str], ApprovalDecision] = {}

    def lookup(self, tool_name: str, args: Mapping[str, Any]) -> ApprovalDecision | None:
        """Return the approval of exactly this call, or `None`."""
        key = _key(tool_name, args)
        return None if key is None else self._approvals.get(key)

    def store(self, tool_name: str, args: Mapping[str, Any], decision: ApprovalDecision) -> None:
        """Remember an approval that has `remember='session'`, and ignore any other decision."""
        key = _key(tool_name, args)
        if key is not None and decision.approved and decision.remember == 'session':
            self._approvals[key] = decision

    def list_approvals(self) -> list[tuple[str, dict[str, Any], ApprovalDecision]]:
        """Return `(tool_name, args, decision)` of each approval, oldest first, with the arguments in JSON form."""
        return [(tool_name, json.loads(args), decision) for (tool_name, args), decision in self._approvals.items()]

    def clear(self) -> None:
        """Forget all approvals."""
        self._approvals.clear()

    def __len__(self) -> int:
        """Return the number of approvals."""
        return len(self._approvals)


def _key(tool_name: str, args: Mapping[str, Any]) -> tuple[str, str] | None:
    try:
        read = read_arguments(args)
    except NotCanonicalError:
        return None
    return None if read.is_altered else (tool_name, canonical_json(read.shown))
