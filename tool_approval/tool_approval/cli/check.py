"""`tool-approval check`: the mistakes in a configuration, and what in it is probably not meant."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import Final

from tool_approval.core.config import LineOf
from tool_approval.core.errors import ApprovalConfigError, ApprovalError
from tool_approval.settings.files import LoadedSettings, load_settings

from .findings import ConfigFinding, find_all, worst
from .judging import CallJudge, existing_directory
from .output import FAILED, Output, UsageError

WARNED: Final = 1


def run(options: argparse.Namespace, output: Output) -> int:
    """Check the configuration, and print what was found."""
    source, loaded, findings = inspect(options.file, options.cwd)
    gravest = worst(findings)
    if options.json:
        output.json(
            {
                'source': source,
                'ok': gravest != 'error',
                'trusted': None if loaded is None else loaded.trusted,
                'why_untrusted': None if loaded is None else loaded.why_untrusted,
                'digest': None if loaded is None else loaded.digest,
                'findings': [each.as_json() for each in findings],
            }
        )
    else:
        _print(findings, source, output)
    if gravest == 'error':
        return FAILED
    return WARNED if gravest == 'warning' and options.strict else 0


def inspect(file: str | None, cwd: str | None) -> tuple[str, LoadedSettings | None, list[ConfigFinding]]:
    """Read a configuration and look for mistakes in it.

    Args:
        file: The file, relative to the process's directory; `None` for the one in `cwd`.
        cwd: The working directory.

    Returns:
        Its path, the configuration, or `None` where it cannot be read, and what was found.

    Raises:
        UsageError: There is no such directory, or no file in it.
    """
    directory = existing_directory(cwd)
    loaded = None
    try:
        loaded = load_settings(None if file is None else os.path.abspath(file), directory=directory)
        if loaded.source is None:
            raise UsageError(f'there is no approvals.yaml in {directory}; name the file')
        judge = CallJudge(loaded.settings, directory, source=loaded.source)
    except ApprovalError as error:
        if loaded is not None:
            return str(loaded.source), loaded, [_mistake(error, loaded.line_of)]
        if not isinstance(error, ApprovalConfigError):
            raise
        return error.source or str(directory), None, [_mistake(error)]
    findings = [replace(each, line=loaded.line_of(each.path)) for each in find_all(loaded.settings, judge.files)]
    why = f'it is not trusted ({loaded.why_untrusted}), so it only tightens the defaults; see `tool-approval trust`'
    trust = ConfigFinding(level='note', message='it is trusted' if loaded.trusted else why)
    return str(loaded.source), loaded, [*findings, trust]


def _mistake(error: ApprovalError, line_of: LineOf = lambda path: None) -> ConfigFinding:
    if not isinstance(error, ApprovalConfigError):
        return ConfigFinding(level='error', message=str(error))
    path = tuple(int(part) if part.isdigit() else part for part in (error.key or '').split('.') if part)
    line = error.line or (line_of(path) if path else None)
    return ConfigFinding(level='error', message=error.problem, path=path, line=line)


def _print(findings: list[ConfigFinding], source: str, output: Output) -> None:
    here = os.getcwd()
    shown = os.path.relpath(source, here) if os.path.dirname(source) == here else source
    for each in findings:
        place = shown if each.line is None else f'{shown}:{each.line}'
        output.line(f'{each.level}: {": ".join(part for part in (place, each.key, each.message) if part)}')
    counts = {level: sum(each.level == level for each in findings) for level in ('error', 'warning')}
    output.line(', '.join(f'{count} {level}{"" if count == 1 else "s"}' for level, count in counts.items()))
