"""Our typed keywords are the newest host's: what it adds works at once, and this test says what type checkers lack."""

import inspect
from importlib.metadata import version
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai.agent import AbstractAgent
from pydantic_ai_deferred import Agent
from pydantic_ai_deferred import keywords as ours

NEWEST = '2.68.0'
OURS = {'deferred_tool_handler'}

TYPED: list[tuple[str, Any, Any, set[str]]] = [
    ('__init__', pydantic_ai.Agent, ours.AgentKeywords, {'model', 'output_type', 'deps_type', 'capabilities'}),
    ('run', AbstractAgent, ours.RunKeywords, {'user_prompt', 'output_type'}),
    ('run_sync', AbstractAgent, ours.RunKeywords, {'user_prompt', 'output_type'}),
    ('run_stream', AbstractAgent, ours.RunKeywords, {'user_prompt', 'output_type'}),
    ('run_stream_sync', AbstractAgent, ours.StreamSyncKeywords, {'user_prompt', 'output_type'}),
    ('run_stream_events', AbstractAgent, ours.IterKeywords, {'user_prompt', 'output_type'}),
    ('iter', pydantic_ai.Agent, ours.IterKeywords, {'user_prompt', 'output_type'}),
    ('override', pydantic_ai.Agent, ours.OverrideKeywords, set()),
    ('from_spec', pydantic_ai.Agent, ours.SpecKeywords, {'spec', 'output_type', 'deps_type'}),
    ('from_file', pydantic_ai.Agent, ours.FileKeywords, {'path', 'output_type', 'deps_type'}),
]


@pytest.mark.skipif(version('pydantic-ai-slim') != NEWEST, reason=f'the types are those of {NEWEST}')
@pytest.mark.parametrize(('method', 'owner', 'typed', 'explicit'), TYPED)
def test_the_typed_keywords_are_the_hosts(method: str, owner: Any, typed: Any, explicit: set[str]):
    host = set(inspect.signature(getattr(owner, method)).parameters) - {'self'}

    known = set(typed.__annotations__) - OURS | explicit

    assert host - known == set(), f'{method} of the host has new keywords: add them to keywords.py'
    assert known - host == set(), f'{method} of the host has lost keywords: remove them from keywords.py'


@pytest.mark.parametrize('typed', [ours.RunKeywords, ours.IterKeywords, ours.StreamSyncKeywords, ours.FileKeywords])
def test_a_run_and_a_constructor_from_a_spec_take_the_handler(typed: Any):
    assert 'deferred_tool_handler' in typed.__annotations__


@pytest.mark.skipif(version('pydantic-ai-slim') != NEWEST, reason=f'the signature is that of {NEWEST}')
@pytest.mark.parametrize('method', ['to_cli', 'to_cli_sync'])
def test_the_chat_takes_what_the_hosts_takes(method: str):
    host = list(inspect.signature(getattr(AbstractAgent, method)).parameters)

    assert list(inspect.signature(getattr(Agent, method)).parameters) == [*host, 'deferred_tool_handler']
