"""`tool-approval trust`: shows what a configuration would allow, and trusts just these bytes of it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from .output import FAILED, Output, UsageError

if TYPE_CHECKING:
    from tool_approval.settings.files import LoadedSettings

EXAMPLES: Final = """\
examples:
  tool-approval trust
  tool-approval trust approvals.yaml
  tool-approval trust approvals.yaml --revoke

It asks, and needs a terminal for that; `--yes` answers. A file that changes afterwards is not trusted any more.

exit status: 0 it is trusted, or with --revoke no longer is; 2 it is not
"""

QUESTION: Final = 'Trust this file as it is now?'


def configure(parser: argparse.ArgumentParser) -> None:
    """See `CommandModule`."""
    parser.add_argument('file', nargs='?', metavar='FILE', help='the configuration; the one in the directory if not')
    parser.add_argument('--cwd', metavar='DIR', help='the directory that relative roots begin in')
    parser.add_argument('--yes', action='store_true', help='trust it without being asked')
    parser.add_argument('--revoke', action='store_true', help='trust it no longer')


def run(options: argparse.Namespace, output: Output) -> int:
    """See `CommandModule`."""
    from tool_approval.settings.files import trust_settings
    from tool_approval.settings.trust import TrustStore

    from .check import inspect
    from .findings import worst

    if options.revoke:
        return _revoke(options, output)
    _, loaded, findings = inspect(options.file, options.cwd)
    for each in findings:
        if each.level != 'note':
            output.note(f'{each.level}: {": ".join(part for part in (each.key, each.message) if part)}')
    if loaded is None or worst(findings) == 'error':
        output.note('it was not trusted: correct it first')
        return FAILED
    if loaded.trusted:
        output.line(f'{loaded.source} is trusted already')
        return 0
    for text in what_it_would_allow(loaded):
        output.line(text)
    if not options.yes:
        if not is_terminal():
            raise UsageError('nobody can be asked here, so it was not trusted; use a terminal, or `--yes`')
        if not output.confirm(QUESTION):
            output.note('it was not trusted')
            return FAILED
    trust_settings(loaded, TrustStore())
    output.line('It is trusted until it changes.')
    return 0


def what_it_would_allow(loaded: LoadedSettings) -> list[str]:
    """Lines for somebody who has to decide whether to trust a configuration."""
    from .allowances import allowances

    found = allowances(loaded.settings, loaded.directory) or ['nothing beyond the defaults']
    return [f'{loaded.source} would allow:', *(f'  - {text}' for text in found)]


def is_terminal() -> bool:
    """Whether a person can be asked: both what they read and what they type is a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _revoke(options: argparse.Namespace, output: Output) -> int:
    import os

    from tool_approval.settings.files import find_settings
    from tool_approval.settings.trust import TrustStore

    from .judging import existing_directory

    found = options.file or find_settings(existing_directory(options.cwd))
    if found is None:
        raise UsageError('there is no approvals.yaml here; name the file')
    # It may be gone by now.
    was = TrustStore().revoke(os.path.abspath(found))
    output.line(f'{found} is not trusted any more' if was else f'{found} was not trusted')
    return 0
