"""What runs without approval never touches the tripwire, as bash says: a little here, minutes in `make test-slow`."""

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tool_approval.tools.shell import judge as judge_module
from tool_approval.tools.shell.judge import ShellJudge
from tool_approval.tools.shell.reading import CommandReader
from tool_approval.tools.shell.words import Word

from .fuzzing import TRIP, Fuzzer, Oracle, judges

SECONDS = float(os.environ.get('FUZZ_S', '600'))
BATCH = 60
LONGEST_S = 2.0
"""A decision takes a millisecond; this much is a loop that grows with the square of the command."""
FOUND = [
    line.encode().decode('unicode_escape') for line in (Path(__file__).parent / 'found.txt').read_text().splitlines()
]
"""Every command that was once allowed although it touched something, and some like them."""


@dataclass
class Run:
    """What came of fuzzing."""

    made: int = 0
    ran: int = 0
    slowest_s: float = 0
    touched: list[str] = field(default_factory=list)


def fuzz(seed, oracle, is_over, *, batch=BATCH):
    """Try commands until `is_over`, or until one is found that must not be allowed."""
    run, fuzzer, both, waiting = Run(), Fuzzer(seed), judges(), {}
    while not run.touched and not is_over(run):
        command = fuzzer.command()
        run.made += 1
        begin = time.thread_time()
        asking, asks_nobody = (judge.explain(command).decision for judge in both)
        run.slowest_s = max(run.slowest_s, time.thread_time() - begin)
        if 'allow' in (asking, asks_nobody):
            waiting[command] = asking != 'allow'
        if len(waiting) >= batch:
            run.ran += len(waiting)
            run.touched = oracle.touched(waiting)
            waiting = {}
    return run


@pytest.fixture
def oracle(tmp_path):
    if shutil.which('bwrap') is None:
        pytest.skip('bubblewrap is not installed: make install-system')
    return Oracle(tmp_path)


def test_the_oracle_sees_the_tripwire(oracle):
    touching = [
        TRIP,
        f'echo $({TRIP})',
        'echo b > b',
        'git t',
        'git log --output=x',
        'PATH=../../traps ls',
        'BASH_ENV=../../traps/start bash -c ls',
        'MAKEFILES=../../traps/rules make',
        'GIT_TRACE=$PWD/x git status',
    ]
    harmless = ['echo a', f"echo '$({TRIP})'", 'TZ=UTC ls']

    touched = oracle.touched({**dict.fromkeys([*harmless, *touching], False), 'echo c > c': True})

    assert touched == touching


def test_commands_that_fuzzing_found_stay_asked_about(oracle):
    asking, asks_nobody = judges()
    may_write = {}
    for command in FOUND:
        decided = asking.explain(command).decision, asks_nobody.explain(command).decision
        if 'allow' in decided:
            may_write[command] = decided[0] != 'allow'

    touched = oracle.touched(may_write)

    assert len(FOUND) > 50
    assert touched == []


@pytest.mark.untraced
def test_a_short_run_finds_nothing(oracle):
    run = fuzz(5, oracle, lambda run: run.ran >= 100)

    assert run.touched == []
    assert run.slowest_s < LONGEST_S


def _forget_growth(monkeypatch):
    monkeypatch.setattr(
        Word,
        'can_be_option',
        property(lambda word: word.value.startswith('-') or (not word.is_fixed and not word.value)),
    )


SABOTAGES = {
    'an unquoted expansion is one word': _forget_growth,
    'no option is dangerous': lambda patch: patch.setattr(judge_module, 'find_unlisted', lambda words, **known: None),
    'every syntax is understood': lambda patch: patch.setattr(CommandReader, '_problem', lambda reader, problem: None),
    'a redirection writes nothing': lambda patch: patch.setattr(
        ShellJudge, '_redirect', lambda judge, target, is_write, state: None
    ),
    'a wrapper runs nothing': lambda patch: patch.setattr(
        ShellJudge, '_inside', lambda judge, command, inside, decided, state: None
    ),
    'a variable changes nothing': lambda patch: patch.setattr(
        ShellJudge, '_assignment', lambda judge, name, is_exported, state: None
    ),
    'substitutions are text': lambda patch: patch.setattr(
        CommandReader, '_statement', _statement_without_substitutions
    ),
}

_statement = CommandReader._statement


def _statement_without_substitutions(reader, node):
    if node.type != 'command_substitution':
        _statement(reader, node)


QUICK = ('no option is dangerous', 'a redirection writes nothing')
"""Found out within seconds; the others take longer."""


@pytest.mark.parametrize(
    'sabotage', [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SABOTAGES]
)
def test_a_judge_that_is_broken_is_found_out(oracle, monkeypatch, sabotage):
    SABOTAGES[sabotage](monkeypatch)

    most = 1_500 if sabotage in QUICK else 6_000

    run = fuzz(7, oracle, lambda run: run.touched != [] or run.ran >= most, batch=12)

    assert run.touched != []


@pytest.mark.slow
def test_what_is_allowed_never_touches_the_tripwire(oracle, request):
    seed = int(os.environ.get('FUZZ_SEED', time.time_ns() % 1_000_000))
    ends = time.monotonic() + SECONDS

    run = fuzz(seed, oracle, lambda run: time.monotonic() > ends)

    with request.config.pluginmanager.getplugin('capturemanager').global_and_fixture_disabled():
        print(f'\nseed {seed}: {run.made} made, {run.ran} allowed and run, slowest decision {run.slowest_s:.3f} s CPU')
    assert run.touched == [], f'FUZZ_SEED={seed}'
    assert run.ran > 0
    assert run.slowest_s < LONGEST_S
