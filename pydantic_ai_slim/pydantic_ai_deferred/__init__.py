"""Resolve deferred tool calls inside a Pydantic AI run: approvals and external calls, with one callable.

Modules in the order of a call: `agent` and `variants` take the keyword, which `patching` adds to the host's classes.
`starting` settles the `plan` of a run, and `capability` hooks into the host's loop. `run` keeps the state of the run
and asks, `snapshot` copies the requests for the handler, `handler` calls it, and `results` checks its answer.
`streaming` lets deferred calls pass a stream, and `terminal` gives the handler the terminal in a chat.
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
