"""Requests, sinks, threads and processes, for the tests of several folders."""

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from tool_approval import ApprovalController, ApprovalDecision, ApprovalRefused, ApprovalRequest, execute_tool

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
KEY = b'k' * 32


def noon() -> datetime:
    """A clock that does not go on."""
    return NOON


class ListSink:
    """An audit sink in memory.

    `entries` has the decisions, the refusals and what became of the calls that were decided. Questions, and calls that
    the rules let run unasked, are apart, because every agent has many of them.
    """

    def __init__(self):
        self.all: list[Mapping[str, Any]] = []

    def record(self, entry):
        self.all.append(deepcopy(dict(entry)))

    @property
    def entries(self):
        return self._sorted()[0]

    @property
    def unasked(self):
        """Calls that the rules let run unasked, and what became of them."""
        return self._sorted()[1]

    def _sorted(self):
        entries: list[Mapping[str, Any]] = []
        unasked: list[Mapping[str, Any]] = []
        running: Counter[Any] = Counter()
        for entry in self.all:
            call = entry.get('tool_name'), entry.get('tool_call_id'), entry.get('digest')
            is_begun = entry['event'] == 'unasked' and entry['decided_by'] == ['policy']
            is_ended = entry['event'] == 'outcome' and running[call] > 0
            running[call] += is_begun - is_ended
            if entry['event'] != 'question':
                (unasked if is_begun or is_ended else entries).append(entry)
        return entries, unasked

    @property
    def questions(self):
        return [entry for entry in self.all if entry['event'] == 'question']

    def decisions(self):
        return [entry for entry in self.entries if entry['event'] == 'decision']

    def outcomes(self):
        return [entry['outcome'] for entry in self.entries if entry['event'] == 'outcome']


def request_for(path: Any = 'a', **fields: Any) -> ApprovalRequest:
    return ApprovalRequest(**{'tool_name': 'delete', 'args': {'path': path}, **fields})


def decide(controller: ApprovalController, request: ApprovalRequest) -> ApprovalDecision:
    return asyncio.run(controller.request_approval(request))


def decide_all(controller: ApprovalController, *requests: ApprovalRequest) -> list[ApprovalDecision]:
    return asyncio.run(controller.request_approvals(requests))


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What this package logged; `asyncio` may log something about the tasks of earlier tests at any time."""
    return [record.getMessage() for record in caplog.records if record.name.startswith('tool_approval')]


def run_tool(function: Callable[..., Any], args: Mapping[str, Any], controller: ApprovalController, **rest: Any) -> Any:
    return asyncio.run(execute_tool(function, function.__name__, args, controller, **rest))


class CheckingLedger:
    """A ledger that only checks right before a call runs."""

    async def execute(self, call: Any, run: Callable[[], Any], *, check: Callable[[], str | None], **how: Any) -> Any:
        if (reason := check()) is not None:
            raise ApprovalRefused(call.tool_name, reason)
        return await run()


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run all of them at once, each in a thread of its own, and wait."""
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)


def start_python(script: str, *arguments: object) -> 'subprocess.Popen[bytes]':
    """A process of its own that runs `script`; close its standard input when it may begin."""
    return subprocess.Popen(
        [sys.executable, '-c', script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(*processes: 'subprocess.Popen[bytes]') -> list[tuple[int, str, str]]:
    """Let all of them begin at once, and wait: return code, output, errors of each."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    ended = [(process, process.communicate(timeout=120)) for process in processes]
    return [(process.returncode, output.decode(), errors.decode()) for process, (output, errors) in ended]
