"""Implement `tool-approval audit`: show the log, verify that it is unchanged, and make a trace of it for others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from tool_approval.audit import agentack_events, read_entries, verify
from tool_approval.audit.reading import call_in, text_in, what_of

from .log_file import key_for, log_of_run
from .output import Output

BROKEN: Final = 1


def run(options: argparse.Namespace, output: Output) -> int:
    """Show, verify or trace the audit log. Without paths, the log and the key of `tool-approval run` are used."""
    log = options.log or log_of_run()
    match options.action:
        case 'show':
            return _show(log, output)
        case 'trace':
            return _trace(log, output)
        case _:
            return _verify(log, key_for(options.log, options.key), options, output)


def _show(path: str, output: Output) -> int:
    for number, entry in enumerate(read_entries(path), start=1):
        output.line(f'{number:5}  {_described(entry)}')
    return 0


def _trace(path: str, output: Output) -> int:
    for event in agentack_events(read_entries(path)):
        output.json(event)
    return 0


def _described(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return what_of(entry)
    return f'{text_in(entry, "at")}  {what_of(entry)}  {call_in(entry)}'.rstrip()


def _verify(log: str, key: bytes, options: argparse.Namespace, output: Output) -> int:
    finding = verify(log, key=key, head=options.head)
    status = 0 if finding.is_intact else BROKEN
    if options.json:
        output.json(
            {
                'is_intact': finding.is_intact,
                'broken_line': finding.broken_line,
                'problem': finding.problem,
                'lines': finding.head.lines,
                'head': finding.head.mac,
                'unfinished': list(finding.unfinished),
            }
        )
        return status
    if finding.is_intact:
        output.line(f'intact: {finding.head.lines} lines')
    else:
        output.line(f'broken at line {finding.broken_line}: {finding.problem}')
    output.line(f'head of the intact part: {finding.head.mac}')
    for number in finding.unfinished:
        output.line(f'line {number}: the call was approved, but the log has no outcome for it')
    return status
