"""Implement `tool-approval stats`: how many questions a log has, and how they were answered."""

from __future__ import annotations

import argparse

from tool_approval.audit.calls import logged_calls
from tool_approval.audit.stats import count, stats_lines

from .log_file import known_entries
from .output import Output


def run(options: argparse.Namespace, output: Output) -> int:
    """Print a line for each figure."""
    entries, is_verified = known_entries(options.log, options.key)
    lines = stats_lines(count(logged_calls(entries)))
    if not is_verified:
        output.note('the log was not verified; with `--key FILE`, it is')
    width = min(32, max(len(name) for name, _ in lines))
    for name, value in lines:
        output.line(f'{name:{width}}  {value}')
    return 0
