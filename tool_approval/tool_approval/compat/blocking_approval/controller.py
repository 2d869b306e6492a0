"""Combine a mode with a callback and a memory."""

from __future__ import annotations

import inspect

from tool_approval.core.canonical import canonical_json
from tool_approval.core.decision import ApprovalMode, read_mode

from .memory import ApprovalMemory
from .types import ApprovalCallback, ApprovalDecision, ApprovalRequest, ensure_decision


class ApprovalController:
    """Provides the `approval_callback` and the `memory` of an `ApprovalToolset`.

    The mode has precedence over the callback: with `approve_all` and `strict`, the callback is never called.
    """

    def __init__(self, mode: str = 'interactive', approval_callback: ApprovalCallback | None = None) -> None:
        """Set the mode and the callback, and start with an empty memory.

        Args:
            mode: `interactive` asks the callback, `approve_all` approves every request, and `strict` denies them all.
            approval_callback: Callback that asks the approver. Without a callback, `interactive` raises when an
                approver must be asked.

        Raises:
            ValueError: The mode is unknown.
        """
        self.mode: ApprovalMode = read_mode(mode)
        self._callback = approval_callback
        self._memory = ApprovalMemory()

    @property
    def memory(self) -> ApprovalMemory:
        """Calls approved for the session."""
        return self._memory

    @property
    def approval_callback(self) -> ApprovalCallback:
        """Function that decides a request according to the mode.

        Raises:
            NotImplementedError: In mode `interactive`, there is no callback. This error is also a `RuntimeError`.
        """
        if self.mode == 'approve_all':
            return lambda request: ApprovalDecision(approved=True)
        if self.mode == 'strict':
            return lambda request: ApprovalDecision(
                approved=False, note=f'Strict mode: approval required for {request.tool_name!r}'
            )
        if self._callback is None:
            raise NotImplementedError('interactive mode needs a callback that decides; pass an `approval_callback`')
        return self._callback

    def request_approval_sync(self, request: ApprovalRequest) -> ApprovalDecision:
        """Decide a request by mode, then memory, then callback. Remember an approval that has `remember='session'`.

        Raises:
            NotImplementedError: The mode is `interactive`, but there is no callback.
            TypeError: The callback is async, or did not return a decision.
        """
        remembered = self._memory.lookup(request.tool_name, request.tool_args)
        if self.mode == 'interactive' and remembered is not None:
            return remembered
        answer = self.approval_callback(request)
        if inspect.iscoroutine(answer):
            answer.close()  # otherwise Python warns that it was never awaited
        decision = ensure_decision(answer)
        self._memory.store(request.tool_name, request.tool_args, decision)
        return decision

    @property
    def session_approvals(self) -> frozenset[tuple[str, str]]:
        """Tool name and arguments, in canonical JSON, of each call approved for the session."""
        return frozenset((tool_name, canonical_json(args)) for tool_name, args, _ in self._memory.list_approvals())

    def is_session_approved(self, request: ApprovalRequest) -> bool:
        """Whether exactly this call was approved for the session."""
        return self._memory.lookup(request.tool_name, request.tool_args) is not None

    def add_session_approval(self, request: ApprovalRequest) -> None:
        """Approve exactly this call for the session."""
        decision = ApprovalDecision(approved=True, remember='session')
        self._memory.store(request.tool_name, request.tool_args, decision)

    def clear_session_approvals(self) -> None:
        """Forget all approvals for the session."""
        self._memory.clear()
