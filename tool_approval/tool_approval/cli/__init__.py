"""Provide the command `tool-approval`, also started by `python -P -m tool_approval.cli`."""

from .program import main as main
