"""Slack's own library: everything that is used of it is named here, and nowhere else imported."""

from __future__ import annotations

from tool_approval.core.errors import MissingExtraError

try:
    from aiohttp import ClientError
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.app.async_app import AsyncApp
    from slack_bolt.request.async_request import AsyncBoltRequest
    from slack_bolt.response import BoltResponse
    from slack_sdk.errors import SlackApiError, SlackClientError
    from slack_sdk.http_retry.async_handler import AsyncRetryHandler
    from slack_sdk.http_retry.request import HttpRequest
    from slack_sdk.http_retry.response import HttpResponse
    from slack_sdk.http_retry.state import RetryState
    from slack_sdk.web.async_client import AsyncWebClient
except ImportError:
    raise MissingExtraError('slack-bolt', extra='slack') from None

__all__ = [
    'AsyncApp',
    'AsyncBoltRequest',
    'AsyncRetryHandler',
    'AsyncSocketModeHandler',
    'AsyncWebClient',
    'BoltResponse',
    'ClientError',
    'HttpRequest',
    'HttpResponse',
    'RetryState',
    'SlackApiError',
    'SlackClientError',
]
