"""The plugin that runs Pydantic AI's own tests exchanges what these tests import, and says what it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.untraced, pytest.mark.thorough]

ROOT = Path(__file__).parents[3]
TESTS = """
import inspect
import pydantic_ai_deferred
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.models.test import TestModel

def test_ours():
    assert issubclass(Agent, pydantic_ai_deferred.Agent)

def test_keyword():
    assert 'deferred_tool_handler' in inspect.signature(Agent.run).parameters

def test_takes_part():
    answers = []
    Agent(TestModel()).root_capability.apply(answers.append)
    assert any(isinstance(each, pydantic_ai_deferred.DeferredToolHandler) for each in answers)

def test_partial_answers_leave_the_run():
    nothing = HandleDeferredToolCalls(lambda ctx, requests: DeferredToolResults())
    agent = Agent(TestModel(), capabilities=[nothing], output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(lambda: 'gone')
    assert isinstance(agent.run_sync('go').output, DeferredToolRequests)
"""
PASSING = {
    'host': {'test_partial_answers_leave_the_run'},
    'installed': {'test_keyword', 'test_partial_answers_leave_the_run'},
    'agent': {'test_ours', 'test_keyword', 'test_partial_answers_leave_the_run'},
    'declining': {'test_ours', 'test_keyword', 'test_takes_part', 'test_partial_answers_leave_the_run'},
    'handler': {'test_ours', 'test_keyword'},
}


def run(tmp_path: Path, agent: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / 'test_them.py').write_text(TESTS, encoding='utf-8')
    options = ['-c', os.devnull, '--rootdir', str(tmp_path), '-p', 'no:cacheprovider', '-p', 'no:langsmith_plugin']
    command = [sys.executable, '-m', 'pytest', '-p', 'maintainers.upstream.host_tests', '-rA', *options, 'test_them.py']
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
    environment = {**os.environ, 'PYTHONPATH': path, 'DEFERRED_AGENT': agent}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize('agent', PASSING)
def test_the_tests_meet_the_agent_that_was_asked_for(agent: str, tmp_path: Path):
    said = run(tmp_path, agent).stdout

    passed = {line.split('::')[1] for line in said.splitlines() if line.startswith('PASSED')}
    assert passed == PASSING[agent], said


def test_an_unknown_kind_of_agent_is_an_error(tmp_path: Path):
    done = run(tmp_path, 'agnet')

    assert done.returncode != 0
    assert "DEFERRED_AGENT is 'agnet'" in done.stdout + done.stderr
