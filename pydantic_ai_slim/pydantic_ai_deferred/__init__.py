"""Resolve deferred tool calls (approvals and external calls) inside a Pydantic AI run, with one callable.

A run uses the modules in this order. `agent` and `variants` accept the keyword, and `patching` adds the keyword to the
host's classes. `starting` determines the `plan` of a run, and `capability` hooks into the host's loop. `run` keeps the
state of a run, `snapshot` copies the requests for the handler, `handler` calls the handler, and `results` checks its
answer. `streaming` keeps deferred calls from ending a stream. In a chat, `terminal` hands the terminal to the handler.
"""

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
