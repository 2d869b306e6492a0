"""A server with all that the SDK offers, as a program of its own: `python rich_mcp_server.py`."""

import asyncio
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer('rich')


class Sum(BaseModel):
    total: int


class Agreed(BaseModel):
    yes: bool


@server.tool()
def add(a: int, b: int) -> Sum:
    return Sum(total=a + b)


@server.tool()
def draw() -> Image:
    return Image(data=b'\x89PNG', format='png')


@server.tool()
def fail() -> str:
    raise ToolError('out of ink')


@server.tool()
async def count(ctx: Context) -> str:
    await ctx.report_progress(1, 2, 'half')
    await ctx.session.send_log_message('info', 'counting')
    return 'counted'


@server.tool()
async def ask(ctx: Context) -> str:
    agreed = await ctx.elicit('Sure?', Agreed)
    roots = await ctx.session.list_roots()
    asked = SamplingMessage(role='user', content=TextContent(type='text', text='hi'))
    said = await ctx.session.create_message([asked], max_tokens=5)
    return f'{agreed.action} {roots.roots[0].uri} {said.content.text}'


@server.tool()
async def wait(ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        sys.stderr.write('the server was told to stop\n')
        sys.stderr.flush()
        raise
    return 'waited'


@server.resource('note://{name}')
def note(name: str) -> str:
    return f'the note {name}'


@server.prompt()
def greet(name: str) -> str:
    return f'Greet {name}.'


if __name__ == '__main__':
    server.run()
