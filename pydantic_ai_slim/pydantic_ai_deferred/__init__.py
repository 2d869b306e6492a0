"""Resolve deferred tool calls, which are approvals and external calls, inside a Pydantic AI run with one callable.

The modules in the order of a call: `agent` and `variants` accept the keyword, and `patching` adds it to the host's
classes. `starting` determines the `plan` of a run, and `capability` hooks into the host's loop. `run` keeps the state
of the run and asks the handler, `snapshot` copies the requests for it, `handler` calls it, and `results` checks its
answer. `streaming` lets deferred calls pass a stream, and `terminal` gives the handler the terminal during a chat.
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
