"""What runs unasked never touches the tripwire, as bash itself says: `make test-slow`."""

import os
import time

import pytest

from .fuzzing import TRIP, Fuzzer, Oracle, judges

SECONDS = float(os.environ.get('FUZZ_S', '180'))
BATCH = 60


def test_the_oracle_sees_the_tripwire(tmp_path):
    oracle = Oracle(tmp_path)

    reading = dict.fromkeys([TRIP, 'echo a', f'echo $({TRIP})', 'echo b > b', f"echo '$({TRIP})'"], False)

    touched = oracle.touched({**reading, 'echo c > c': True})

    assert touched == [TRIP, f'echo $({TRIP})', 'echo b > b']


@pytest.mark.slow
def test_what_is_allowed_never_touches_the_tripwire(tmp_path, request):
    seed = int(os.environ.get('FUZZ_SEED', time.time_ns() % 1_000_000))
    fuzzer, oracle, both = Fuzzer(seed), Oracle(tmp_path), judges()
    ends = time.monotonic() + SECONDS
    made, ran, waiting = 0, 0, {}

    while time.monotonic() < ends:
        command = fuzzer.command()
        made += 1
        asking, asks_nobody = (judge.explain(command).decision for judge in both)
        if 'allow' in (asking, asks_nobody):
            waiting[command] = asking != 'allow'
        if len(waiting) >= BATCH:
            batch, waiting = waiting, {}
            ran += len(batch)
            assert oracle.touched(batch) == [], f'FUZZ_SEED={seed}'

    with request.config.pluginmanager.getplugin('capturemanager').global_and_fixture_disabled():
        print(f'\nseed {seed}: {made} commands made, {ran} allowed and run')
    assert ran > 0
