import sys
from pathlib import Path
from typing import Any

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


def test_worker_reports_its_versions(tmp_path: Path):
    with started(tmp_path) as worker:
        assert list(worker.versions) == ['pydantic']


def test_what_a_peer_keeps_is_not_in_the_users_home(tmp_path: Path):
    begin = "import pathlib; (pathlib.Path.home() / 'kept').touch()"

    started(tmp_path, begin=begin).close()

    assert not (Path.home() / 'kept').exists()


@pytest.mark.parametrize(
    ('order', 'counts', 'measured'),
    [
        (
            {'rounds': 3, 'calls': 2, 'approval': True, 'repeat': 2},
            {'requests': 8, 'asked': 12, 'executed': 12},
            'wall_s',
        ),
        (
            {'rounds': 3, 'calls': 2, 'approval': False, 'repeat': 1},
            {'requests': 4, 'asked': 0, 'executed': 6},
            'wall_s',
        ),
        ({'waiting': 20, 'trace': True}, {'requests': 40, 'asked': 20, 'executed': 20}, 'traced'),
    ],
    ids=['with approvals', 'without', 'runs that wait at once'],
)
def test_runs_are_measured_and_counted(tmp_path: Path, order: dict[str, Any], counts: dict[str, int], measured: str):
    with started(tmp_path) as worker:
        answer = worker.order(**order)

    assert answer['counts'] == counts
    assert answer[measured] > 0


@pytest.mark.parametrize(
    ('begin', 'timeout_s', 'problem'),
    [
        ("raise LookupError('no such agent')", 60, 'LookupError: no such agent'),
        ("sys.exit('I am gone')", 60, 'I am gone'),
        ('import threading; threading.Event().wait()', 0.5, r'not done in 0\.5 s'),
    ],
    ids=['it cannot be built', 'it ends', 'it takes too long'],
)
def test_worker_that_does_not_start_is_an_error(tmp_path: Path, begin: str, timeout_s: float, problem: str):
    with pytest.raises(WorkerError, match=problem):
        started(tmp_path, begin=begin, timeout_s=timeout_s)


def test_an_order_that_cannot_be_followed_leaves_the_worker_alive(tmp_path: Path):
    with started(tmp_path) as worker:
        with pytest.raises(WorkerError, match='ValueError'):
            worker.order(rounds='many', calls=1, approval=True, repeat=1)
        answer = worker.order(rounds=1, calls=1, approval=True, repeat=1)

    assert answer['counts']['executed'] == 1
