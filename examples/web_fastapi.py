"""Mount the page in a FastAPI application, whose login names the approver. Needs no key and no model.

`python examples/web_fastapi.py` prints an address. Log in there as ada or bob, post a request, and answer it.
The login asks for no password; replace it by yours.
"""

import argparse
import secrets
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from tool_approval.inbox import Approver, ApproverRule, Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.web import inbox_app
from tool_approval.ui.web.serving import listen

from tool_approval import ApprovalDenied, Approvals

PEOPLE = {'ada': Approver(id='ada', groups=frozenset({'staff'})), 'bob': Approver(id='bob')}


def refund(order: int, amount: float) -> str:
    """Refund a customer."""
    return f'Order {order}: {amount} was paid back.'


def make_app(inbox: Inbox, hosts: list[str]) -> FastAPI:
    """Make an application with a login, a service that needs approval, and the page."""
    sessions: dict[str, str] = {}
    staff = ApproverRule(groups=frozenset({'staff'}))
    ui = InboxUI(inbox, timeout=600, approvers={'refund': staff})
    approvals = Approvals(ui=ui)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield
        await ui.aclose()

    app = FastAPI(lifespan=lifespan)

    def who(request: Request) -> Approver | None:
        return PEOPLE.get(sessions.get(request.cookies.get('session', ''), ''))

    @app.get('/login/{name}')
    def login(name: str) -> Response:
        if name not in PEOPLE:
            raise HTTPException(404)
        session = secrets.token_urlsafe()
        sessions[session] = name
        response = RedirectResponse('/approvals/', 303)
        response.set_cookie('session', session, httponly=True, samesite='strict')
        return response

    @app.post('/refunds/{order}')
    async def pay_back(order: int, amount: float) -> dict[str, str]:
        try:
            return {'done': await approvals.execute(refund, {'order': order, 'amount': amount})}
        except ApprovalDenied as denied:
            raise HTTPException(403, denied.reason) from None

    app.mount('/approvals', inbox_app(inbox, authenticate=who, hosts=hosts))
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description='a FastAPI application with the page mounted')
    parser.add_argument('--port', type=int, default=8000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, listen('127.0.0.1', options.port) as listening:
        host = f'127.0.0.1:{listening.getsockname()[1]}'
        with Inbox(SQLiteStore(Path(folder) / 'inbox.sqlite')) as inbox:
            print(f'http://{host}/login/ada', flush=True)
            config = uvicorn.Config(make_app(inbox, [host]), log_level='warning', timeout_graceful_shutdown=1)
            uvicorn.Server(config).run(sockets=[listening])


if __name__ == '__main__':
    main()
