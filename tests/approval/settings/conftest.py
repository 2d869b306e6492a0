"""What all tests of settings need."""

from pathlib import Path

import pytest
from tool_approval.settings import TrustStore


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine may need more than 20 ms for a command, which is then asked about; no test here is about that."""
    monkeypatch.setattr('tool_approval.tools.shell.grammar.MAX_PARSE_S', 60)


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
