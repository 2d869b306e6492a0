"""Ask in Discord: a bot posts the open requests of an inbox, and approvers answer with buttons."""

from importlib.util import find_spec

from tool_approval.core.errors import MissingExtraError

if not find_spec('discord'):
    raise MissingExtraError('discord.py', extra='discord')

from .bot import DiscordBot

__all__ = ['DiscordBot']
