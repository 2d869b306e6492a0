"""The host's adapters for user interfaces: the handler is asked, and the stream goes on."""

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, scripted

MESSAGE = {'id': 'm', 'role': 'user'}
VERCEL = {
    'trigger': 'submit-message',
    'id': 'c',
    'messages': [{**MESSAGE, 'parts': [{'type': 'text', 'text': 'go'}]}],
}
AG_UI = {
    'threadId': 't',
    'runId': 'r',
    'state': None,
    'messages': [{**MESSAGE, 'content': 'go'}],
    'tools': [],
    'context': [],
    'forwardedProps': None,
}


@pytest.mark.parametrize(
    ('module', 'name', 'body'),
    [
        ('pydantic_ai.ui.vercel_ai', 'VercelAIAdapter', VERCEL),
        ('pydantic_ai.ui.ag_ui', 'AGUIAdapter', AG_UI),
    ],
    ids=['Vercel', 'AG-UI'],
)
def test_an_adapter_asks_the_handler_of_the_agent_and_streams_what_follows(module: str, name: str, body: Any):
    adapter_type = getattr(pytest.importorskip(module, exc_type=ImportError), name)
    handler = Recorder()
    agent = Agent(scripted([call('delete', '1')], 'done'), deferred_tool_handler=handler)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    run_input = adapter_type.build_run_input(json.dumps(body).encode())
    adapter = adapter_type(agent=agent, run_input=run_input, accept=None)

    async def stream() -> str:
        return ''.join([event async for event in adapter.encode_stream(adapter.run_stream())])

    streamed = asyncio.run(stream())

    assert handler.ids == [['1']]
    assert 'deleted' in streamed
    assert 'done' in streamed
