"""Provide the command `tool-approval`, which `python -P -m tool_approval.cli` also starts."""

from .program import main as main
