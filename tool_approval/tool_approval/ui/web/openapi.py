"""The API's description of itself.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from .view import DecisionBody, ErrorView, RequestList, RequestView, SessionView

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
