"""The page about the figures of durable runs."""

import re
from pathlib import Path

import pytest

pytest.importorskip('dbos', reason='the development environment has DBOS')

from benchmarks.durable.answers import BEGUN, Burst, Resumed
from benchmarks.durable.page import page
from benchmarks.durable.parked import Parked
from benchmarks.durable.stories import ASKED, UNASKED
from benchmarks.durable.workers import PLAIN

PAGE = Path(__file__).parents[3] / 'docs' / 'benchmarks' / 'durable.md'
NUMBER = re.compile(r'-?\d+(?:\.\d+)*')


def made(seconds_from_answer, bytes_in_store, cost):
    """The page of figures that are all the same."""
    none = dict.fromkeys(('tasks', 'threads', 'descriptors', 'resident'), 0.0)
    parked, resumed, bursts, stories = [], [], [], {}
    for store, kept in (('PostgreSQL', ('runs', 'requests', 'DBOS')), ('SQLite', ('runs and requests', 'DBOS'))):
        sizes = dict.fromkeys(kept, bytes_in_store / len(kept))
        parked.append(Parked(store=store, runs=1, seconds=1, bytes=sizes, history=0, idle=none, load=0.0))
        delays = {name: [seconds_from_answer] * 100 for name in (BEGUN, 'run ended')}
        resumed.append(Resumed(store=store, parked=1, answers=1, delays=delays, lost=0, twice=0, load=0.0))
        for program, answered in (('durable runs', 1.0), (PLAIN, None)):
            times = {'answered': answered, 'begun': 1.0, 'ended': 1.0, 'cpu_s': 1.0}
            bursts.append(Burst(store=store, program=program, answers=1, load=0.0, **times))
        stories[store] = {name: [[took]] for name, took in ((ASKED, cost), (UNASKED, 1.0), (PLAIN, 1.0))}
    return page(parked, resumed, bursts, stories)


def shape(text):
    """A page without its numbers, and without the line about the machine."""
    return [NUMBER.sub('#', line) for line in text.splitlines() if not line.startswith('Measured on')]


def test_the_page_is_what_the_script_writes_where_all_limits_hold():
    assert shape(PAGE.read_text('utf-8')) == shape(made(1.0, 15 * 1024, 4.0))


@pytest.mark.parametrize('missed', [(1.01, 1, 1.0), (0.1, 15 * 1024 + 1, 1.0), (0.1, 1, 4.1)])
def test_a_missed_limit_is_on_the_page(missed):
    assert '**MISSED**' in made(*missed)
