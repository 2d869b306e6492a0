"""Measure the cost of confining a command: `python -m benchmarks.os_sandbox`."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tool_approval.os_sandbox import (
    Access,
    OSProfile,
    OSSandboxBackend,
    Root,
    UnconfinedBackend,
    choose_backend,
    system_profile,
)

from .spread import Spread, spread

LIMIT_MS = 30.0
"""Limit for the time that a backend adds to a command."""

COMMAND = ('/bin/true',)
"""Command that does nothing, so that all of its time is that of starting it."""


@dataclass(frozen=True, kw_only=True)
class Added:
    """Time that confining adds to a command with one profile."""

    name: str
    """Name of the profile in the table."""
    total_ms: Spread
    """Differences of elapsed time between a confined and an unconfined command, run one after another."""
    describing_ms: Spread
    """Part of the difference in which `wrap` makes the command line."""


def profiles(folder: Path) -> list[tuple[str, OSProfile]]:
    """Return profiles for a workspace, one of them with control files, with their names."""
    made: list[tuple[str, OSProfile]] = []
    for name, control in (('one workspace', ()), ('one workspace with `.git`', ('.git',))):
        work = folder / str(len(made))
        (work / '.git').mkdir(parents=True)
        roots = (*system_profile().roots, Root(path=str(work), access=Access.WRITE))
        made.append((name, OSProfile(roots=roots, protected=tuple(str(work / each) for each in control))))
    return made


def elapsed_ms(act: Callable[[], object]) -> float:
    """Return the time that a function takes."""
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000


def added(name: str, backend: OSSandboxBackend, profile: OSProfile, *, rounds: int) -> Added:
    """Compare pairs of commands. The confined one is first in every other pair."""
    cwd = profile.writable[-1]
    none = UnconfinedBackend()

    def run(with_backend: OSSandboxBackend) -> None:
        command = with_backend.wrap(COMMAND, profile, cwd)
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def confined() -> float:
        return elapsed_ms(lambda: run(backend))

    def unconfined() -> float:
        return elapsed_ms(lambda: run(none))

    differences: list[float] = []
    for number in range(rounds):
        if number % 2:
            theirs, mine = unconfined(), confined()
        else:
            mine, theirs = confined(), unconfined()
        differences.append(mine - theirs)
    describing = spread(elapsed_ms(lambda: backend.wrap(COMMAND, profile, cwd)) for _ in range(rounds))
    return Added(name=name, total_ms=spread(differences), describing_ms=describing)


def page(results: Sequence[Added], backend: str, loads: tuple[float, float]) -> str:
    """Return the page for the documentation."""
    lines = [
        '# Benchmarks of the OS sandbox',
        '',
        'Written by `python -m benchmarks.os_sandbox --write PATH`.',
        (
            f'Measured with {backend} on CPython {platform.python_version()}, {platform.system()} '
            f'{platform.machine()}, {os.cpu_count()} processors.'
        ),
        f'The load average was {loads[0]:.1f} before and {loads[1]:.1f} after the measurements.',
        '',
        f'Each confined run of `{COMMAND[0]}` is paired with an unconfined run right before or after the confined run.',
        'Each figure is the difference in elapsed time between the two: the median, with quartiles in brackets.',
        '`wrap` is the time that it takes to build the command line.',
        '',
        '| profile | additional time of a command, ms | `wrap` alone, ms | limit, ms | verdict |',
        '| --- | --- | --- | --- | --- |',
    ]
    for each in results:
        verdict = 'met' if each.total_ms.median <= LIMIT_MS else '**MISSED**'
        lines.append(
            f'| {each.name} | {_range(each.total_ms)} | {_range(each.describing_ms)} | {LIMIT_MS} | {verdict} |'
        )
    return '\n'.join(lines) + '\n'


def _range(each: Spread) -> str:
    return f'{each.median:.1f} [{each.lower:.1f}–{each.upper:.1f}]'


def main() -> None:
    """Measure, print the page, and write it if asked to. A missed limit is printed, but is not a failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.os_sandbox', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure little')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    options = parser.parse_args()
    before = os.getloadavg()[0]
    backend = choose_backend()
    with tempfile.TemporaryDirectory() as folder:
        chosen = profiles(Path(folder).resolve())
        results = [added(name, backend, profile, rounds=10 if options.quick else 200) for name, profile in chosen]
    text = page(results, backend.name, (before, os.getloadavg()[0]))
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
