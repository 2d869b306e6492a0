"""Measure how long the shell's rules take to decide: `python -m benchmarks.tools_shell`, `make bench-tools`."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tool_approval.tools.shell import ShellConfig
from tool_approval.tools.shell.entries import entries
from tool_approval.tools.shell.grammar import MAX_BYTES
from tool_approval.tools.shell.judge import ShellJudge

CORPUS = Path(__file__).parents[1] / 'tests' / 'corpus' / 'shell.json'
"""Sample commands, each with its rules."""

RULES = 10_000
"""Number of rules in the large configuration."""

LOAD_LIMIT_MS = 30.0
MEDIAN_LIMIT_MS = 1.0
RULES_LIMIT_MS = 2.0


def best_ms(decide: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several times in milliseconds, because other work of the machine only adds to a time."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        decide()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def judge(rules: list[dict[str, Any]], default: dict[str, Any]) -> ShellJudge:
    """Return the judge for a configuration."""
    return ShellJudge(ShellConfig.model_validate({'rules': rules, 'default': default}), cwd='/corpus')


def corpus_ms(repeats: int) -> list[float]:
    """Return the milliseconds of a decision, for each command of the corpus."""
    measured: list[float] = []
    for row in json.loads(CORPUS.read_text()):
        rules = [{key: value for key, value in rule.items() if key != 'sandbox_paths'} for rule in row['rules']]
        decides, command = judge(rules, row['default']), row['command']
        measured.append(best_ms(lambda decides=decides, command=command: decides.explain(command), repeats))
    return measured


def main() -> None:
    """Print the figures, and exit with an error if one misses its target."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('--repeats', type=int, default=20, help='measurements of each command')
    repeats: int = arguments.parse_args().repeats

    corpus = corpus_ms(repeats)
    median = statistics.median(corpus)
    print(f'Python {platform.python_version()}, {len(corpus)} commands of the corpus')
    print(f'a decision: median {median:.3f} ms, 95 % under {statistics.quantiles(corpus, n=20)[-1]:.3f} ms')

    plain = judge([{'pattern': 'echo', 'approval': False}], {})
    for name, command in (
        (f'the longest that is parsed ({MAX_BYTES} bytes)', 'echo ' + 'a ' * ((MAX_BYTES - 5) // 2)),
        ('one byte more, unparsed', 'echo ' + 'a' * (MAX_BYTES - 4)),
        ('the slowest shape known, cut off', 'a|' * (MAX_BYTES // 2)),
    ):
        outcome = plain.explain(command).decision
        print(f'{name}: {best_ms(lambda command=command: plain.explain(command), repeats):.2f} ms, {outcome}')

    load = best_ms(entries.__wrapped__, repeats)
    print(f'the entries of programs and sub-commands are loaded in {load:.2f} ms')

    rules = [{'pattern': f'program{number}x run', 'approval': False} for number in range(RULES - 2)]
    many = judge([*rules, {'pattern': 'git status', 'approval': False}, {'pattern': 'rm', 'allowed': False}], {})
    of_many = best_ms(lambda: many.explain('git status --short'), repeats)
    same = judge([{'pattern': f'git sub{number}', 'approval': False} for number in range(RULES)], {})
    of_same = best_ms(lambda: same.explain('git status --short'), repeats)
    print(f'{RULES} rules: {of_many:.3f} ms; all of them about the same program: {of_same:.3f} ms')

    missed = [load > LOAD_LIMIT_MS, median > MEDIAN_LIMIT_MS, of_many > RULES_LIMIT_MS]
    raise SystemExit('a target was missed' if any(missed) else 0)


if __name__ == '__main__':
    main()
