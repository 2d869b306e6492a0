"""Provide the command `tool-approval`. `python -P -m tool_approval.cli` starts the same command."""

from .program import main as main
