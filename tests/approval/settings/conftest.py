"""Fixtures that all tests of settings use."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from tool_approval.os_sandbox import BubblewrapBackend
from tool_approval.settings import TrustStore

from tests.approval.os_sandbox.house import skip_reason

from .desk import Backend
from .yard import GIT, Yard


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Give a busy machine more than 20 ms to parse a command: a command that takes longer needs approval."""
    monkeypatch.setattr('tool_approval.tools.shell.grammar.MAX_PARSE_S', 60)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Where caches of commands are, and the state: not in the home directory of whoever runs the tests."""
    folder = tmp_path_factory.mktemp('cache')
    monkeypatch.setenv('XDG_CACHE_HOME', str(folder))
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path_factory.mktemp('state')))
    return folder


@pytest.fixture
def confined_folder():
    """A folder for a backend that works; outside of the folder of `tmp_path`, which an ordinary user may not enter."""
    if sys.platform != 'linux' or not BubblewrapBackend().probe().is_available:
        pytest.skip('bubblewrap does not work here: make install-system')
    folder = Path(tempfile.mkdtemp(prefix='settings-')).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def no_os_sandbox(monkeypatch):
    """This machine has no OS sandbox that works."""
    monkeypatch.setattr('tool_approval.os_sandbox.choose.platform_backends', lambda: ())


@pytest.fixture
def store(tmp_path):
    return TrustStore(tmp_path / 'state' / 'trusted.json')


@pytest.fixture
def homeless(monkeypatch):
    """There is no home folder to find the state directory in."""

    def no_home():
        raise RuntimeError

    monkeypatch.delenv('XDG_STATE_HOME', raising=False)
    monkeypatch.setattr(Path, 'home', no_home)


@pytest.fixture(params=['root', 'ordinary'])
def yard(request):
    """A repository in which commands run as root, and as an ordinary user."""
    if reason := skip_reason(request.param):
        pytest.skip(reason)
    if not os.path.isfile(GIT):
        pytest.skip('git is not installed below /usr')
    folder = Path(tempfile.mkdtemp(prefix='yard-')).resolve()
    try:
        yield Yard(folder, user=request.param)
    finally:
        shutil.rmtree(folder)
