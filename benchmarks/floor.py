"""Implement the least work that the promises of the approval layer need, in one straight handler.

It looks a call up by a keyed hash, binds the approval to a digest, compares the digest before the tool runs, and writes
two chained lines to a log that other processes may write to. It has no policy, prompt, redaction or error handling, so
do not use it. The difference to the layer's cost shows how much code could be saved.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ToolCallPart

_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, check_circular=False, separators=(',', ':')
).encode

KEY = b'k' * 32
"""Key of the digests and of the log's chain."""


class Log:
    """A log like that of `tool_approval.audit`, for a single writer."""

    def __init__(self, path: Path) -> None:
        """Open the log."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._started = hmac.new(KEY, digestmod='sha256')
        self._mac, self._lines, self._size = '0' * 64, 0, 0

    def write(self, entry: dict[str, Any]) -> None:
        """Append a line, after checking that the file is still the one that was opened and has not grown."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        open_file = os.fstat(self._descriptor)
        assert open_file.st_size == self._size, 'another writer appended to the log'
        assert os.lstat(self._path).st_ino == open_file.st_ino, 'the file was replaced'
        self._lines += 1
        text = _encode({**entry, 'line': self._lines, 'previous': self._mac})
        mac = self._started.copy()
        mac.update(text.encode())
        self._mac = mac.hexdigest()
        self._size += os.write(self._descriptor, f'{text[:-1]},"mac":"{self._mac}"}}\n'.encode())
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)


class Floor:
    """A handler that approves every call, and may remember its approvals."""

    def __init__(self, log: Log | None, *, remembers: bool) -> None:
        """Write to `log` if there is one."""
        self._log = log
        self._remembers = remembers
        self._memory: set[str] = set()

    async def __call__(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Approve every call, bound to its digest."""
        results = DeferredToolResults()
        for call in requests.approvals:
            remembered = _keyed([call.tool_name, 'exact', {'payload': call.args, 'session': 'bench'}], b'fingerprint')
            is_remembered = remembered in self._memory
            if self._remembers:
                self._memory.add(remembered)
            digest = _keyed([call.tool_name, call.args, {}], b'digest')
            results.approvals[call.tool_call_id] = True
            results.metadata[call.tool_call_id] = {'digest': digest}
            self._write(ctx, call, digest, event='decision', approved=True, payload=call.args, note=None,
                        is_remembered=is_remembered, decided_at=datetime.now(UTC).isoformat())  # fmt: skip
        return results

    async def around_execute(
        self,
        ctx: RunContext[object],
        call: ToolCallPart,
        args: dict[str, Any],
        run: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Run an approved call if it has not changed."""
        digest = _keyed([call.tool_name, args, {}], b'digest')
        approved: Mapping[str, str] = ctx.tool_call_metadata
        assert approved['digest'] == digest, 'the call has changed'
        result = await run(args)
        self._write(ctx, call, digest, event='outcome', outcome='executed', error=None)
        return result

    def _write(self, ctx: RunContext[object], call: ToolCallPart, digest: str, **entry: object) -> None:
        if self._log is not None:
            entry |= {'tool_name': call.tool_name, 'tool_call_id': call.tool_call_id, 'run_id': ctx.run_id}
            self._log.write({**entry, 'session_id': 'bench', 'caller': None, 'lineage': [], 'digest': digest})


def _keyed(value: list[Any], purpose: bytes) -> str:
    return blake2b(_encode(value).encode(), digest_size=32, key=KEY, person=purpose).hexdigest()
