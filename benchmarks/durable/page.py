"""Write the page of the documentation about the figures of durable runs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from statistics import median

from benchmarks.spread import ratios

from .answers import BEGUN, BURST_AIM, P99_LIMIT_S, RATE, Burst, Resumed
from .parked import BYTES_LIMIT, PARKED, Parked
from .stories import ASKED, COST_LIMIT
from .workers import PLAIN


def page(
    parked: Sequence[Parked],
    resumed: Sequence[Resumed],
    bursts: Sequence[Burst],
    stories: dict[str, dict[str, list[list[float]]]],
) -> str:
    """The page of the documentation."""
    lines = [
        '# Benchmarks of durable runs',
        '',
        'Written by `python -m benchmarks.durable --write PATH`; `make bench-durable` prints the same figures.',
        (
            f'Measured on CPython {platform.python_version()}, {platform.system()} {platform.machine()}, '
            f'{os.cpu_count()} processors, shared by all processes and the database.'
        ),
        '"Load" is the load average of the last minute.',
        'SQLite and PostgreSQL both synced to the disk.',
        '',
        '## Parked runs',
        '',
        'Each parked run has called a tool with 500 characters of text, and waits for an approver.',
        (
            f'After the sizes were measured, each store with fewer than {PARKED} runs was filled up to {PARKED} with '
            'copies of its runs.'
        ),
        'Sizes are bytes per run, including indexes. The history contains the messages to and from the model.',
        f'A run may take at most {BYTES_LIMIT} bytes in addition to its history.',
        '',
        '| store | runs | time to park | bytes in | total | history | beyond the history | load | verdict |',
        f'|{" --- |" * 9}',
    ]
    for each in parked:
        by = ', '.join(f'{name} {size:.0f}' for name, size in each.bytes.items())
        verdict = 'met' if each.overhead <= BYTES_LIMIT else '**MISSED**'
        total = sum(each.bytes.values())
        taken = f'{each.seconds:.0f} s'
        cells = (each.store, each.runs, taken, by, f'{total:.0f}', f'{each.history:.0f}', f'{each.overhead:.0f}')
        lines.append(f'| {" | ".join(map(str, cells))} | {each.load:.1f} | {verdict} |')
    lines += [
        '',
        'The next table shows how many more tasks, threads, open files and bytes a worker needs for each parked run.',
        'The worker was started after the runs were parked, and is compared with one on an empty store.',
        '',
        '| store | tasks | threads | open files | bytes of memory |',
        f'|{" --- |" * 5}',
    ]
    for each in parked:
        few = ' | '.join(f'{each.idle[kind]:.3f}' for kind in ('tasks', 'threads', 'descriptors'))
        lines.append(f'| {each.store} | {few} | {each.idle["resident"]:.0f} |')
    lines += [
        '',
        '## Answers',
        '',
        f'Approvers answer {RATE} requests per second, and two new worker processes continue the runs.',
        'A delay is the number of seconds from the answer to the event in the column "until".',
        f'On PostgreSQL, 99 of 100 answers must be followed by the next segment within {P99_LIMIT_S:g} s.',
        '',
        '| store | parked | answers | until | median | 99 of 100 | longest | lost | executed twice | load | verdict |',
        f'|{" --- |" * 11}',
    ]
    for each in resumed:
        for kind, delays in each.delays.items():
            p99 = each.percentile(kind, 99)
            is_limited = kind == BEGUN and each.store == 'PostgreSQL'
            verdict = '' if not is_limited else 'met' if p99 <= P99_LIMIT_S else '**MISSED**'
            cells = (each.store, each.parked, each.answers, kind, f'{each.percentile(kind, 50):.3f}', f'{p99:.3f}')
            tail = (f'{delays[-1]:.3f}', each.lost, each.twice, f'{each.load:.1f}', verdict)
            lines.append(f'| {" | ".join(map(str, (*cells, *tail)))} |')
    lines += [
        '',
        '## Many answers at once',
        '',
        'All these requests are answered at once, and two new worker processes continue the runs.',
        'For comparison, two processes run as many DBOS workflows of the same steps (model, tool, model).',
        (
            'The seconds count from the first answer until all answers are stored, until the last run has begun its '
            'next segment, and until the last run has ended.'
        ),
        'Processor time is that of both worker processes, for each run.',
        f'The aim is {BURST_AIM} runs per second on an idle machine. Other work on the machine lowers the figure.',
        '',
        '| store | program | runs | all stored | all begun | all ended | runs per second | processor time | load |',
        f'|{" --- |" * 9}',
    ]
    for each in bursts:
        stored = '' if each.answered is None else f'{each.answered:.2f}'
        cells = (each.store, each.program, each.answers, stored, f'{each.begun:.2f}', f'{each.ended:.2f}')
        tail = (f'{each.rate:.0f}', f'{each.cpu_s / each.answers * 1000:.0f} ms', f'{each.load:.1f}')
        lines.append(f'| {" | ".join(map(str, (*cells, *tail)))} |')
    lines += [
        '',
        '## One approved call',
        '',
        'A run calls one tool and ends.',
        (
            'The run is compared with a DBOS workflow of the same steps (model, tool, model), which its worker starts '
            'at once.'
        ),
        'Each figure is a median in milliseconds.',
        'The column "from the start" shows the time from when another process starts the run until the run ends.',
        'For an approved run, this time includes the answer, and the time until a worker notices it.',
        'The three programs took turns. Each ratio compares measurements of the same turn.',
        f'A run that is approved immediately may take at most {COST_LIMIT:g} times as long as the DBOS workflow.',
        '',
        '| store | program | from the start | ratio to DBOS | verdict |',
        f'|{" --- |" * 5}',
    ]
    for store, told in stories.items():
        plain = [median(each) for each in told[PLAIN]]
        for name, each_round in told.items():
            taken = [median(each) for each in each_round]
            ratio = ratios(zip(taken, plain, strict=True))
            verdict = '' if name != ASKED else 'met' if ratio.median <= COST_LIMIT else '**MISSED**'
            by = f'{ratio.median:.1f} [{ratio.lower:.1f}–{ratio.upper:.1f}]'
            lines.append(f'| {store} | {name} | {median(taken) * 1000:.0f} | {by} | {verdict} |')
    return '\n'.join(lines) + '\n'
