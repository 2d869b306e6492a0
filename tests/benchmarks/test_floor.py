"""The floor counts only if it does what the layer's promises ask for."""

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from tool_approval.audit import verify

from benchmarks.floor import KEY, Floor, Log
from benchmarks.variants import Script, approve_async, check_same_work, ours


@pytest.mark.parametrize('remembers', [False, True])
def test_log_of_the_floor_is_one_that_the_layer_verifies(tmp_path: Path, remembers: bool):
    variant = ours(Floor(Log(tmp_path / 'log'), remembers=remembers), 'the floor')

    asyncio.run(variant.run(Script(rounds=3, calls=2).model()))

    finding = verify(tmp_path / 'log', key=KEY)
    assert (finding.is_intact, finding.head.lines, finding.unfinished) == (True, 12, ())


def test_floor_does_the_work_of_the_bare_handler():
    floor = ours(Floor(None, remembers=True), 'the floor')

    asyncio.run(check_same_work([ours(approve_async, 'the bare handler'), floor]))


def test_floor_executes_nothing_but_what_has_the_digest():
    class Other(Floor):
        async def __call__(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
            results = await super().__call__(ctx, requests)
            for metadata in results.metadata.values():
                metadata['digest'] = 'of another call'
            return results

    with pytest.raises(AssertionError, match='the call has changed'):
        asyncio.run(ours(Other(None, remembers=False), 'the floor').run(Script(rounds=1, calls=1).model()))
