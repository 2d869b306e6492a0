"""Measure how long a request of 1 MB takes to be drawn, and the command to start: `python -m benchmarks.terminal`."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tool_approval.ui.terminal import render_request

from tool_approval import ApprovalPresentation, ApprovalRequest

from .spread import Spread, spread

SIZE = 1_000_000
"""Characters of the arguments."""

LIMIT_MS = 100
"""For the median."""

START_LIMIT_MS = 300
"""For the median of a whole process."""

BARE = 'a pydantic model'
_COMMAND = ('-m', 'tool_approval.cli')
PROGRAMS: Mapping[str, Sequence[str]] = {
    BARE: ('-c', 'from pydantic import BaseModel\nclass Model(BaseModel):\n    field: int'),
    '`tool-approval --help`': (*_COMMAND, '--help'),
    '`tool-approval explain send {}`': (*_COMMAND, 'explain', 'send', '{}'),
    "`tool-approval explain shell 'git status'`": (*_COMMAND, 'explain', 'shell', 'git status'),
}
"""What is started, by what it is called."""


def requests() -> dict[str, ApprovalRequest]:
    """Requests of that size, by what they are."""
    source = ''.join(f'line {number} of some file\n' for number in range(SIZE // 20))[:SIZE]
    shapes: Mapping[str, Any] = {
        'one line': 'x' * SIZE,
        'lines': source,
        'empty lines': '\n' * SIZE,
        'escape characters': '\x1b' * SIZE,
        'Russian words': 'привет ' * (SIZE // 7),
        'Japanese words': '日本語' * (SIZE // 3),
        'a list of texts': ['some text'] * (SIZE // 10),
        'random characters': ''.join(chr(number) for number in Random(5).choices(range(sys.maxunicode), k=SIZE)),
        '150,000 integers': list(range(150_000)),
        'nested lists': [[[number, [str(number)]]] for number in range(SIZE // 12)],
        '80,000 names': {f'name_{number}': number for number in range(80_000)},
    }
    made = {name: ApprovalRequest(tool_name='write', args={'content': value}) for name, value in shapes.items()}
    for kind in ('file_content', 'diff', 'command'):
        shown = ApprovalPresentation(type=kind, content=source)
        made[f'lines, as {kind}'] = ApprovalRequest(tool_name='write', args={'content': source}, presentation=shown)
    return made


def drawing(rounds: int) -> list[str]:
    """Rows of the table of large requests."""
    rows: list[str] = []
    for name, request in requests().items():
        times: list[float] = []
        for _ in range(rounds):
            started = time.perf_counter()
            render_request(request)
            times.append((time.perf_counter() - started) * 1000)
        rows.append(f'| {name} | {_range(spread(times))} | {_verdict(statistics.median(times), LIMIT_MS)} |')
    return rows


def starting(rounds: int) -> list[str]:
    """Rows of the table of programs: each is run right after the bare one, in a directory without a configuration."""
    took: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds + 1):
            for name, words in PROGRAMS.items():
                started = time.perf_counter()
                subprocess.run([sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL, check=False)
                took[name].append((time.perf_counter() - started) * 1000)
    bare = took[BARE][1:]
    rows: list[str] = []
    for name, times in took.items():
        ratio = spread(mine / its for mine, its in zip(times[1:], bare, strict=True))
        limit = '' if name == BARE else _verdict(statistics.median(times[1:]), START_LIMIT_MS)
        rows.append(f'| {name} | {_range(spread(times[1:]))} | {ratio.median:.2f} | {limit} |')
    return rows


def page(rounds: int) -> str:
    """The page of the documentation."""
    before = os.getloadavg()[0]
    drawn, started = drawing(rounds), starting(rounds)
    lines = [
        '# Benchmarks of the terminal',
        '',
        'Written by `python -m benchmarks.terminal --write PATH`; `make bench-terminal` prints the same.',
        (
            f'Measured on CPython {platform.python_version()}, {platform.system()} {platform.machine()}, '
            f'{os.cpu_count()} processors.'
        ),
        f'The load average was {before:.1f} before and {os.getloadavg()[0]:.1f} after.',
        'Medians, quartiles in brackets.',
        '',
        '## Drawing a large request',
        '',
        f'| 1 MB of | milliseconds | limit {LIMIT_MS} ms |',
        '| --- | --- | --- |',
        *drawn,
        '',
        '## Starting',
        '',
        'The ratio is to a Python that imports pydantic and defines one model, run right before.',
        '',
        f'| program | milliseconds | ratio | limit {START_LIMIT_MS} ms |',
        '| --- | --- | --- | --- |',
        *started,
    ]
    return '\n'.join(lines) + '\n'


def _range(each: Spread) -> str:
    return f'{each.median:.0f} [{each.lower:.0f}–{each.upper:.0f}]'


def _verdict(median: float, limit: float) -> str:
    return 'holds' if median < limit else '**MISSED**'


def main() -> None:
    """Print the page, and write it where that was asked for. A missed limit is printed, and no failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.terminal', description=__doc__)
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    options = parser.parse_args()
    text = page(options.rounds)
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
