"""Measure what the approval layer adds to a call: `python -m benchmarks.approval`, `make bench-approval`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pydantic_ai
from tool_approval.audit import JsonlAuditSink
from tool_approval.integrations.pydantic_ai import Approvals

from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalPolicy, ApprovalRequest

from .pairing import Checkpoint, Pair, paired_round
from .spread import Spread, spread
from .variants import Script, Variant, approve_async, ours

PATTERNS = 1_000
"""Number of rules in the policy."""

ENTRIES = 10_000
"""Number of remembered approvals."""

CALLS = 20
"""Calls of one run, each in a separate response."""

APPROVED_LIMIT_MS = 0.25
REMEMBERED_LIMIT_MS = 0.15


class AtOnce:
    """A UI that approves at once."""

    def __init__(self, decision: ApprovalDecision) -> None:
        self._decision = decision

    async def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:
        """Return the decision that was set."""
        return self._decision


@dataclass(frozen=True, kw_only=True)
class Added:
    """Cost that a variant adds to a call, compared with the bare handler."""

    name: str
    """Name of the variant in the table."""
    cpu_ms: Spread
    """Added computing time for each call, in milliseconds."""
    wall_ms: Spread
    """Added elapsed time for each call, in milliseconds."""


def policy(patterns: int) -> ApprovalPolicy:
    """Return a policy of exact names and globs, none of which matches the tool."""
    names = (f'tool_{n}' if n % 2 else f'family_{n}_*' for n in range(patterns))
    return ApprovalPolicy({name: {'approval': 'required'} for name in names})


def filled(memory: ApprovalMemory, entries: int) -> ApprovalMemory:
    """Store `entries` approvals of other calls in the memory."""
    decision = ApprovalDecision(approved=True, remember='session')
    for number in range(entries):
        memory.store(ApprovalRequest(tool_name='touch', args={'other': number}, session_id='bench'), decision)
    return memory


def sink(folder: Path) -> JsonlAuditSink:
    """Return an audit log in a folder."""
    return JsonlAuditSink(folder / 'audit.jsonl', key=b'k' * 32)


def asked_each_time(audit: JsonlAuditSink | None) -> ApprovalController:
    """Return a controller that asks about every call, because no rule matches and nothing is remembered."""
    return ApprovalController(
        policy=policy(PATTERNS),
        memory=filled(ApprovalMemory(), ENTRIES),
        audit=audit,
        ui=AtOnce(ApprovalDecision(approved=True)),
    )


def layered(name: str, controller: ApprovalController) -> Variant:
    """Return a variant whose handler is the whole approval layer."""
    return ours(Approvals(controller, session='bench', default='none'), name)


async def added(variant: Variant, bare: Variant, *, rounds: int, before: Callable[[], None]) -> Added:
    """Measure pairs of runs: one with the variant, one with the bare handler."""
    script = Script(rounds=CALLS, calls=1)

    async def mine(checkpoint: Checkpoint) -> object:
        return await variant.run(script.model(checkpoint))

    async def theirs(checkpoint: Checkpoint) -> object:
        return await bare.run(script.model(checkpoint))

    pairs: list[Pair] = []
    for number in range(rounds + 1):
        before()
        pair = await paired_round(mine, theirs)
        if number:  # the first round warms up
            pairs.append(pair)
    a_call = 1000 / (2 * CALLS)  # a round has two races
    return Added(
        name=variant.name,
        cpu_ms=spread((ours.cpu_s - theirs.cpu_s) * a_call for ours, theirs in pairs),
        wall_ms=spread((ours.wall_s - theirs.wall_s) * a_call for ours, theirs in pairs),
    )


def lookups(rounds: int) -> list[tuple[str, Spread]]:
    """Return the times of look-ups in microseconds, each with a description of what is searched."""
    asked = ApprovalRequest(tool_name='touch', args={'number': 1}, session_id='bench')
    measured: list[tuple[str, Spread]] = []
    for entries in (10, ENTRIES):
        memory = filled(ApprovalMemory(), entries)
        measured.append((f'memory of {entries} entries', _microseconds(lambda m=memory: m.lookup(asked), rounds)))
    for patterns in (10, PATTERNS):
        rules = policy(patterns)
        measured.append((f'policy of {patterns} rules', _microseconds(lambda p=rules: p.rule_for('touch'), rounds)))
    return measured


def _microseconds(action: Callable[[], object], rounds: int) -> Spread:
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(200):
            action()
        times.append((time.perf_counter() - started) / 200 * 1e6)
    return spread(times)


async def measure(rounds: int, folder: Path) -> list[Added]:
    """Measure the whole layer, with calls that are asked about and calls that are remembered."""
    bare = ours(approve_async, 'the bare handler')
    again = ours(approve_async, 'the bare handler (again)')
    log = sink(folder)
    remembered = ApprovalController(
        policy=policy(PATTERNS),
        memory=filled(ApprovalMemory(shares_with_nested=True), ENTRIES),
        audit=log,
        ui=AtOnce(ApprovalDecision(approved=True, remember='session')),
    )
    variants = [
        again,
        layered('approved at once, without the log', asked_each_time(None)),
        layered('approved at once', asked_each_time(log)),
        layered('remembered', remembered),
    ]
    gc.collect()
    gc.freeze()
    results: list[Added] = []
    for variant in variants:
        results.append(await added(variant, bare, rounds=rounds, before=lambda: None))
    return results


def page(results: Sequence[Added], found: Sequence[tuple[str, Spread]], loads: tuple[float, float]) -> str:
    """Return the page for the documentation."""
    by_name = {each.name: each for each in results}
    limits = {'approved at once': APPROVED_LIMIT_MS, 'remembered': REMEMBERED_LIMIT_MS}
    lines = [
        '# Benchmarks of the approval layer',
        '',
        'Written by `python -m benchmarks.approval --write PATH`; `make bench-approval` prints the same figures.',
        (
            f'Measured with pydantic-ai-slim {pydantic_ai.__version__} on CPython {platform.python_version()}, '
            f'{platform.system()} {platform.machine()}, {os.cpu_count()} processors.'
        ),
        f'The load average was {loads[0]:.1f} before and {loads[1]:.1f} after the measurements.',
        '',
        f'A run has {CALLS} calls to approve, one in each response.',
        f'The policy has {PATTERNS} rules, {ENTRIES} approvals are remembered, and each call writes two log lines.',
        'Each run of the layer is paired with a run of a bare handler that approves at once. The two runs take turns.',
        'Each figure is the additional time of one call: the median, with quartiles in brackets.',
        'On a machine without noise, a comparison of the bare handler with itself would give 0.',
        '',
        '| additional cost of a call | computing time, ms | elapsed, ms | limit, ms | verdict |',
        '| --- | --- | --- | --- | --- |',
    ]
    for each in results:
        limit = limits.get(each.name)
        verdict = '' if limit is None else 'met' if each.cpu_ms.median <= limit else '**MISSED**'
        lines.append(
            f'| {each.name} | {_range(each.cpu_ms)} | {_range(each.wall_ms)} | {limit if limit else ""} | {verdict} |'
        )
    approved = by_name['approved at once'].cpu_ms.median
    lines += [
        '',
        (
            f'For a user, an approved call takes {approved:.1f} ms longer than with a bare handler; the target is '
            f'{APPROVED_LIMIT_MS} ms. The wait for a person or a model is far longer.'
        ),
        '',
        'The time of a look-up does not grow with the number of entries or rules:',
        '',
        '| look-up in a | microseconds |',
        '| --- | --- |',
        *(f'| {name} | {_range(each)} |' for name, each in found),
    ]
    assert by_name.keys() >= limits.keys(), 'every limit is judged'
    return '\n'.join(lines) + '\n'


def _range(each: Spread) -> str:
    return f'{each.median:.3f} [{each.lower:.3f}–{each.upper:.3f}]'


def main() -> None:
    """Measure, print the page, and write it if asked to. A missed limit is printed, but is not a failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.approval', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure little')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(measure(3 if options.quick else 30, Path(folder)))
    found = lookups(5 if options.quick else 50)
    text = page(results, found, (before, os.getloadavg()[0]))
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
