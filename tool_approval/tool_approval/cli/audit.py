"""Implement `tool-approval audit`: show the log of decisions, and verify that it is unchanged."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any, Final

from tool_approval.audit import load_key, verify
from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.errors import NotCanonicalError

from .output import Output, UsageError

BROKEN: Final = 1
_LONGEST_LINE: Final = 1024 * 1024
"""Maximum length in bytes of a line that an audit sink writes."""


def run(options: argparse.Namespace, output: Output) -> int:
    """Show or verify the audit log."""
    return _show(options.log, output) if options.action == 'show' else _verify(options, output)


def _show(path: str, output: Output) -> int:
    with open(path, 'rb') as log:
        number = 0
        while (line := log.readline(_LONGEST_LINE + 1)) != b'':
            number += 1
            output.line(f'{number:5}  {_described(line)}')
            if len(line) > _LONGEST_LINE:
                raise UsageError(f'line {number} of {path} is too long for an audit log; the rest was not read')
    return 0


def _described(line: bytes) -> str:
    try:
        entry = decode_arguments(line.decode())
        payload = canonical_json(entry.get('payload'))
    except (NotCanonicalError, UnicodeDecodeError):
        return 'this is not a line of an audit log'
    match entry.get('event'):
        case 'decision':
            word = 'approved' if entry.get('approved') is True else 'denied'
            word = word if entry.get('response') is None else 'answered in place of the tool'
            note = '' if entry.get('note') is None else f': {entry.get("note")}'
            when = _text(entry, 'decided_at')
            return f'{when}  {word} by {_text(entry, "decided_by")}  {_text(entry, "tool_name")} {payload}{note}'
        case 'outcome':
            error = '' if entry.get('error') is None else f' ({entry.get("error")})'
            return f'{_text(entry, "outcome")}{error}  {_text(entry, "tool_name")}'
        case event:
            return f'{event}'


def _text(entry: Mapping[str, Any], key: str) -> str:
    value: object = entry.get(key)
    return value if isinstance(value, str) else '-'


def _verify(options: argparse.Namespace, output: Output) -> int:
    # Loading would create a missing key, and with a new key every log looks broken.
    if not os.path.lexists(options.key):
        raise UsageError(f'there is no key file {options.key}; name the key file with which the log was written')
    finding = verify(options.log, key=load_key(options.key), head=options.head)
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
