"""What all tests of settings need."""

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine may need more than 20 ms for a command, which is then asked about; no test here is about that."""
    monkeypatch.setattr('tool_approval.tools.shell.grammar.MAX_PARSE_S', 60)
