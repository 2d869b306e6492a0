"""Measure how long a request of 1 MB takes to draw, and programs to start: `python -m benchmarks.terminal`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import pty
import resource
import shutil
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
"""Number of characters in the arguments."""

LIMIT_MS = 100
"""Limit for the median of drawing."""

SLOWEST = 4
"""Requests that the page lists."""

HELP_LIMIT_MS = 300
"""Limit for the median of a whole process that shows help."""

EXPLAIN_LIMIT = 2.5
"""Limit for the median ratio of `explain` to a Python that defines one pydantic model."""

HOOK_LIMIT = 1.5
"""Aim for the median ratio of `hook` to a Python that defines one pydantic model."""

LINE_LIMIT_MS = 300
"""Limit for the median of the time until the user can type."""

BARE = 'a program with one pydantic model'
HELP = '`tool-approval --help`'
HOOK = '`tool-approval hook claude`, for a command'
LINE = '`tool-approval run`, until its prompt appears'
CONFIGURED = 'named.yaml'
"""A settings file under a name that no program finds, so that the other programs have no settings."""
_CONFIGURATION = """\
tools: {send: {approval: none}}
sandbox: {paths: {work: {root: ., mode: rw}}}
shell: {rules: [{pattern: git status, approval: false}]}
"""
_CALL = {'hook_event_name': 'PreToolUse', 'tool_name': 'Bash', 'tool_input': {'command': 'git status'}}
_COMMAND = ('-P', '-m', 'tool_approval.cli')
PROGRAMS: Mapping[str, Sequence[str]] = {
    BARE: ('-c', 'from pydantic import BaseModel\nclass Model(BaseModel):\n    field: int'),
    HELP: (*_COMMAND, '--help'),
    '`tool-approval explain send {}`': (*_COMMAND, 'explain', 'send', '{}'),
    "`tool-approval explain shell 'git status'`": (*_COMMAND, 'explain', 'shell', 'git status'),
    '`explain shell` with a settings file': (*_COMMAND, 'explain', '--config', CONFIGURED, 'shell', 'git status'),
    HOOK: (*_COMMAND, 'hook', 'claude'),
}
"""Arguments for Python, by the name in the table."""


def requests() -> dict[str, ApprovalRequest]:
    """Return large requests, by their description."""
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
        **hostile(),
    }
    made = {name: ApprovalRequest(tool_name='write', args={'content': value}) for name, value in shapes.items()}
    for kind in ('file_content', 'diff', 'command'):
        shown = ApprovalPresentation(type=kind, content=source)
        made[f'lines, as {kind}'] = ApprovalRequest(tool_name='write', args={'content': source}, presentation=shown)
    hunks = '\n'.join(f'@@ -1 +1 @@\n-{"x" * 100}\n+{"y" * 100}' for _ in range(SIZE // 216))
    shown = ApprovalPresentation(type='diff', content=hunks)
    parts = {f'part_{number}': hunks[: SIZE // 200] + str(number) for number in range(200)}
    made['200 arguments and a diff of many hunks'] = ApprovalRequest(tool_name='edit', args=parts, presentation=shown)
    russian = 'привет, мир\n' * (SIZE // 12)
    for kind in ('file_content', 'diff', 'command'):
        shown = ApprovalPresentation(type=kind, content=russian)
        made[f'Russian lines, as {kind}'] = ApprovalRequest(
            tool_name='write', args={'content': russian}, presentation=shown
        )
    return made


def hostile() -> dict[str, Any]:
    """Return large values that are slow to process, by their description."""
    random = Random(6)

    def texts(first: int, last: int, count: int) -> list[str]:
        """Return different texts of random characters between two code points."""
        characters = [chr(number) for number in range(first, last)]
        return [''.join(random.choices(characters, k=SIZE // count)) for _ in range(count)]

    deep: list[Any] = []
    for _ in range(900):
        deep = [deep]
    return {
        '10,000 Cyrillic texts': texts(0x400, 0x500, 10_000),
        '5,000 Arabic texts': texts(0x600, 0x700, 5_000),
        '5,000 texts in many writing systems': texts(0x100, 0x3000, 5_000),
        '25 texts in many writing systems': texts(0x100, 0x3000, 25),
        '5,000 texts of ideographs': texts(0x4E00, 0x9000, 5_000),
        '5,000 random texts': [text.encode('utf-8', 'replace').decode() for text in texts(0, 0x30000, 5_000)],
        '1,000 long Cyrillic names': dict.fromkeys(texts(0x400, 0x500, 1_000), 1),
        '200,000 names in quotation marks': {f'name {number}': number for number in range(200_000)},
        '1,000,000 empty lists': [[] for _ in range(SIZE)],
        '1,000,000 empty mappings': [{} for _ in range(SIZE)],
        '1,000,000 empty texts': [''] * SIZE,
        '900 levels of lists': deep,
        'many short texts': [str(number) for number in range(150_000)],
        'marks alone': '\u0301' * SIZE,
        'different marks': ''.join(random.choices([chr(number) for number in range(0x300, 0x370)], k=SIZE)),
        'letters with marks': 'a\u0301\u0302' * (SIZE // 3),
        'tabs': '\t' * SIZE,
        'carriage returns': 'a\r\n' * (SIZE // 3),
        'direction characters': ''.join(random.choices('\u202e\u202d\u2066\u2069\u200fabc \u05d0', k=SIZE)),
        'emoji': '\U0001f600' * SIZE,
        'joined emoji': '\U0001f468\u200d\U0001f469\u200d\U0001f467' * (SIZE // 5),
        'mathematical letters': ''.join(random.choices([chr(n) for n in range(0x1D400, 0x1D7FF)], k=SIZE)),
        'integers of 4,000 digits': [10**3999] * (SIZE // 4000),
        'one name': {'x' * SIZE: 1},
        'text that begins like an escape': '<U+' * (SIZE // 3),
    }


def drawing(rounds: int) -> list[str]:
    """Return the rows of the table of large requests, of the slowest ones."""
    rows: list[tuple[float, str]] = []
    for name, request in requests().items():
        times: list[float] = []
        for _ in range(rounds):
            started = time.perf_counter()
            render_request(request)
            times.append((time.perf_counter() - started) * 1000)
        median = statistics.median(times)
        rows.append((median, f'| {name} | {_range(spread(times))} | {_verdict(median, LIMIT_MS)} |'))
    return [row for _, row in sorted(rows, reverse=True)[:SLOWEST]]


def starting(rounds: int) -> list[str]:
    """Return the rows of the table of programs. Each program runs once in every round, with cached byte code."""
    took: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as byte_code:
        # The first round, which is not counted, writes the byte code, as an installation does.
        env = {**os.environ, 'PYTHONPYCACHEPREFIX': byte_code, 'PYTHONDONTWRITEBYTECODE': ''}
        # The plugins of pydantic in the development environment take longer to import than pydantic itself.
        env |= {'PYDANTIC_DISABLE_PLUGINS': '__all__', 'CLAUDE_PROJECT_DIR': folder}
        call = json.dumps({**_CALL, 'cwd': folder}).encode()
        Path(folder, CONFIGURED).write_text(_CONFIGURATION, encoding='utf-8')
        for _ in range(rounds + 1):
            for name, words in PROGRAMS.items():
                before = _used_ms()
                subprocess.run(
                    [sys.executable, *words], input=call, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=False
                )
                took[name].append(_used_ms() - before)
                if name == BARE:
                    took.setdefault(LINE, []).append(until_line(folder, env))
    bare = took[BARE][1:]
    rows: list[str] = []
    for name, times in took.items():
        ratio = spread(mine / its for mine, its in zip(times[1:], bare, strict=True))
        took_ms = spread(times[1:])
        verdict = {
            BARE: '',
            HELP: f'{HELP_LIMIT_MS} ms: {_verdict(took_ms.median, HELP_LIMIT_MS)}',
            HOOK: f'{HOOK_LIMIT} times: {_verdict(ratio.median, HOOK_LIMIT)}',
            LINE: f'{LINE_LIMIT_MS} ms: {_verdict(took_ms.median, LINE_LIMIT_MS)}',
        }.get(name, f'{EXPLAIN_LIMIT} times: {_verdict(ratio.median, EXPLAIN_LIMIT)}')
        rows.append(f'| {name} | {_range(took_ms)} | {ratio.median:.2f} | {verdict} |')
    return rows


def _used_ms() -> float:
    """Return the processor time of all programs that were run, which other programs of the machine hardly change."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def until_line(folder: str, env: Mapping[str, str]) -> float:
    """Return the milliseconds until `tool-approval run` shows its prompt in a pseudo-terminal."""
    kept = f'{folder}-kept'
    started = time.perf_counter()
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        env = {**env, 'TERM': 'xterm', 'XDG_CACHE_HOME': kept, 'XDG_STATE_HOME': kept}
        os.execve(sys.executable, [sys.executable, *_COMMAND, 'run', '--model', 'test'], env)
    shown = b''
    while b'> ' not in shown:
        shown += os.read(terminal, 4096)
    took_ms = (time.perf_counter() - started) * 1000
    os.write(terminal, b'\x04')
    with contextlib.suppress(OSError):  # the terminal is closed
        while os.read(terminal, 4096):
            pass
    os.waitpid(process, 0)
    os.close(terminal)
    shutil.rmtree(kept, ignore_errors=True)
    return took_ms


def page(rounds: int) -> str:
    """Return the page for the documentation."""
    before = os.getloadavg()[0]
    drawn, started = drawing(rounds), starting(rounds)
    lines = [
        '# Benchmarks of the terminal',
        '',
        'Written by `python -m benchmarks.terminal --write PATH`; `make bench-terminal` prints the same figures.',
        (
            f'Measured on CPython {platform.python_version()}, {platform.system()} {platform.machine()}, '
            f'{os.cpu_count()} processors.'
        ),
        f'The load average was {before:.1f} before and {os.getloadavg()[0]:.1f} after the measurements.',
        'Figures are medians, with quartiles in brackets.',
        '',
        '## Drawing a large request',
        '',
        f'The {SLOWEST} slowest of {len(requests())} requests of 1 MB:',
        '',
        f'| 1 MB of | milliseconds | limit {LIMIT_MS} ms |',
        '| --- | --- | --- |',
        *drawn,
        '',
        '## Starting',
        '',
        'Milliseconds are processor time, in the last row the time until the prompt appears.',
        'Each ratio compares a program with the program of the first row. Both were measured in the same round.',
        'Plugins of pydantic are switched off.',
        '',
        '| program | milliseconds | ratio | limit |',
        '| --- | --- | --- | --- |',
        *started,
    ]
    return '\n'.join(lines) + '\n'


def _range(each: Spread) -> str:
    return f'{each.median:.0f} [{each.lower:.0f}–{each.upper:.0f}]'


def _verdict(median: float, limit: float) -> str:
    return 'met' if median < limit else '**MISSED**'


def main() -> None:
    """Print the page, and write it if asked to. A missed limit is printed, but is not a failure."""
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
