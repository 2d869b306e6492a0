from functools import partial

import pytest
from tool_approval.os_sandbox import Availability, BubblewrapBackend, choose_backend

from .process import call


class Working(BubblewrapBackend):
    """Found to work wherever the tests run; no test here starts a command in it."""

    def probe(self):
        return Availability(is_available=True)


POLICY = """\
tools:
  send_notification: {approval: none}
  "delete_*": {approval: blocked}
sandbox:
  paths:
    notes: {root: ./notes, mode: rw, suffixes: [.txt, .md], write_approval: true}
    cache: {root: ./cache, mode: rw, write_approval: false}
shell:
  rules:
    - {pattern: "git status", approval: false}
    - {pattern: "echo", approval: false}
    - {pattern: "rm", allowed: false}
    - {pattern: "cat", approval: false, sandbox_paths: [notes]}
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A working directory with a configuration and some files, in which nothing is trusted or remembered."""
    place = tmp_path / 'work'
    for folder in ('notes', 'cache'):
        (place / folder).mkdir(parents=True)
    (place / 'notes/a.txt').write_text('a\n')
    (place / 'approvals.yaml').write_text(POLICY)
    monkeypatch.chdir(place)
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    return place


@pytest.fixture
def choosing(monkeypatch):
    """`choosing(Working())`: the backends that are tried on this machine."""

    def choose(*candidates):
        monkeypatch.setattr('tool_approval.os_sandbox.choose_backend', partial(choose_backend, candidates=candidates))

    return choose


@pytest.fixture
def tool_approval(work, monkeypatch):
    """`tool_approval('explain', 'shell', 'ls')`: the command in that directory."""

    def run(*arguments, typed='', is_terminal=False):
        return call(monkeypatch, *arguments, typed=typed, is_terminal=is_terminal)

    return run
