import asyncio
import gc
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import home

# Before a test, or what it tests, is imported; each worker of xdist has one for itself.
HOME = Path(os.path.realpath(tempfile.mkdtemp(prefix='home-')))
os.environ.update(home.furnish(HOME))
# Logfire, which one test uses, would be imported by every process that imports pydantic.
os.environ['PYDANTIC_DISABLE_PLUGINS'] = '__all__'
# Names a file of the user's, wherever the home is.
os.environ.pop('GIT_CONFIG_GLOBAL', None)

# Under `nohup`, and in the background of a script, these are ignored, by what tests start as well: it would not end.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test is no measurement: on a busy machine an example takes longer than Hypothesis's limit.
settings.register_profile('untimed', settings(), deadline=None)
settings.load_profile('untimed')

if shutil.which('bwrap') is None:
    # `tool_approval` does not look in PATH, but such a PATH stands for a machine that has no bubblewrap.
    from tool_approval.os_sandbox import bubblewrap

    bubblewrap._BWRAP = ('/usr/bin/absent-bwrap',)  # pyright: ignore[reportPrivateUsage]

NEEDS_SYSTEM = 'make install-system'
"""Stands in the reason of every test that is skipped because a system package is absent."""


def pytest_unconfigure() -> None:
    """Remove the home of the session."""
    shutil.rmtree(HOME, ignore_errors=True)


def pytest_collection_finish() -> None:
    """Otherwise every full collection of garbage would look through all modules and tests, a twelfth of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where `SYSTEM_PACKAGES=required`, as in continuous integration, such a test fails."""
    report = yield
    if report.skipped and os.environ.get('SYSTEM_PACKAGES') == 'required' and NEEDS_SYSTEM in str(report.longrepr):
        report.outcome = 'failed'
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """At the very end, where it is read: how much was not tested for want of a system package."""
    reasons = Counter(
        report.longrepr[2].removeprefix('Skipped: ')
        for report in terminalreporter.stats.get('skipped', [])
        if isinstance(report.longrepr, tuple) and NEEDS_SYSTEM in report.longrepr[2]
    )
    if reasons:
        terminalreporter.section(f'{reasons.total()} tests skipped; `{NEEDS_SYSTEM}` installs what they need')
        for reason, count in reasons.most_common():
            terminalreporter.line(f'{count:4} {reason}')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tracing lines takes a multiple of the time. The `no_cover` of pytest-cov leaves that on in workers of xdist."""
    trace = sys.gettrace()
    if item.get_closest_marker('untraced') is None or not type(trace).__module__.startswith('coverage'):
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(trace)


@pytest.fixture(scope='session')
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio alone, also where trio is installed."""
    return 'asyncio'


@pytest.fixture(autouse=True)
def close_the_loop_run_sync_leaves() -> Generator[None]:
    """The host's `run_sync` makes an event loop where there is none, and leaves it open for the next call."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        try:
            loop = asyncio.get_event_loop_policy().get_event_loop()
        except RuntimeError:
            return
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def leave_the_home_empty() -> Generator[None]:
    """What a test leaves there, another one finds."""
    yield
    left = home.clear(HOME)
    assert not left, f'the test wrote into the home of all tests, and not into its `own_home`: {left}'


@pytest.fixture
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for one test, which may leave something there. It is outside of `tmp_path`, where agents may write."""
    folder = tmp_path_factory.mktemp('home')
    for variable, value in home.furnish(folder).items():
        monkeypatch.setenv(variable, value)
    return folder
