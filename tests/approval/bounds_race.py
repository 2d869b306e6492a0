"""Take uses of bounded approvals from several processes at once, and compare the count with the bounds.

`python -m tests.approval.bounds_race --store file --rounds 10000` runs the whole schedule; so do `sqlite`, and
`postgres` with a server of its own. In each round, one approval with random bounds is given, and every process makes a
random number of calls with random amounts at the same moment.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tool_approval.core.errors import UsedUp
from tool_approval.core.offers import Offer, with_offers
from tool_approval.storage import FileApprovalStore

from tool_approval import ApprovalDecision, ApprovalMemory, ApprovalRequest

PROCESSES = 8
MOST_CALLS = 3
ROUNDS = (12, pytest.param(10_000, marks=pytest.mark.slow))
"""Rounds of the tests; `make test-slow` runs the long ones."""
AMOUNTS = (0, 0.1, 0.2, 0.3, 1, 2.05, 5, 9.99, 20)


class Round(NamedTuple):
    """One approval, and the amounts of the calls that each process makes."""

    offer: Offer
    first: float
    amounts: list[list[float]]


def round_of(seed: int, number: int) -> Round:
    """Return the round with this number, the same in each process."""
    random = Random(f'{seed}:{number}')
    bounds: dict[str, Any] = {}
    if random.random() < 0.7:
        bounds['uses'] = random.randint(1, 12)
    if not bounds or random.random() < 0.6:
        bounds['total'] = {'amount': random.choice([20, 20.3, 25.55, 40])}
    amounts = [[random.choice(AMOUNTS) for _ in range(random.randint(0, MOST_CALLS))] for _ in range(PROCESSES)]
    return Round(Offer(**bounds, same=('round',)), random.choice(AMOUNTS), amounts)


def request(number: int, amount: float, offer: Offer) -> ApprovalRequest:
    """Return the request of a call in a round."""
    made = ApprovalRequest(tool_name='refund', args={'round': number, 'amount': amount}, metadata={'caller': 'clerk'})
    return with_offers(made, [offer])


Open = Callable[[], ApprovalMemory]


def work(make: Open, worker: int, seed: int, rounds: int, gate: Any, taken: Any) -> None:
    """Make the calls of one process, and mark those that may run."""
    memory = make()
    for number in range(rounds):
        offer, _, amounts = round_of(seed, number)
        gate.wait()
        for index, amount in enumerate(amounts[worker]):
            asked = request(number, amount, offer)
            found = memory.find(asked)
            if found is None:
                continue
            try:
                memory.take(found.id, asked)
            except UsedUp:
                continue
            taken[worker * MOST_CALLS + index] = 1
        gate.wait()


class Tally(NamedTuple):
    """What became of all rounds."""

    rounds: int
    calls: int
    ran: int
    exhausted: int


def race(make: Open, *, rounds: int, seed: int = 0) -> Tally:
    """Run all rounds, and fail at the first whose bounds were exceeded, or in which a use was lost.

    Raises:
        AssertionError: More calls ran than the approval allowed, or fewer were counted than ran.
    """
    context = multiprocessing.get_context('fork')
    gate = context.Barrier(PROCESSES + 1, timeout=120)
    taken = context.Array('b', PROCESSES * MOST_CALLS, lock=False)
    workers = [
        context.Process(target=work, args=(make, worker, seed, rounds, gate, taken)) for worker in range(PROCESSES)
    ]
    for each in workers:
        each.start()
    try:
        memory, calls, ran, exhausted = make(), 0, 0, 0
        for number in range(rounds):
            offer, first, amounts = round_of(seed, number)
            asked = request(number, first, offer)
            kind = asked.remember_options[0].kind
            memory.store(asked, ApprovalDecision(approved=True, remember='always', remember_option=kind))
            taken[:] = bytes(len(taken))
            gate.wait()
            gate.wait()
            let = [
                amount
                for worker, each in enumerate(amounts)
                for index, amount in enumerate(each)
                if taken[worker * MOST_CALLS + index]
            ]
            check(number, offer, first, let, memory)
            calls, ran = calls + sum(map(len, amounts)), ran + len(let)
            exhausted += len(let) < sum(map(len, amounts))
        return Tally(rounds, calls, ran, exhausted)
    finally:
        for each in workers:
            each.kill()
            each.join()


def check(number: int, offer: Offer, first: float, let: list[float], memory: ApprovalMemory) -> None:
    """Compare what ran in a round with the bounds, and with what the store says is left; then forget the approval."""
    total = sum((Decimal(repr(amount)) for amount in (first, *let)), Decimal())
    assert offer.uses is None or 1 + len(let) <= offer.uses, f'round {number}: {1 + len(let)} of {offer.uses} uses'
    most = offer.total.get('amount')
    assert most is None or total <= most, f'round {number}: {total} of {most}'
    stored = memory.list_approvals()
    for each in stored:
        left = each.left
        assert left is not None
        assert offer.uses is None or left.uses == offer.uses - 1 - len(let), f'round {number}: a use was lost'
        assert most is None or left.total['amount'] == most - total, f'round {number}: an amount was lost'
        memory.revoke(each.id)
    assert stored or offer.uses == 1, f'round {number}: the approval was lost'


@contextmanager
def opener(store: str) -> Generator[Open]:
    """Yield a function that opens the memory, as each process does."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if store == 'file':
            yield lambda: ApprovalMemory(FileApprovalStore(place / 'project', place / 'state' / 'approvals.json'))
            return
        from tool_approval.inbox import InboxApprovalStore
        from tool_approval.inbox.stores import SQLiteStore

        if store == 'sqlite':
            yield lambda: ApprovalMemory(InboxApprovalStore(SQLiteStore(place / 'state' / 'inbox.sqlite'), 'p'))
            return
        from tool_approval.inbox.stores.postgres import PostgresStore

        from tests.postgres_server import PostgresServer, find_programs

        programs = find_programs()
        assert programs is not None, 'PostgreSQL is not installed'
        server = PostgresServer(programs)
        server.start()
        try:
            yield lambda: ApprovalMemory(InboxApprovalStore(PostgresStore(server.dsn), 'p'))
        finally:
            server.stop()
            server.remove()


def main() -> None:
    """Run the schedule that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--store', choices=('file', 'sqlite', 'postgres'), required=True)
    parser.add_argument('--rounds', type=int, default=10_000)
    parser.add_argument('--seed', type=int, default=0)
    options = parser.parse_args()
    started = time.monotonic()
    with opener(options.store) as make:
        tally = race(make, rounds=options.rounds, seed=options.seed)
    seconds = time.monotonic() - started
    print(
        f'{options.store}: {tally.rounds} interleavings over {PROCESSES} processes, {tally.calls} calls, {tally.ran} '
        f'ran, {tally.exhausted} rounds reached a bound, none exceeded it ({seconds:.0f} s)'
    )


if __name__ == '__main__':
    main()
