"""Packages that run an agent, or watch it: its handler is asked once a run, and a denied call does not run.

What is not in the development environment (pydantic-evals pins the host to a release of its own; logfire loads a
plugin of pydantic into every process) is tried in an environment that has it:

    pip install pydantic-evals logfire pytest hypothesis inline-snapshot -e pydantic_ai_slim
    pytest tests/loop/test_beside_other_packages.py
"""

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import ToolDenied
from pydantic_ai.messages import ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, returns, scripted

MISSING = 'is not installed'


def guarded(approved: bool) -> tuple[Any, Recorder, list[str]]:
    """An agent that deletes a file where its handler approves, the handler, and what was deleted."""
    handler = Recorder(**({} if approved else {'1': ToolDenied('not this one')}))
    agent = Agent(scripted([call('delete', '1', path='a')], 'done'), deferred_tool_handler=handler, name='deleting')
    deleted: list[str] = []

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        deleted.append(path)
        return f'deleted {path}'

    return agent, handler, deleted


DECISIONS = pytest.mark.parametrize('approved', [True, False], ids=['approved', 'denied'])


@DECISIONS
def test_the_web_chat_of_the_host_asks_the_handler(approved: bool):
    pytest.importorskip('starlette', reason=f'starlette {MISSING}')
    httpx2 = pytest.importorskip('httpx2', reason=f'httpx2 {MISSING}')
    agent, handler, deleted = guarded(approved)
    if not hasattr(agent, 'to_web'):
        pytest.skip('this release of the host has no `to_web`')
    parts = [{'type': 'text', 'text': 'go'}]
    body = {'trigger': 'submit-message', 'id': 'c', 'messages': [{'id': 'm', 'role': 'user', 'parts': parts}]}

    async def chat() -> Any:
        transport = httpx2.ASGITransport(agent.to_web())
        async with httpx2.AsyncClient(transport=transport, base_url='http://localhost') as client:
            return await client.post('/api/chat', json=body)

    response = asyncio.run(chat())

    assert response.status_code == 200
    assert handler.ids == [['1']]
    assert deleted == (['a'] if approved else [])
    assert ('deleted a' if approved else 'tool-output-denied') in response.text
    assert 'done' in response.text


@DECISIONS
def test_a_server_of_fasta2a_asks_the_handler(approved: bool):
    bridge = pytest.importorskip('fasta2a.pydantic_ai', reason=f'fasta2a {MISSING}', exc_type=ImportError)
    client_module = pytest.importorskip('fasta2a.client', reason=f'httpx {MISSING}', exc_type=ImportError)
    httpx = pytest.importorskip('httpx')
    agent, handler, deleted = guarded(approved)
    app = bridge.agent_to_a2a(agent)
    message = {'role': 'user', 'parts': [{'text': 'go'}], 'message_id': 'm'}

    async def send() -> list[Any]:
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
            client = client_module.A2AClient('http://localhost', http)
            return [event async for event in client.stream_message(message)]

    events = asyncio.run(send())

    assert 'done' in str(events[-2:])
    assert handler.ids == [['1']]
    assert deleted == (['a'] if approved else [])


@DECISIONS
def test_an_evaluation_asks_the_handler_in_each_case(approved: bool):
    evals = pytest.importorskip('pydantic_evals', reason='pydantic-evals: not in the development environment')
    agent, handler, deleted = guarded(approved)

    async def task(prompt: str) -> str:
        result = await agent.run(prompt)
        returned = [part for message in result.all_messages() for part in message.parts]
        return next(str(part.content) for part in returned if isinstance(part, ToolReturnPart))

    dataset = evals.Dataset(name='deletions', cases=[evals.Case(inputs='go'), evals.Case(inputs='go on')])
    report = dataset.evaluate_sync(task, progress=False)

    assert report.failures == []
    assert [case.output for case in report.cases] == ['deleted a' if approved else 'not this one'] * 2
    assert handler.ids == [['1'], ['1']]
    assert deleted == (['a', 'a'] if approved else [])


@DECISIONS
def test_logfire_sees_one_span_for_the_call_that_runs(approved: bool):
    logfire = pytest.importorskip('logfire', reason='logfire: not in the development environment')
    testing = pytest.importorskip('logfire.testing', reason='logfire: not in the development environment')
    agent, handler, deleted = guarded(approved)
    exporter = testing.TestExporter()
    processor = testing.SimpleSpanProcessor(exporter)
    own = logfire.configure(
        local=True, send_to_logfire=False, console=False, metrics=False, additional_span_processors=[processor]
    )
    own.instrument_pydantic_ai(agent)

    agent.run_sync('go')
    names = [span['name'] for span in exporter.exported_spans_as_dict()]

    assert handler.ids == [['1']]
    assert deleted == (['a'] if approved else [])
    assert names.count('execute_tool delete') == len(deleted)
    assert names.count('invoke_agent deleting') == 1


PROGRAM = """
    from pathlib import Path
    from pydantic_ai_deferred import Agent
    from tests.loop.scripted import call, scripted

    def ask(ctx, requests):
        return requests.build_results(approvals={'1': input('Allow it? ') == 'y'})

    agent = Agent(scripted([call('delete', '1', path='a')], 'It is over.'), deferred_tool_handler=ask)

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        Path(path).unlink()
        return 'deleted'
"""


@pytest.mark.parametrize('stream', [[], ['--no-stream']], ids=['streamed', 'not streamed'])
@DECISIONS
def test_the_command_of_the_host_asks_the_handler(tmp_path: Path, stream: list[str], approved: bool):
    pytest.importorskip('prompt_toolkit', reason='`pydantic-ai-slim[cli]` is not installed')
    (tmp_path / 'guarded.py').write_text(textwrap.dedent(PROGRAM))
    (tmp_path / 'a').touch()
    start = 'import sys; from pydantic_ai._cli import cli; sys.exit(cli())'  # what the script of `clai` does
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get('PYTHONPATH', '')])

    done = subprocess.run(
        [sys.executable, '-c', start, '--agent', 'guarded:agent', *stream, 'go'],
        cwd=tmp_path,
        env={**os.environ, 'HOME': str(tmp_path), 'PYTHONPATH': path},
        input='y\n' if approved else 'n\n',
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count('Allow it?') == 1
    assert 'It is over.' in done.stdout
    assert (tmp_path / 'a').exists() is not approved


SERVER = """
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp.types import SamplingMessage, TextContent

    server = MCPServer('poet')

    @server.tool()
    async def write_poem(ctx: Context) -> str:
        question = SamplingMessage(role='user', content=TextContent(type='text', text='A poem, please.'))
        return (await ctx.session.create_message([question], max_tokens=9)).content.text

    server.run()
"""


@DECISIONS
def test_a_tool_of_a_server_samples_after_the_handler_was_asked(tmp_path: Path, approved: bool):
    client = pytest.importorskip('fastmcp.client', reason='`pydantic-ai-slim[mcp]` is not installed')
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    program = tmp_path / 'poet.py'
    program.write_text(textwrap.dedent(SERVER))
    transport = StdioTransport(sys.executable, ['-W', 'ignore', str(program)], keep_alive=False)
    tools = MCPToolset[Any](client.Client(transport, mode='legacy'), id='poet')  # a modern session cannot sample
    sampled: list[str] = []

    def write(messages: Any, info: Any) -> ModelResponse:
        sampled.append(messages[-1].parts[0].content)
        return ModelResponse([TextPart('roses')])

    tools.set_sampling_model(FunctionModel(write))
    handler = Recorder(**{'1': True if approved else ToolDenied('no poems')})
    agent = Agent(
        scripted([call('write_poem', '1')], 'done'),
        toolsets=[tools.approval_required()],
        deferred_tool_handler=handler,
    )

    told = returns(agent.run_sync('go').all_messages())

    assert handler.ids == [['1']]
    assert len(sampled) == (1 if approved else 0)
    assert told == {'1': ('roses', 'success') if approved else ('no poems', 'denied')}
