"""Asks in Slack: a bot that posts what waits in an inbox, and takes the answers that people press."""

from .bot import SlackBot
from .channel import SlackRefused, SlackUnavailable

__all__ = ['SlackBot', 'SlackRefused', 'SlackUnavailable']
