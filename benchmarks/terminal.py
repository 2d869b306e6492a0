"""Measure how long a request of 1 MB takes to be drawn: `python -m benchmarks.terminal`."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from random import Random
from typing import Any

from tool_approval.ui.terminal import render_request

from tool_approval import ApprovalPresentation, ApprovalRequest

SIZE = 1_000_000
"""Characters of the arguments."""

LIMIT_MS = 100
"""For the median."""


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


def main() -> None:
    """Print the median and the slowest, in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=10)
    rounds: int = parser.parse_args().rounds
    print('| 1 MB of | median, ms | slowest, ms | |\n|---|---|---|---|')
    for name, request in requests().items():
        times: list[float] = []
        for _ in range(rounds):
            started = time.perf_counter()
            render_request(request)
            times.append((time.perf_counter() - started) * 1000)
        median = statistics.median(times)
        print(f'| {name} | {median:.1f} | {max(times):.1f} | {"holds" if median < LIMIT_MS else "**MISSED**"} |')


if __name__ == '__main__':
    main()
