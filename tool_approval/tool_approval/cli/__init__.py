"""The command `tool-approval`: `python -P -m tool_approval.cli` is the same."""

from .program import main as main
