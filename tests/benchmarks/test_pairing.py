import asyncio

import pytest

from benchmarks.pairing import Checkpoint, Job, Timing, paired_round, race


def recorder(turns: list[str], name: str, checkpoints: int) -> Job:
    async def job(checkpoint: Checkpoint) -> None:
        for number in range(checkpoints):
            # What a run awaits between two model requests must not let the other side in.
            await asyncio.sleep(0)
            turns.append(f'{name}{number}')
            await checkpoint()
        turns.append(f'{name} ends')

    return job


def test_sides_take_turns_at_their_checkpoints():
    turns: list[str] = []

    asyncio.run(race(recorder(turns, 'a', 2), recorder(turns, 'b', 2)))

    assert turns == ['a0', 'b0', 'a1', 'b1', 'a ends', 'b ends']


def test_side_that_is_left_alone_goes_on_to_its_end():
    turns: list[str] = []

    asyncio.run(race(recorder(turns, 'a', 1), recorder(turns, 'b', 3)))

    assert turns == ['a0', 'b0', 'a ends', 'b1', 'b2', 'b ends']


def test_side_without_checkpoints_is_run_before_the_other_begins():
    turns: list[str] = []

    asyncio.run(race(recorder(turns, 'a', 0), recorder(turns, 'b', 1)))

    assert turns == ['a ends', 'b0', 'b ends']


def test_each_side_of_a_round_takes_the_first_turn_once():
    turns: list[str] = []

    asyncio.run(paired_round(recorder(turns, 'a', 1), recorder(turns, 'b', 1)))

    assert turns == ['a0', 'b0', 'a ends', 'b ends', 'b0', 'a0', 'b ends', 'a ends']


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
