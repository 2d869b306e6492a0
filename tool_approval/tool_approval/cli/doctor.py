"""Implement `tool-approval doctor`: report what works on this machine, and what to install."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from tool_approval import os_sandbox
from tool_approval.core.errors import ApprovalError, install_command, printable
from tool_approval.os_sandbox.host_program import HostPlace
from tool_approval.os_sandbox.toolchains import find_toolchains
from tool_approval.settings import DEFAULT_SANDBOX, load_settings, protection

from .hook_install import findings
from .output import Output

LACKING: Final = 1
_DISTRIBUTION: Final = 'tool-approval'
_LABEL: Final = len('extra pydantic-ai')
"""Width, in columns, of the label at the start of each line."""


def run(options: argparse.Namespace, output: Output) -> int:
    """Print a line for each component that approvals depend on."""
    from tool_approval import __version__

    def say(label: str, finding: str) -> None:
        output.line(f'{label:{_LABEL}} {finding}')

    say('tool-approval', __version__)
    say('python', f'{".".join(map(str, sys.version_info[:3]))} on {sys.platform}')
    say('terminal', _terminal())
    folder = protection.state_folder()
    say('state', str(folder or 'none: there is no home folder, so nothing can be remembered; set HOME'))
    problems = _sandbox_problems()
    for name, problem in problems.items():
        say('OS sandbox', f'{name}: {problem or "works"}')
    for finding in _toolchains():
        say('toolchain', finding)
    for finding in _host():
        say('shell.host', finding)
    hooks = list(findings())
    for client, finding, _ in hooks:
        say(f'hook {client}', finding)
    bash = shutil.which('bash')
    say('bash', bash or 'none: the shell tool cannot run commands; install bash')
    for extra, found, missing in _extras():
        install = f'missing {", ".join(missing)}; in a checkout, run: {install_command(extra)}'
        say(f'extra {extra}', install if missing else ', '.join(found))
    is_lacking = bash is None or any(problems.values()) or not all(works for *_, works in hooks)
    return LACKING if is_lacking else 0


def _terminal() -> str:
    names = ('standard input', 'standard output', 'standard error')
    streams = (sys.stdin, sys.stdout, sys.stderr)
    lacking = [name for name, each in zip(names, streams, strict=True) if each is None or not each.isatty()]
    if not lacking:
        kind = os.environ.get('TERM', '')
        return f'{kind or "no TERM: plain text"}{", no colour" if os.environ.get("NO_COLOR") else ""}'
    reachable = (
        'questions are asked at /dev/tty' if _has_tty() else 'no terminal, so calls that need approval are denied'
    )
    return f'redirected: {", ".join(lacking)}; {reachable}'


def _has_tty() -> bool:
    try:
        os.close(os.open('/dev/tty', os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _sandbox_problems() -> dict[str, str]:
    """Map each OS sandbox for this platform to its problem, or to the empty string if it works."""
    probed = {each.name: each.probe() for each in os_sandbox.platform_backends()}
    return {
        name: '' if found.is_available else '; '.join(filter(None, (found.reason, found.install)))
        for name, found in probed.items()
    } or {'none': f'there is no OS sandbox for {sys.platform}'}


def _toolchains() -> Iterator[str]:
    """Yield a line for each toolchain: its folder, or why confined commands cannot use it."""
    directory = os.getcwd()
    toolchains = find_toolchains(environment=os.environ, directory=directory, roots=[directory])
    for each in toolchains.found:
        yield f'{each.kind} in {printable(each.folder, 300)}'
    for each in toolchains.ignored:
        yield printable(each, 600)
    if not toolchains.found:
        yield 'none, so commands can use only system programs; for others, add their folders to `sandbox.toolchains`'


def _host() -> Iterator[str]:
    """Yield a line for each command of `shell.host`: its program, or why it cannot run outside of the sandbox."""
    try:
        loaded = load_settings()
    except ApprovalError:
        return  # `check` reports mistakes
    shell, sandbox = loaded.settings.shell, loaded.settings.sandbox or DEFAULT_SANDBOX
    roots = (os.path.realpath(loaded.directory / path.root) for path in sandbox.paths.values() if path.mode == 'rw')
    place = HostPlace(cwd=str(loaded.directory), written=tuple(roots), environment=os.environ)
    for pattern in () if shell is None else shell.host:
        try:
            yield f'{pattern}: {printable(place.program(pattern.split()[0]), 300)}'
        except PermissionError as error:
            yield f'{pattern}: {printable(str(error), 300)}'


def _extras() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each extra with its installed distributions and their versions, and its missing distributions."""
    try:
        needed = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return
    extras: dict[str, tuple[list[str], list[str]]] = {}
    for line in needed:
        found = re.fullmatch(r'([A-Za-z0-9._-]+).*\bextra == [\'"]([^\'"]+)[\'"].*', line)
        if found is None or found[1].replace('_', '-') == _DISTRIBUTION:
            continue
        there, missing = extras.setdefault(found[2], ([], []))
        try:
            there.append(f'{found[1]} {metadata.version(found[1])}')
        except metadata.PackageNotFoundError:
            missing.append(found[1])
    # `all` comes last, because it lacks whatever another extra lacks.
    for extra in sorted(extras, key=lambda extra: (extra == 'all', extra)):
        yield extra, *extras[extra]
