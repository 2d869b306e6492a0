"""Review requests in a browser while the run waits: `python examples/web_review.py [--port 0]`.

Open the address that it prints. The agent and the web server share a process and an event loop. `GET /requests` returns
the same list as JSON.
"""

import argparse
import asyncio
import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import parse_qs

import uvicorn
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

Key = tuple[str, str]
"""`(run_id, tool_call_id)`. The run id is needed because a model may use the same call id in two runs."""


class Inbox:
    """A handler that keeps requests open until a reviewer answers them."""

    def __init__(self) -> None:
        self.open: dict[Key, tuple[ToolCallPart, asyncio.Future[bool]]] = {}

    async def __call__(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Open all requests of a model response, and wait for all answers."""
        loop = asyncio.get_running_loop()
        calls = {(ctx.run_id or '', call.tool_call_id): call for call in requests.approvals}
        answers = {key: loop.create_future() for key in calls}
        self.open |= {key: (calls[key], answers[key]) for key in calls}
        results = DeferredToolResults()
        try:
            for (_, tool_call_id), answer in answers.items():
                results.approvals[tool_call_id] = ToolApproved() if await answer else ToolDenied('A reviewer said no.')
        finally:
            # Requests of a cancelled run must not stay open.
            for key in calls:
                self.open.pop(key, None)
        for call in requests.calls:
            results.calls[call.tool_call_id] = ToolFailed('This program cannot carry this out.')
        return results

    def answer(self, key: Key, *, approved: bool) -> bool:
        """Answer a request. Return `False` if the request is not open, because the first answer wins."""
        _, answer = self.open.pop(key, (None, None))
        if answer is None or answer.done():
            return False
        answer.set_result(approved)
        return True


HEAD = '<!doctype html><meta charset="utf-8"><title>Review</title>'


def render(key: Key, call: ToolCallPart, *, token: str) -> str:
    """Return a request as a form, escaped because the text comes from the model, which may have read it anywhere."""
    fields = {'run_id': key[0], 'tool_call_id': key[1]}
    return (
        f'<form method="post" action="/answer?token={escape(token)}">'
        f'<p>{escape(call.tool_name)}</p><pre>{escape(json.dumps(call.args_as_dict(), indent=2))}</pre>'
        + ''.join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in fields.items())
        + '<button name="decision" value="approve">Approve</button> '
        '<button name="decision" value="deny">Deny</button></form>'
    )


def create_app(inbox: Inbox, *, token: str, address: str) -> Starlette:
    """Make the application: the page, its list as JSON, and the endpoint for answers.

    Args:
        inbox: The requests to list and answer.
        token: A token that permits to decide.
        address: The `host:port` in the address of the page.
    """

    async def page(request: Request) -> Response:
        forms = [render(key, call, token=token) for key, (call, _) in inbox.open.items()]
        return HTMLResponse(f'{HEAD}<h1>Review</h1>{"<hr>".join(forms) or "<p>Nothing to review.</p>"}')

    async def listing(request: Request) -> Response:
        return JSONResponse(
            [
                {'run_id': run_id, 'tool_call_id': tool_call_id, 'tool': call.tool_name, 'args': call.args_as_dict()}
                for (run_id, tool_call_id), (call, _) in inbox.open.items()
            ]
        )

    async def answer(request: Request) -> Response:
        form = parse_qs((await request.body()).decode(errors='replace'))
        key = (form.get('run_id', [''])[0], form.get('tool_call_id', [''])[0])
        decision = form.get('decision')
        if decision not in (['approve'], ['deny']):
            return PlainTextResponse('Say approve or deny.', 400)
        if not inbox.answer(key, approved=decision == ['approve']):
            return PlainTextResponse('This is not open any more.', 409)
        return HTMLResponse(f'{HEAD}<p>Done. <a href="/?token={escape(token)}">Back</a>')

    def guarded(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guard(request: Request) -> Response:
            # Attack: the host name of another page is made to point here (DNS rebinding). It arrives as the host.
            if request.headers.get('host') != address:
                return PlainTextResponse('Unknown host.', 421)
            # Attack: a page of another site makes the browser post here. The browser names the site as origin.
            if request.headers.get('origin', f'http://{address}') != f'http://{address}':
                return PlainTextResponse('Unknown origin.', 403)
            # Other users and programs of this machine can reach the port too.
            if not secrets.compare_digest(request.query_params.get('token', '').encode(), token.encode()):
                return PlainTextResponse('Use the address with the token.', 401)
            response = await endpoint(request)
            # Scripts do not run. Other sites can neither show the page in a frame, to steal a click, nor see the token.
            response.headers['content-security-policy'] = (
                "default-src 'none'; form-action 'self'; frame-ancestors 'none'"
            )
            response.headers['referrer-policy'] = 'same-origin'
            response.headers['cache-control'] = 'no-store'
            return response

        return guard

    routes = [('/', page, 'GET'), ('/requests', listing, 'GET'), ('/answer', answer, 'POST')]
    return Starlette(routes=[Route(path, guarded(endpoint), methods=[method]) for path, endpoint, method in routes])


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: drop two tables, one with a malicious name, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not returns:
        names = ('cache', '<script>alert("approve me")</script>')
        return ModelResponse(parts=[ToolCallPart('drop_table', {'name': name}) for name in names])
    return ModelResponse(parts=[TextPart('\n'.join(f'- {part.content}' for part in returns))])


agent = Agent(FunctionModel(plan))


@agent.tool_plain(requires_approval=True)
def drop_table(name: str) -> str:
    """Drop a table."""
    return f'{name} is dropped.'


async def main(port: int) -> None:
    """Serve on the loopback until the run has ended."""
    inbox, token = Inbox(), secrets.token_urlsafe()
    with socket.create_server(('127.0.0.1', port)) as listener:
        address = f'127.0.0.1:{listener.getsockname()[1]}'
        app = create_app(inbox, token=token, address=address)
        server = uvicorn.Server(uvicorn.Config(app, log_level='warning'))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        print(f'Review at http://{address}/?token={token}', flush=True)
        result = await agent.run('Make room.', deferred_tool_handler=inbox)
        server.should_exit = True
        await serving
    print(result.output)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--port', type=int, default=8000, help='0 takes a free one')
    asyncio.run(main(parser.parse_args().port))
