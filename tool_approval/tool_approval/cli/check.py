"""`tool-approval check`: the mistakes in a configuration, and what in it is probably not meant."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from .output import FAILED, Output, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tool_approval.settings.files import LoadedSettings

    from .findings import ConfigFinding

EXAMPLES: Final = """\
examples:
  tool-approval check
  tool-approval check approvals.yaml --strict
  tool-approval check --json

exit status: 0 it can be used, 1 there are warnings and --strict, 2 it cannot be used
"""
WARNED: Final = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """See `CommandModule`."""
    parser.add_argument('file', nargs='?', metavar='FILE', help='the configuration; the one in the directory if not')
    parser.add_argument('--cwd', metavar='DIR', help='the directory that relative roots begin in')
    parser.add_argument('--strict', action='store_true', help='fail where there are warnings')
    parser.add_argument('--json', action='store_true', help='answer in JSON')


def run(options: argparse.Namespace, output: Output) -> int:
    """See `CommandModule`."""
    from .findings import worst

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
        _print(findings, _short(source), output)
    if gravest == 'error':
        return FAILED
    return WARNED if gravest == 'warning' and options.strict else 0


def inspect(file: str | None, cwd: str | None) -> tuple[str, LoadedSettings | None, list[ConfigFinding]]:
    """Read a configuration and look at it.

    Args:
        file: The file, relative to the process's directory; `None` for the one in `cwd`.
        cwd: The working directory.

    Returns:
        Where it is, the configuration, or `None` where it cannot be read, and what was found.

    Raises:
        UsageError: There is no such directory, or no file in it.
    """
    import os

    from tool_approval.core.errors import ApprovalConfigError, ApprovalError
    from tool_approval.settings.files import load_settings

    from .findings import ConfigFinding, find_all
    from .judging import CallJudge, existing_directory

    directory = existing_directory(cwd)
    try:
        loaded = load_settings(None if file is None else os.path.abspath(file), directory=directory)
    except ApprovalConfigError as error:
        found = ConfigFinding(level='error', message=error.problem, path=_path(error.key), line=error.line)
        return error.source or str(directory), None, [found]
    if loaded.source is None:
        raise UsageError(f'there is no approvals.yaml in {directory}; name the file')
    source = str(loaded.source)
    try:
        judge = CallJudge(loaded.settings, directory, source=loaded.source)
    except ApprovalConfigError as error:
        path, message = _path(error.key), error.problem
        return (
            source,
            loaded,
            [ConfigFinding(level='error', message=message, path=path, line=error.line or _line(loaded, path))],
        )
    except ApprovalError as error:
        return source, loaded, [ConfigFinding(level='error', message=str(error))]
    warnings = find_all(loaded.settings, judge.files)
    return source, loaded, [*(_placed(each, loaded.line_of) for each in warnings), _trust(loaded)]


def _trust(loaded: LoadedSettings) -> ConfigFinding:
    from .findings import ConfigFinding

    if loaded.trusted:
        return ConfigFinding(level='note', message='it is trusted')
    why = f'it is not trusted ({loaded.why_untrusted}), so it only tightens the defaults; see `tool-approval trust`'
    return ConfigFinding(level='note', message=why)


def _placed(finding: ConfigFinding, line_of: Callable[[tuple[str | int, ...]], int | None]) -> ConfigFinding:
    from dataclasses import replace

    return replace(finding, line=line_of(finding.path))


def _line(loaded: LoadedSettings, path: tuple[str | int, ...]) -> int | None:
    return loaded.line_of(path) if path else None


def _path(key: str | None) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdigit() else part for part in (key or '').split('.') if part)


def _short(source: str) -> str:
    import os

    here = os.getcwd()
    return os.path.relpath(source, here) if os.path.dirname(source) == here else source


def _print(findings: list[ConfigFinding], source: str, output: Output) -> None:
    for each in findings:
        place = ':'.join(str(part) for part in (source, each.line) if part is not None)
        output.line(f'{each.level}: {": ".join(part for part in (place, each.key, each.message) if part)}')
    counts = [sum(each.level == level for each in findings) for level in ('error', 'warning')]
    told = [
        f'{count} {level}{"" if count == 1 else "s"}' for count, level in zip(counts, ('error', 'warning'), strict=True)
    ]
    output.line(', '.join(told))
