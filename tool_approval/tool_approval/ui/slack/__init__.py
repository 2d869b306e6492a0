"""Ask in Slack: a bot posts the open requests of an inbox, and approvers answer with buttons."""

from importlib.util import find_spec

from tool_approval.core.errors import MissingExtraError

if not (find_spec('slack_bolt') and find_spec('aiohttp')):
    raise MissingExtraError('slack-bolt', extra='slack')

from .bot import SlackBot

__all__ = ['SlackBot']
