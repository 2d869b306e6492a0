"""The same acts for programs, in JSON."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tool_approval.inbox import Inbox

from .answering import answer
from .bodies import read_decision
from .limits import draw_apart
from .listing import Filter
from .openapi import openapi_document
from .page_routes import read_moment, read_number
from .pages import base_of
from .view import RequestList, SessionView, view_of
from .visitors import CSRF_HEADER, Visitors

DEFAULT_LIMIT, MOST = 50, 200
"""Chosen: requests at once, unless `limit` says otherwise, and at most. One may have a megabyte."""


class ApiRoutes:
    """Below `/api/v1`."""

    def __init__(self, inbox: Inbox, visitors: Visitors) -> None:
        """Offer an inbox to whoever is logged in."""
        self._inbox = inbox
        self._visitors = visitors
        self._turn = asyncio.Semaphore()

    def routes(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route('/session', self.session, methods=['GET']),
            Route('/requests', self.requests, methods=['GET']),
            Route('/requests/{id}', self.one, methods=['GET']),
            Route('/requests/{id}/decision', self.decide, methods=['POST']),
            Route('/history', self.history, methods=['GET']),
            Route('/openapi.json', self.document, methods=['GET']),
        ]

    async def session(self, request: Request) -> Response:
        """Who is logged in."""
        visitor = await self._visitors.visitor(request)
        token = self._visitors.token(visitor)
        return _json(SessionView(id=visitor.id, name=visitor.name, csrf_token=token))

    async def requests(self, request: Request) -> Response:
        """What is open."""
        visitor = await self._visitors.visitor(request)
        limit, chosen = _limit(request), Filter.of(request.query_params)
        found = [entry for entry in await self._inbox.open() if chosen.passes(entry)]
        views = tuple(view_of(entry, visitor) for entry in found[:limit])
        return _json(RequestList(requests=views, more=len(found) - len(views)))

    async def one(self, request: Request) -> Response:
        """One request."""
        visitor = await self._visitors.visitor(request)
        entry = await self._inbox.get(request.path_params['id'])
        if request.query_params.get('whole') != '1':
            return _json(view_of(entry, visitor))
        return await draw_apart(self._turn, lambda: _json(view_of(entry, visitor, whole=True)))

    async def decide(self, request: Request) -> Response:
        """Answer one request."""
        visitor = await self._visitors.changing(request, request.headers.get(CSRF_HEADER))
        body = await read_decision(request)
        entry = await answer(self._inbox, request.path_params['id'], body, visitor)
        return _json(view_of(entry, visitor))

    async def history(self, request: Request) -> Response:
        """What was settled."""
        visitor = await self._visitors.visitor(request)
        chosen = Filter.of(request.query_params)
        after = request.query_params.get('after')
        entries = await self._inbox.history(_limit(request), read_moment(request), after=after)
        return _json(RequestList(requests=tuple(view_of(entry, visitor) for entry in entries if chosen.passes(entry))))

    async def document(self, request: Request) -> Response:
        """What there is, for programs that make clients."""
        await self._visitors.visitor(request)
        return JSONResponse(openapi_document(base_of(request)))


def _limit(request: Request) -> int:
    return read_number(request, 'limit', most=MOST) or DEFAULT_LIMIT


def _json(view: BaseModel) -> Response:
    return Response(view.model_dump_json(), media_type='application/json')
