"""What goes wrong before or around a run, in a sentence for the person at the terminal."""

from tool_approval.core.errors import ApprovalError


class AssistantError(ApprovalError):
    """The text says what is wrong, and what to do where something can be done."""
