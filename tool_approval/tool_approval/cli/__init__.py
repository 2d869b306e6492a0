"""The command `tool-approval`: `python -m tool_approval.cli` is the same."""

from .program import main as main
