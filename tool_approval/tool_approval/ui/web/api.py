"""Serve the JSON API and its OpenAPI description.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from inspect import getdoc
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tool_approval.durable.steering import RunView, summary_of
from tool_approval.inbox import Inbox

from .bodies import answer, read_body
from .guard import draw_apart
from .page_routes import read_moment, read_number
from .pages import Filter, base_of
from .runs import STATUSES, Runs
from .view import DecisionBody, ErrorView, RequestList, RequestView, RunBody, RunList, SessionView, SettleBody, view_of
from .visitors import CSRF_HEADER, Visitors

DEFAULT_LIMIT, MOST = 50, 200
"""Default and maximum number of approval requests in a response. A single request may be a megabyte long."""


class _Operation(NamedTuple):
    """Route and description of an API operation."""

    path: str
    name: str
    """Name of the method of `ApiRoutes` that handles the operation. The docstring of the method is the summary."""
    view: type[BaseModel]
    """Model of the response."""
    parameters: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    """Error statuses of the operation in addition to `_ALWAYS`."""
    body: type[BaseModel] | None = None
    """Model of the POST body; `None` for GET."""


_OPERATIONS = (
    _Operation('/session', 'session', SessionView),
    _Operation('/requests', 'open', RequestList, ('tool', 'agent', 'run', 'limit'), (400, 503)),
    _Operation('/requests/{id}', 'request', RequestView, ('id', 'whole'), (404, 503)),
    _Operation(
        '/requests/{id}/decision',
        'decide',
        RequestView,
        ('id', 'X-CSRF-Token'),
        (400, 403, 404, 409, 413, 415, 422, 503),
        DecisionBody,
    ),
    _Operation('/history', 'history', RequestList, ('tool', 'agent', 'run', 'limit', 'before', 'after'), (400, 503)),
    _Operation('/runs', 'runs', RunList, ('status', 'limit', 'after'), (400, 503)),
    _Operation('/run', 'run', RunView, ('run',), (404, 503)),
    _Operation(
        '/run/cancel',
        'cancel_run',
        RunView,
        ('X-CSRF-Token',),
        (400, 403, 404, 409, 413, 415, 422, 503),
        RunBody,
    ),
    _Operation(
        '/run/settle',
        'settle_call',
        RunView,
        ('X-CSRF-Token',),
        (400, 403, 404, 409, 413, 415, 422, 503),
        SettleBody,
    ),
)
_TEXT: Mapping[str, Any] = {'type': 'string'}
_LIMIT: Mapping[str, Any] = {'type': 'integer', 'minimum': 1, 'maximum': MOST, 'default': DEFAULT_LIMIT}

_PARAMETERS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    'id': ('path', 'Id of the request.', _TEXT),
    'whole': (
        'query',
        '`1` returns all lines; otherwise long content is cut in the middle.',
        {'type': 'string', 'enum': ['0', '1']},
    ),
    'tool': ('query', 'Return only requests of this tool.', _TEXT),
    'agent': ('query', 'Return only requests of this agent.', _TEXT),
    'run': ('query', 'Id of a run. Return only requests of this run.', _TEXT),
    'status': ('query', 'Return only runs with this status.', {'type': 'string', 'enum': list(STATUSES)}),
    'limit': ('query', 'Maximum number of results.', _LIMIT),
    'before': ('query', 'Return only requests settled before this time.', {'type': 'string', 'format': 'date-time'}),
    'after': ('query', 'Return only results after this id, such as the last id of the previous page.', _TEXT),
    'X-CSRF-Token': ('header', 'The `csrf_token` of `/session`.', _TEXT),
}
"""Maps each parameter name to location, description and schema."""

_ERRORS: Mapping[int, str] = {
    400: 'The request is malformed.',
    401: 'The visitor is not logged in.',
    403: 'The request comes from another site, the token is missing, or the visitor is not allowed to do this.',
    404: 'The request or run does not exist.',
    409: 'The request is no longer open or does not match the digest, or the run has ended. See the message.',
    413: 'The body is too large.',
    415: 'The body is not JSON.',
    421: 'The host name is not allowed.',
    422: 'The request does not offer this answer.',
    429: 'Too many requests.',
    503: 'The inbox cannot be reached. Nothing was approved.',
}

_ALWAYS = (401, 421, 429)


class ApiRoutes:
    """Handlers of the API, below `/api/v1`."""

    def __init__(self, inbox: Inbox, runs: Runs, visitors: Visitors) -> None:
        self._inbox = inbox
        self._runs = runs
        self._visitors = visitors
        self._turn = asyncio.Semaphore()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of all operations and of the OpenAPI description."""
        return [
            *(Route(each.path, getattr(self, each.name), methods=[_method(each).upper()]) for each in _OPERATIONS),
            Route('/openapi.json', self.document, methods=['GET']),
        ]

    async def session(self, request: Request) -> Response:
        """Return the logged-in approver."""
        visitor = await self._visitors.visitor(request)
        token = self._visitors.token(visitor)
        return _json(SessionView(id=visitor.id, name=visitor.name, csrf_token=token))

    async def open(self, request: Request) -> Response:
        """List open requests, oldest first."""
        visitor = await self._visitors.visitor(request)
        limit, chosen = _limit(request), Filter(request.query_params)
        entries = await self._inbox.open()
        found = [entry for entry in entries if chosen.passes(entry)]
        views = tuple(view_of(entry, visitor) for entry in found[:limit])
        return _json(RequestList(requests=views, more=len(found) - len(views), damaged=len(entries.damaged)))

    async def request(self, request: Request) -> Response:
        """Return a request."""
        visitor = await self._visitors.visitor(request)
        entry = await self._inbox.get(request.path_params['id'])
        if request.query_params.get('whole') != '1':
            return _json(view_of(entry, visitor))
        return await draw_apart(self._turn, lambda: _json(view_of(entry, visitor, whole=True)))

    async def decide(self, request: Request) -> Response:
        """Answer a request. Only the first valid answer is used."""
        visitor = await self._visitors.changing(request, request.headers.get(CSRF_HEADER))
        body = await read_body(request, DecisionBody)
        entry = await answer(self._inbox, request.path_params['id'], body, visitor)
        return _json(view_of(entry, visitor))

    async def history(self, request: Request) -> Response:
        """List settled requests, newest first."""
        visitor = await self._visitors.visitor(request)
        chosen = Filter(request.query_params)
        after = request.query_params.get('after')
        entries = await self._inbox.history(_limit(request), read_moment(request), after=after)
        return _json(RequestList(requests=tuple(view_of(entry, visitor) for entry in entries if chosen.passes(entry))))

    async def runs(self, request: Request) -> Response:
        """List durable runs, newest first."""
        await self._visitors.visitor(request)
        query = request.query_params
        found = await self._runs.some(query.get('status'), _limit(request), query.get('after'))
        return _json(RunList(runs=tuple(map(summary_of, found))))

    async def run(self, request: Request) -> Response:
        """Return a durable run with its requests and executions."""
        await self._visitors.visitor(request)
        return _json((await self._runs.get(request.query_params.get('run', ''))).view)

    async def cancel_run(self, request: Request) -> Response:
        """Cancel a durable run and withdraw its open requests."""
        visitor = await self._visitors.changing(request, request.headers.get(CSRF_HEADER))
        body = await read_body(request, RunBody)
        return _json((await self._runs.cancel(body.run, visitor)).view)

    async def settle_call(self, request: Request) -> Response:
        """Settle a call whose outcome is unknown."""
        visitor = await self._visitors.changing(request, request.headers.get(CSRF_HEADER))
        body = await read_body(request, SettleBody)
        return _json((await self._runs.settle(body, visitor)).view)

    async def document(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        await self._visitors.visitor(request)
        return JSONResponse(openapi_document(base_of(request)))


def openapi_document(server: str) -> dict[str, Any]:
    """Return the OpenAPI description of an API that is served below the path `server`."""
    models: dict[type[BaseModel], JsonSchemaMode] = {ErrorView: 'serialization'}
    for each in _OPERATIONS:
        models[each.view] = 'serialization'
        if each.body is not None:
            models[each.body] = 'validation'
    _, schemas = models_json_schema(list(models.items()), ref_template='#/components/schemas/{model}')
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Approvals',
            'version': '1',
            'description': 'Approval requests of agents, and their answers. The application provides the login.',
        },
        'servers': [{'url': server}],
        'paths': {each.path: {_method(each): _described(each)} for each in _OPERATIONS},
        'components': {'schemas': schemas['$defs']},
    }


def _method(operation: _Operation) -> str:
    return 'get' if operation.body is None else 'post'


def _described(operation: _Operation) -> dict[str, Any]:
    summary = getdoc(getattr(ApiRoutes, operation.name))
    statuses = sorted({*_ALWAYS, *operation.errors})
    refused = {str(each): {'description': _ERRORS[each], 'content': _content(ErrorView)} for each in statuses}
    described: dict[str, Any] = {
        'operationId': operation.name,
        'summary': summary,
        'parameters': [_parameter(name) for name in operation.parameters],
        'responses': {'200': {'description': summary, 'content': _content(operation.view)}, **refused},
    }
    if operation.body is not None:
        described['requestBody'] = {'required': True, 'content': _content(operation.body)}
    return described


def _parameter(name: str) -> dict[str, Any]:
    place, meaning, schema = _PARAMETERS[name]
    return {'name': name, 'in': place, 'required': place != 'query', 'description': meaning, 'schema': dict(schema)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {'application/json': {'schema': {'$ref': f'#/components/schemas/{model.__name__}'}}}


def _limit(request: Request) -> int:
    return read_number(request, 'limit', most=MOST) or DEFAULT_LIMIT


def _json(view: BaseModel) -> Response:
    return Response(view.model_dump_json(), media_type='application/json')
