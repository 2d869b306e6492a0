"""Measure all peers in turns, round after round, so that a disturbance of the machine slows all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .catalog import Peer
from .process import Worker, WorkerError
from .results import Case, Crowd, Results, Sample, Wait

Start: TypeAlias = Callable[[Peer], Worker]
"""Function that starts the worker of a peer, or raises `WorkerError`."""

Note: TypeAlias = Callable[[str], None]
"""Function that is called with a text about the progress."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Amount of measurements."""

    sizes: Sequence[tuple[str, int, int, int, int]]
    """Sizes of work: kind, rounds, calls, runs in a measurement, and measurements of each peer."""
    crowds: Sequence[tuple[int, int]]
    """Numbers of waiting runs, and of measurements of each peer."""


FULL = Plan(
    sizes=(
        ('rounds', 1, 1, 10, 15),
        ('rounds', 10, 1, 3, 11),
        ('rounds', 50, 1, 1, 9),
        ('rounds', 200, 1, 1, 5),
        ('batch', 1, 10, 3, 11),
        ('batch', 1, 100, 1, 9),
        ('batch', 1, 1000, 1, 5),
    ),
    crowds=((1, 5), (100, 3), (1000, 3)),
)

QUICK = Plan(sizes=(('rounds', 1, 1, 1, 1), ('rounds', 3, 1, 1, 1), ('batch', 1, 5, 1, 1)), crowds=((1, 1), (5, 1)))


def measure(results: Results, peers: Sequence[Peer], plan: Plan, start: Start, note: Note = lambda text: None) -> None:
    """Measure everything in a plan.

    Args:
        results: Where to add the measurements.
        peers: The peers to measure. One that cannot start is listed as missing.
        plan: The amount of measurements.
        start: Starts the workers.
        note: Called with a text about the progress.
    """
    team = _Team(results, peers, start)
    try:
        for kind, rounds, calls, runs, measurements in plan.sizes:
            case = Case(kind=kind, rounds=rounds, calls=calls)
            results.cases.append(case)
            # The first round warms up, unless there is only one, which comes after smaller sizes.
            for number in range(1 if measurements == 1 else 0, measurements + 1):
                for peer in _rotated(team.members(case), number):
                    note(f'{kind} {rounds}x{calls}, round {number}: {peer.name}')
                    sample = team.sample(peer, case, number=number, runs=runs)
                    if sample is not None and number:
                        case.samples.append(sample)
    finally:
        team.close()
    for runs, measurements in plan.crowds:
        crowd = Crowd(runs=runs)
        results.crowds.append(crowd)
        # Another process traces its memory, which also grows it.
        for number in range(measurements + 1):
            for peer in _rotated(peers, number):
                if peer.name in results.missing or peer.name in crowd.failures:
                    continue
                note(f'{runs} waiting, round {number}: {peer.name}')
                _wait(peer, crowd, start, trace=number == measurements)


class _Team:
    """One running worker for each peer. Only one of them works at a time."""

    def __init__(self, results: Results, peers: Sequence[Peer], start: Start) -> None:
        self._start = start
        self._workers: dict[str, Worker] = {}
        self._peers = [peer for peer in peers if peer.name not in results.missing]
        for peer in list(self._peers):
            try:
                worker = self._workers[peer.name] = start(peer)
            except WorkerError as error:
                results.missing[peer.name] = str(error)
                self._peers.remove(peer)
            else:
                results.versions[peer.name] = dict(worker.versions)

    def members(self, case: Case) -> list[Peer]:
        return [peer for peer in self._peers if peer.name not in case.failures]

    def sample(self, peer: Peer, case: Case, *, number: int, runs: int) -> Sample | None:
        try:
            # The second one finds warmer caches.
            order = (True, False) if number % 2 else (False, True)
            asked, plain = sorted(
                ((approval, self._run(peer, case, approval=approval, runs=runs)) for approval in order),
                key=lambda each: not each[0],
            )
        except WorkerError as error:
            case.failures[peer.name] = str(error)
            self._workers[peer.name].close()
            self._workers[peer.name] = self._start(peer)
            return None
        return Sample(
            peer=peer.name,
            round=number,
            cpu_s=asked[1]['cpu_s'],
            wall_s=asked[1]['wall_s'],
            plain_cpu_s=plain[1]['cpu_s'],
            plain_wall_s=plain[1]['wall_s'],
        )

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()

    def _run(self, peer: Peer, case: Case, *, approval: bool, runs: int) -> dict[str, Any]:
        worker = self._workers[peer.name]
        answer = worker.order(rounds=case.rounds, calls=case.calls, approval=approval, repeat=runs)
        calls = case.rounds * case.calls * runs
        _check_work(answer['counts'], requests=(case.rounds + 1) * runs, asked=calls if approval else 0, executed=calls)
        return answer


def _wait(peer: Peer, crowd: Crowd, start: Start, *, trace: bool) -> None:
    try:
        with start(peer) as worker:
            answer = worker.order(waiting=crowd.runs, trace=trace)
            _check_work(answer['counts'], requests=2 * crowd.runs, asked=crowd.runs, executed=crowd.runs)
    except WorkerError as error:
        crowd.failures[peer.name] = str(error)
        return
    crowd.waits.append(
        Wait(
            peer=peer.name,
            resident=None if trace else answer['resident'],
            traced=answer['traced'],
        )
    )


def _check_work(counts: dict[str, int], **expected: int) -> None:
    if counts != expected:
        raise WorkerError(f'did other work: {counts} instead of {expected}')


def _rotated(peers: Sequence[Peer], number: int) -> list[Peer]:
    # Rotate, so that no peer always follows the same one, which would fill the caches and heat the processor for it.
    shift = number % len(peers) if peers else 0
    return [*peers[shift:], *peers[:shift]]
