"""`tool-approval doctor`: what works on this machine, and what to install."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Final

from .output import Output

EXAMPLES: Final = """\
examples:
  tool-approval doctor

It starts a harmless command to see whether the operating system can confine one. Nothing is changed.

exit status: 0 everything that has to works, 1 something does not
"""
LACKING: Final = 1
_DISTRIBUTION: Final = 'tool-approval'
_LABEL: Final = len('extra pydantic-ai')
"""Columns of what stands before each line."""


def configure(parser: argparse.ArgumentParser) -> None:
    """See `CommandModule`."""


def run(options: argparse.Namespace, output: Output) -> int:
    """See `CommandModule`."""
    from tool_approval import __version__

    python = '.'.join(str(part) for part in sys.version_info[:3])

    def say(label: str, told: str) -> None:
        output.line(f'{label:{_LABEL}} {told}')

    say('tool-approval', __version__)
    say('python', f'{python} on {sys.platform}')
    say('terminal', _terminal())
    say('state', _state())
    works = True
    for name, problem in _backends():
        works = works and problem is None
        say('OS sandbox', f'{name}: {problem or "works"}')
    say('bash', _bash() or 'none: the shell tool cannot run commands; install bash')
    for extra, found, missing in _extras():
        state = f'missing {", ".join(missing)}: pip install "tool-approval[{extra}]"' if missing else ', '.join(found)
        say(f'extra {extra}', state)
    return 0 if works and _bash() is not None else LACKING


def _terminal() -> str:
    names = ('input', 'output', 'errors')
    streams = (sys.stdin, sys.stdout, sys.stderr)
    lacking = [name for name, each in zip(names, streams, strict=True) if each is None or not each.isatty()]
    if not lacking:
        kind = os.environ.get('TERM', '')
        return f'{kind or "no TERM: plain text"}{", no colour" if os.environ.get("NO_COLOR") else ""}'
    reachable = 'can be asked at /dev/tty' if _has_tty() else 'what needs approval is denied: nobody can be asked'
    return f'{" and ".join(lacking)} redirected; {reachable}'


def _has_tty() -> bool:
    try:
        os.close(os.open('/dev/tty', os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _state() -> str:
    from tool_approval.settings.protection import state_folder

    folder = state_folder()
    return (
        str(folder) if folder is not None else 'none: there is no home folder, so nothing can be remembered; set HOME'
    )


def _backends() -> Iterator[tuple[str, str | None]]:
    from tool_approval.os_sandbox import platform_backends

    candidates = platform_backends()
    if not candidates:
        yield 'none', f'there is none for {sys.platform}'
    for candidate in candidates:
        found = candidate.probe()
        yield candidate.name, None if found.is_available else '; '.join(filter(None, (found.reason, found.install)))


def _bash() -> str | None:
    from shutil import which

    return which('bash')


def _extras() -> Iterator[tuple[str, list[str], list[str]]]:
    """Each extra, what of it is there with its version, and what is missing."""
    import re
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        needed = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:
        return
    extras: dict[str, tuple[list[str], list[str]]] = {}
    for line in needed:
        found = re.fullmatch(r'([A-Za-z0-9._-]+).*\bextra == [\'"]([^\'"]+)[\'"].*', line)
        if found is None or found[1].replace('_', '-') == _DISTRIBUTION:
            continue
        there, missing = extras.setdefault(found[2], ([], []))
        try:
            there.append(f'{found[1]} {version(found[1])}')
        except PackageNotFoundError:
            missing.append(found[1])
    # What brings everything comes last: it lacks what one of the others lacks.
    for extra in sorted(extras, key=lambda extra: (extra == 'all', extra)):
        yield extra, *extras[extra]
