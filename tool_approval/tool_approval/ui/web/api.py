"""The same acts for programs, in JSON, and their description.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tool_approval.inbox import Inbox

from .bodies import answer, read_decision
from .guard import draw_apart
from .page_routes import read_moment, read_number
from .pages import Filter, base_of
from .view import DecisionBody, ErrorView, RequestList, RequestView, SessionView, view_of
from .visitors import CSRF_HEADER, Visitors

_MODELS = (DecisionBody, ErrorView, RequestList, RequestView, SessionView)

_ERRORS: Mapping[int, str] = {
    400: 'The request is malformed.',
    401: 'Nobody is logged in.',
    403: 'It comes from another site, lacks the token, or this person may not answer.',
    404: 'There is no such request.',
    409: 'It is no longer open, or shows something else than what the digest is of. The message says who was first.',
    413: 'The body is too long.',
    415: 'The body is not JSON.',
    421: 'The page is not reached under this host name.',
    422: 'The request does not offer this answer.',
    429: 'Too many requests.',
    503: 'The inbox cannot be reached now. Nothing was approved.',
}

_ALWAYS = (401, 421, 429)


def openapi_document(server: str) -> dict[str, Any]:
    """The document, in JSON form.

    Args:
        server: The path below which the API is.
    """
    _, schemas = models_json_schema(
        [(model, 'serialization' if model is not DecisionBody else 'validation') for model in _MODELS],
        ref_template='#/components/schemas/{model}',
    )
    request_id = _parameter('id', 'The id of a request.', place='path')
    whole = _parameter('whole', '`1` gives all lines, also of what is long.', {'type': 'string', 'enum': ['0', '1']})
    limit = _parameter('limit', 'How many at most.', {'type': 'integer', 'minimum': 1, 'maximum': 200, 'default': 50})
    before = _parameter('before', 'Only those settled before this moment.', {'type': 'string', 'format': 'date-time'})
    after = _parameter('after', 'Only those that follow the request of this id: the last one, to go on from it.')
    token = _parameter('X-CSRF-Token', 'The `csrf_token` of `/session`.', place='header', required=True)
    chosen = [_parameter(name, f'Only those of this {name}.') for name in ('tool', 'agent', 'run')]
    operations: dict[str, dict[str, Any]] = {
        '/session': {'get': _operation('session', 'Who is logged in.', SessionView)},
        '/requests': {
            'get': _operation('open', 'Open requests, the oldest first.', RequestList, [*chosen, limit], (400, 503))
        },
        '/requests/{id}': {
            'get': _operation('request', 'One request.', RequestView, [request_id, whole], (404, 503)),
        },
        '/requests/{id}/decision': {
            'post': {
                **_operation(
                    'decide',
                    'Answer a request. The first valid answer holds.',
                    RequestView,
                    [request_id, token],
                    (400, 403, 404, 409, 413, 415, 422, 503),
                ),
                'requestBody': {'required': True, 'content': _content(DecisionBody.__name__)},
            }
        },
        '/history': {
            'get': _operation(
                'history',
                'Settled requests, the newest first.',
                RequestList,
                [*chosen, limit, before, after],
                (400, 503),
            ),
        },
    }
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Approvals',
            'version': '1',
            'description': 'Open requests of agents, and their answers. Who is logged in is up to the application.',
        },
        'servers': [{'url': server}],
        'paths': operations,
        'components': {'schemas': schemas['$defs']},
    }


def _parameter(
    name: str, told: str, schema: Mapping[str, Any] | None = None, *, place: str = 'query', required: bool = False
) -> dict[str, Any]:
    return {
        'name': name,
        'in': place,
        'required': required or place == 'path',
        'description': told,
        'schema': dict(schema or {'type': 'string'}),
    }


def _operation(
    name: str, told: str, answer: type, parameters: list[dict[str, Any]] | None = None, errors: tuple[int, ...] = ()
) -> dict[str, Any]:
    statuses = sorted({*_ALWAYS, *errors})
    refused = {str(each): {'description': _ERRORS[each], 'content': _content(ErrorView.__name__)} for each in statuses}
    done = {'200': {'description': told, 'content': _content(answer.__name__)}}
    return {'operationId': name, 'summary': told, 'parameters': parameters or [], 'responses': {**done, **refused}}


def _content(name: str) -> dict[str, Any]:
    return {'application/json': {'schema': {'$ref': f'#/components/schemas/{name}'}}}


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
