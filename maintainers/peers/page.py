"""Format the measurements as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.spread import Spread

from .catalog import CONTROL, REFERENCE
from .figures import ENOUGH, Cost, cheaper, costs, faster, is_enough, noise, waiting
from .plot import plot
from .results import Case, Crowd, Results

_INTRODUCTION = """\
Each system can ask an approver before a tool runs. All systems do the same work.
A scripted model answers several times with tool calls, and then with a text.
The tool returns a short string.
The approver approves at once.

Every system runs in a separate environment and process.
In each round, each system does the same run twice: with approval, and with a tool that needs no approval.

A figure is a median, with the quartiles in brackets.
Ratios and differences compare measurements of the same round.
A ratio above 1 means that a system is slower than this project with an async handler ("ours").
"""

_SHOWN = ((10, 1),)
"""Numbers of responses and of calls in each, of the cases that have a table."""

_DIFFERENCES = """\
## What is not the same

- Frameworks differ in what they do in a run besides approval: validation, message types, state, traces. To choose a \
framework, compare whole runs. To judge a framework's approval alone, compare the costs that approval adds to a run.
- `HandleDeferredToolCalls`, `pydantic-ai-blocking-approval`, Inspect AI and this project wait inside of the run. In \
the other systems (stop and resume, LangChain and the OpenAI Agents SDK), the run ends before the answer, and another \
run starts after the answer. If the answer comes at once, a second run costs more than waiting. In return, no process \
is needed while the call waits for its answer.
- The *whole layer* is our controller with a policy, session memory and an approver. The *whole layer with audit \
log* also writes each question and each answer to a file before the tool runs.
"""

_WAITING = """\
## Runs that wait at once

M runs are started, each with one call to approve. All M runs wait before the first one is answered.
Memory is given per run: `traced` is the memory that Python has allocated, and `resident` is the growth of the process.
In the rows of stop and resume, LangChain and the OpenAI Agents SDK, the figures describe a stopped run, not a waiting \
run.
"""


def page(results: Results, *, pictures: str) -> str:
    """Return the page with all measurements and the machine that they were made on.

    Args:
        results: The measurements.
        pictures: The beginning of the names of the plots, relative to the page.
    """
    found = [(case, costs(case)) for case in results.cases]
    lines = [
        '# Benchmarks against other systems',
        '',
        'Written by `python -m maintainers.peers --write PATH`; `make bench-peers` prints the same figures.',
        f'Measured on {results.machine}.',
        f'The load average was {results.load_before:.1f} before and {results.load_after:.1f} after the measurements.',
        *_loud(results),
        '',
        *_INTRODUCTION.splitlines(),
        '',
        'The [feature comparison](../explanation/feature-comparison.md) lists the features of these systems.',
        '',
        *_verdict(found),
        *(f'![{title}]({pictures}-{kind}.svg)\n' for kind, title in _titles(results)),
        *(line for case, each in found if (case.rounds, case.calls) in _SHOWN for line in _cost_table(case, each)),
        *_waiting_tables(results.crowds[-1:]),
        *_DIFFERENCES.splitlines(),
        '',
        *_version_table(results),
    ]
    return '\n'.join(lines).rstrip() + '\n'


def plots(results: Results) -> dict[str, str]:
    """Return the plots of the page as SVG, by the end of their name."""
    drawn: dict[str, str] = {}
    for kind, title in _titles(results):
        series: dict[str, list[tuple[float, float]]] = {}
        for case in results.cases:
            if case.kind == kind:
                for each in costs(case):
                    size = case.rounds * case.calls
                    if each.peer != CONTROL:
                        series.setdefault(each.peer, []).append((size, each.cpu_ms.median / size))
        across = 'calls of a run, one in each response' if kind == 'rounds' else 'calls of one response'
        drawn[kind] = plot(title, across, 'ms of computing time for each call', series)
    return drawn


def _titles(results: Results) -> list[tuple[str, str]]:
    titles = {
        'rounds': 'A run with approvals, one call in each response',
        'batch': 'A run with approvals, all calls in one response',
    }
    return [(kind, title) for kind, title in titles.items() if any(c.kind == kind and c.samples for c in results.cases)]


def _loud(results: Results) -> Iterator[str]:
    # More than half a process of other work shows in the figures.
    if max(results.load_before, results.load_after) > 1.5:
        yield 'Other work ran on the machine at the same time: ignore differences that are smaller than the noise.'


def _verdict(found: Sequence[tuple[Case, Sequence[Cost]]]) -> Iterator[str]:
    yield from ('## Who is faster than ours', '')
    yield (
        f'Each system is compared with our async handler. "{CONTROL}" is a second copy of our handler. Its figures '
        'show the noise of the measurement. The table names a system as faster only if the upper quartile of its '
        "measurements is below the lower quartile of the second copy's measurements. If a measurement has fewer than "
        f'{ENOUGH} rounds, the table names no system as faster.'
    )
    yield ''
    yield from _table(
        ('work', 'noise', 'whole run is faster', 'approval adds less'),
        ((_name(case), _control(each), *_beaten(each)) for case, each in found),
    )


def _beaten(found: Sequence[Cost]) -> tuple[str, str]:
    if not is_enough(found):
        return 'too few rounds', 'too few rounds'
    return _named(faster(found), False), _named(cheaper(found), True)


def _control(found: Sequence[Cost]) -> str:
    control = noise(found)
    return 'not measured' if control is None else _range(control.ratio, 2)


def _named(beaten: Iterable[Cost], is_added: bool) -> str:
    names = [
        f'{each.peer} ({each.added_difference_ms.median:+.2f} ms a call)'
        if is_added
        else f'{each.peer} ({each.ratio.median:.2f})'
        for each in beaten
    ]
    return ', '.join(names) or 'none'


def _cost_table(case: Case, found: Sequence[Cost]) -> Iterator[str]:
    yield from (f'## {_name(case)}', '')
    rows = [
        (
            each.peer,
            _range(each.cpu_ms, 1),
            f'{each.plain_cpu_ms.median:.1f}',
            _range(each.added_ms, 2),
            '1' if each.peer == REFERENCE else _range(each.ratio, 2),
        )
        for each in found
    ]
    rows += [(peer, reason, '', '', '') for peer, reason in case.failures.items()]
    yield from _table(
        (
            'system',
            'computing, ms per run',
            'without approval, ms',
            'approval adds, ms per call',
            'whole run, ratio to ours',
        ),
        rows,
    )


def _waiting_tables(crowds: Sequence[Crowd]) -> Iterator[str]:
    if not crowds:
        return
    yield from (*_WAITING.splitlines(), '')
    for crowd in crowds:
        yield from (f'### M = {crowd.runs}', '')
        rows = [
            (
                each.peer,
                _kilobytes(each.traced),
                _kilobytes(each.resident),
            )
            for each in waiting(crowd)
        ]
        rows += [(peer, reason, '') for peer, reason in crowd.failures.items()]
        yield from _table(
            (
                'system',
                'kB traced',
                'kB resident',
            ),
            rows,
        )


def _version_table(results: Results) -> Iterator[str]:
    yield from ('## Versions', '')
    rows = [
        (peer, ', '.join(f'{k} {v}' for k, v in versions.items()))
        for peer, versions in results.versions.items()
        # All variants of this project use the same packages.
        if peer == REFERENCE or not peer.startswith('ours')
    ]
    rows += [(peer, f'not measured: {reason}') for peer, reason in results.missing.items()]
    yield from _table(('system', 'packages'), rows)


def _name(case: Case) -> str:
    if case.kind == 'rounds':
        return f'N = {case.rounds}, one call in each response'
    return f'K = {case.calls} calls in one response'


def _kilobytes(value: float | None) -> str:
    return '' if value is None else f'{value / 1000:.1f}'


def _range(each: Spread, digits: int) -> str:
    return f'{each.median:.{digits}f} [{each.lower:.{digits}f}–{each.upper:.{digits}f}]'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(['---'] * len(head))
    yield from map(_row, rows)
    yield ''


def _row(cells: Sequence[str]) -> str:
    # A reason is free text, in which a line break or a bar would end the cell.
    return f'| {" | ".join(" ".join(cell.replace("|", "/").split()) for cell in cells)} |'
