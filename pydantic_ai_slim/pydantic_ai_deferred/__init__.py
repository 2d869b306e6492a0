"""Resolve deferred tool calls (approvals and external calls) inside a Pydantic AI run, with one callable.

Read `capability` first: the capability asks the handler. `handler` calls the handler and checks its answer, `toolset`
makes declared calls defer themselves, and `nesting` knows what nested runs inherit. `keyword` adds the keyword
`deferred_tool_handler` to a method of the host; `agent` does so for its own class, and `patching` for the host's.
"""

from .agent import Agent
from .capability import DeferredToolHandler, validated_args
from .handler import HandlerFunc
from .nesting import LineageLevel, lineage
from .patching import install, uninstall

__version__ = '0.1.0'

__all__ = (
    'Agent',
    'DeferredToolHandler',
    'HandlerFunc',
    'LineageLevel',
    'install',
    'lineage',
    'uninstall',
    'validated_args',
)
