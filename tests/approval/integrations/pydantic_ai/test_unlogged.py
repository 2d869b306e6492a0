"""No call runs without a line in the log: what happens to calls when the log on disk cannot be continued."""

import os

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolResults
from pydantic_ai.capabilities import HandleDeferredToolCalls
from tool_approval.audit import JsonlAuditSink
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import RecordingUI

from tests.approval.parts import KEY
from tests.loop.scripted import call, returns, scripted


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'audit.jsonl'


def rotated(path):
    path.rename(path.with_name('audit.jsonl.1'))
    path.touch(0o600)


def moved(path):
    path.rename(path.with_name('audit.jsonl.1'))


def emptied(path):
    os.truncate(path, 0)


def cut(path):
    path.write_bytes(b''.join(path.read_bytes().splitlines(keepends=True)[:-1]))


def cut_in_a_line(path):
    os.truncate(path, path.stat().st_size - 20)


def readable_by_others(path):
    path.chmod(0o644)


@pytest.mark.parametrize('fault', [rotated, moved, emptied, cut, cut_in_a_line, readable_by_others])
@pytest.mark.parametrize('kind', ['asked', 'by mode', 'unasked', 'by others'])
def test_no_call_runs_if_the_log_cannot_be_continued(path, fault, kind):
    ran, ui = [], RecordingUI(True)
    sink = JsonlAuditSink(path, key=KEY)
    rule = {'delete': {'approval': 'none' if kind == 'unasked' else 'required'}}
    mode = 'approve_all' if kind == 'by mode' else 'interactive'
    others = HandleDeferredToolCalls(lambda ctx, requests: DeferredToolResults(approvals={'1': True}))
    capabilities = [*([others] if kind == 'by others' else []), Approvals(rule, ui=ui, log=sink, mode=mode)]
    agent = pydantic_ai.Agent(scripted([call('delete', '1', path='a')], 'done'), capabilities=capabilities)

    @agent.tool_plain
    def delete(path: str) -> None:
        ran.append(path)

    agent.run_sync('go')
    fault(path)
    before = path.read_bytes() if path.exists() else None

    result = agent.run_sync('go')

    assert ran == ['a']
    assert len(ui.requests) == (1 if kind == 'asked' else 0)  # none of what cannot be logged
    content, _ = returns(result.all_messages())['1']
    assert 'could not be written to the audit log' in content
    assert (path.read_bytes() if path.exists() else None) == before
