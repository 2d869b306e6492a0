"""Run a worker process, send it orders, and read its answers."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

_QUIET = {'LANGSMITH_TRACING': 'false', 'OPENAI_AGENTS_DISABLE_TRACING': '1', 'NO_COLOR': '1'}
# No keys, and no proxy: a peer that tries to send data home fails.
_KEPT = ('PATH', 'LANG', 'LC_ALL', 'TMPDIR', 'LD_LIBRARY_PATH')


class WorkerError(Exception):
    """A worker could not carry out an order: it reported an error, ended, or took too long."""


class Worker:
    """A process that carries out one order after another."""

    def __init__(self, command: Sequence[str], *, folder: Path, timeout_s: float) -> None:
        """Start the process, and wait until it is ready.

        Args:
            command: The command to run.
            folder: The working directory.
            timeout_s: Seconds that the process may take to get ready, and for each order.

        Raises:
            WorkerError: The process did not get ready.
        """
        self._timeout_s = timeout_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        # Peers keep logs and caches in the home directory: not in the user's.
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**{name: os.environ[name] for name in _KEPT if name in os.environ}, **_QUIET, 'HOME': self._home.name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        try:
            ready = self._answer()
        except BaseException:
            self.close()
            raise
        self.versions: Mapping[str, str] = ready['versions']
        """Versions of the distributions that the worker uses, by name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def order(self, **order: Any) -> dict[str, Any]:
        """Send an order, and wait for the answer.

        Raises:
            WorkerError: The worker failed, ended, or took too long. Unless it only failed, it is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b'\n')
            self._process.stdin.flush()
        except OSError:
            raise WorkerError(f'The worker has ended: {self._last_words()}') from None
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            # Discard buffered orders for a process that has ended.
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._home.cleanup()

    def _answer(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        if not select.select([stream], [], [], self._timeout_s)[0]:
            self._process.kill()
            raise WorkerError(f'not done in {self._timeout_s:g} s')
        line = stream.readline()
        if not line:
            raise WorkerError(f'The worker has ended: {self._last_words()}')
        answer = cast(dict[str, Any], json.loads(line))
        if 'error' in answer:
            raise WorkerError(answer['error'])
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors='replace').strip().splitlines()
        return lines[-1] if lines else f'exit status {self._process.returncode}'
