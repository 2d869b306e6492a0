"""What a call reads and changes is what was decided, as the inodes say: a little here, minutes in `make test-slow`."""

import json
import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from tool_approval.tools.file_sandbox import FileTools, commit, paths, rules

from .fuzzing import World, attempt, harm

SECONDS = float(os.environ.get('FUZZ_S', '600'))
CALLS = 40
"""Calls in one world."""
SEEDS = json.loads((Path(__file__).parent / 'fuzz_seeds.json').read_text())
"""Worlds in which something was found once, and some that reach far."""


def fuzz(top, seed, *, aims=True):
    """Make one world, and calls in it until one does harm; what was decided of each, and the harm."""
    decided = Counter()
    world = World(seed, top, aims=aims)
    for _ in range(CALLS):
        tried = attempt(world)
        decided[tried.decided] += 1
        if problem := harm(world, tried):
            return decided, f'seed {seed}: {tried.name} {tried.arguments} ({tried.decided}, {tried.told!r}): {problem}'
    return decided, ''


def fuzz_many(top, seeds):
    """The same in many worlds, one after the other."""
    decided = Counter()
    for seed in seeds:
        more, problem = fuzz(top / 'w', seed)
        decided += more
        if problem:
            return decided, problem
        shutil.rmtree(top / 'w')
    return decided, ''


@pytest.fixture
def top(tmp_path):
    return tmp_path.resolve()


@pytest.mark.parametrize('seed', SEEDS)
def test_nothing_is_found_in_a_world_where_something_was(top, seed):
    # As they were found: nothing was aimed at then.
    assert fuzz(top / 'w', seed, aims=False)[1] == ''


@pytest.mark.untraced
def test_a_short_run_finds_nothing(top):
    decided, problem = fuzz_many(top, range(1_000, 1_004))

    assert problem == ''
    assert min(decided[each] for each in ('allow', 'ask', 'block')) > 5


class FollowingOs:
    """`os`, but every link is followed."""

    def __getattr__(self, name):
        return getattr(os, name)

    @property
    def supports_dir_fd(self):
        return {self.open}

    def stat(self, name, *, dir_fd=None, follow_symlinks=True):
        return os.stat(name, dir_fd=dir_fd)

    def open(self, name, flags, mode=0o777, *, dir_fd=None):
        return os.open(name, flags & ~os.O_NOFOLLOW, mode, dir_fd=dir_fd)


def _outermost_first(self, names):
    return next((root for root in reversed(self.all) if names[: len(root.names)] == list(root.names)), None)


_find = paths.SandboxRoots.find

SABOTAGES = {
    'links are followed': lambda patch: patch.setattr(paths, 'os', FollowingOs()),
    'every suffix is allowed': lambda patch: patch.setattr(rules, 'has_suffix', lambda name, suffixes: True),
    'everything may be changed': lambda patch: patch.setattr(rules, '_check_change', lambda target, below: None),
    'nothing is a control file': lambda patch: patch.setattr(rules, 'is_control', lambda names: False),
    'other names of a file do not count': lambda patch: patch.setattr(rules, 'has_more_names', lambda target: False),
    'the outermost root decides': lambda patch: patch.setattr(paths.SandboxRoots, 'find', _outermost_first),
    'what is displaced is not looked at': lambda patch: patch.setattr(
        commit, '_is', lambda folder, name, expected: True
    ),
    'nobody is asked': lambda patch: patch.setattr('tool_approval.tools.file_sandbox.sandbox.FileAccess.needs', []),
    'the call is not compared with what was judged': lambda patch: patch.setattr(FileTools, 'run', _run_unjudged),
}


def _run_unjudged(self, name, arguments):
    # As if consent to anything were consent to this.
    self.check_approval(_context(name, arguments))
    return _run(self, name, arguments)


_run = FileTools.run


def _context(name, arguments):
    from tool_approval import ApprovalContext

    return ApprovalContext(tool_name=name, args=arguments)


QUICK = ('links are followed', 'everything may be changed')
"""Found out within seconds; the others take longer."""


@pytest.mark.parametrize(
    'sabotage', [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SABOTAGES]
)
def test_a_sandbox_that_is_broken_is_found_out(top, monkeypatch, sabotage):
    SABOTAGES[sabotage](monkeypatch)

    _, problem = fuzz_many(top, range(300))

    assert problem != ''


@pytest.mark.slow
def test_no_call_reads_or_changes_anything_but_what_was_decided(top, request):
    first = int(os.environ.get('FUZZ_SEED', time.time_ns() % 1_000_000_000))
    ends = time.monotonic() + SECONDS
    decided, worlds, problem = Counter(), 0, ''

    while time.monotonic() < ends and not problem:
        more, problem = fuzz_many(top, [first + worlds])
        decided += more
        worlds += 1

    with request.config.pluginmanager.getplugin('capturemanager').global_and_fixture_disabled():
        print(f'\nfirst seed {first}: {worlds} worlds, {decided.total()} calls, {dict(decided)}')
    assert problem == ''
