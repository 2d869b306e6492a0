import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.pairing import Checkpoint, Job, Timing, paired_round, race


def recorder(turns: list[str], name: str, checkpoints: int) -> Job:
    async def job(checkpoint: Checkpoint) -> None:
        for number in range(checkpoints):
            # A run that awaits something between two model requests must not let the other side in.
            await asyncio.sleep(0)
            turns.append(f'{name}{number}')
            await checkpoint()
        turns.append(f'{name} ends')

    return job


@pytest.mark.parametrize(
    ('run', 'checkpoints', 'expected'),
    [
        pytest.param(race, (2, 2), ['a0', 'b0', 'a1', 'b1', 'a ends', 'b ends'], id='at each checkpoint'),
        pytest.param(race, (1, 3), ['a0', 'b0', 'a ends', 'b1', 'b2', 'b ends'], id='until one side has ended'),
        pytest.param(race, (0, 1), ['a ends', 'b0', 'b ends'], id='never without checkpoints'),
        pytest.param(
            paired_round,
            (1, 1),
            ['a0', 'b0', 'a ends', 'b ends', 'b0', 'a0', 'b ends', 'a ends'],
            id='in a round, with each side first once',
        ),
    ],
)
def test_sides_take_turns(run: Callable[..., Any], checkpoints: tuple[int, int], expected: list[str]):
    turns: list[str] = []
    first, second = checkpoints

    asyncio.run(run(recorder(turns, 'a', first), recorder(turns, 'b', second)))

    assert turns == expected


def test_timing_leaves_out_the_turns_of_the_other_side(monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr('benchmarks.pairing.time.perf_counter', lambda: now)
    monkeypatch.setattr('benchmarks.pairing.time.process_time', lambda: now / 2)

    def taking(*durations: float) -> Job:
        async def job(checkpoint: Checkpoint) -> None:
            nonlocal now
            for duration in durations[:-1]:
                now += duration
                await checkpoint()
            now += durations[-1]

        return job

    first, second = asyncio.run(race(taking(1, 2, 4), taking(100, 200)))

    assert first == Timing(cpu_s=3.5, wall_s=7)
    assert second == Timing(cpu_s=150, wall_s=300)


def test_failure_of_one_side_is_raised_when_the_other_has_ended():
    turns: list[str] = []

    async def failing(checkpoint: Checkpoint) -> None:
        await checkpoint()
        raise LookupError('failed')

    with pytest.raises(LookupError, match='failed'):
        asyncio.run(race(failing, recorder(turns, 'b', 2)))

    assert turns == ['b0', 'b1', 'b ends']
