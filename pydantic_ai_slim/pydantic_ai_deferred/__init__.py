"""Resolve deferred tool calls inside a Pydantic AI run: approvals and external calls, with one callable."""

from .agent import Agent
from .handler import DeferredToolHandler, bubble_up
from .patching import install, uninstall
from .results import carry_metadata
from .run import LineageLevel, lineage
from .variants import HandlerAgent

__version__ = '0.1.0'

__all__ = (
    'Agent',
    'DeferredToolHandler',
    'HandlerAgent',
    'LineageLevel',
    'bubble_up',
    'carry_metadata',
    'install',
    'lineage',
    'uninstall',
)
