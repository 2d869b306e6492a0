import sys
from pathlib import Path

import pytest

from maintainers.peers.environments import REPOSITORY
from maintainers.peers.process import Worker, WorkerError

# The whole protocol without any framework: what a peer's worker does is in `run`.
PEER = """
import sys
from maintainers.peers.serve import serve

def build(bench):
    {begin}
    async def run(prompt, approval):
        messages = 0
        print('a framework talks')
        while (numbers := bench.calls_of(prompt, messages, per_call=1, per_response=0)) is not None:
            for number in numbers:
                if approval:
                    await bench.answer()
                bench.touch(number)
                messages += 1
    return run

serve(build, ['pydantic'])
"""


def started(tmp_path: Path, *, begin: str = 'pass', timeout_s: float = 60) -> Worker:
    program = tmp_path / 'peer.py'
    program.write_text(f'import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\n{PEER.format(begin=begin)}')
    return Worker([sys.executable, str(program)], folder=tmp_path, timeout_s=timeout_s)


def test_a_worker_says_what_it_works_with(tmp_path: Path):
    with started(tmp_path) as worker:
        assert list(worker.versions) == ['pydantic']
        assert worker.python == sys.version.split()[0]


def test_a_run_is_timed_and_counted(tmp_path: Path):
    with started(tmp_path) as worker:
        answer = worker.order(rounds=3, calls=2, approval=True, repeat=2)

    assert answer['counts'] == {'requests': 8, 'asked': 12, 'executed': 12}
    assert answer['wall_s'] > 0


def test_a_run_without_approval_asks_nobody(tmp_path: Path):
    with started(tmp_path) as worker:
        answer = worker.order(rounds=3, calls=2, approval=False, repeat=1)

    assert answer['counts'] == {'requests': 4, 'asked': 0, 'executed': 6}


def test_runs_wait_at_once_and_all_are_done(tmp_path: Path):
    with started(tmp_path) as worker:
        answer = worker.order(waiting=20, trace=True)

    assert answer['counts'] == {'requests': 40, 'asked': 20, 'executed': 20}
    assert answer['traced'] > 0


def test_a_peer_that_cannot_be_built_says_why(tmp_path: Path):
    with pytest.raises(WorkerError, match='LookupError: no such agent'):
        started(tmp_path, begin="raise LookupError('no such agent')")


def test_a_worker_that_ends_is_reported_with_its_last_words(tmp_path: Path):
    with pytest.raises(WorkerError, match='I am gone'):
        started(tmp_path, begin="sys.exit('I am gone')")


def test_an_order_that_cannot_be_followed_leaves_the_worker_alive(tmp_path: Path):
    with started(tmp_path) as worker:
        with pytest.raises(WorkerError, match='ValueError'):
            worker.order(rounds='many', calls=1, approval=True, repeat=1)
        answer = worker.order(rounds=1, calls=1, approval=True, repeat=1)

    assert answer['counts']['executed'] == 1


def test_a_worker_that_takes_too_long_is_given_up(tmp_path: Path):
    with pytest.raises(WorkerError, match=r'not done in 0\.5 s'):
        started(tmp_path, begin='import threading; threading.Event().wait()', timeout_s=0.5)
