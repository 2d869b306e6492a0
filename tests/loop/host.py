"""The agent under test: our layer's, or the host's own where the patch for upstream is in it.

`DEFERRED_HOST=patched` says that `pydantic_ai` is the patched one; see `maintainers/upstream/README.md`. Tests about
what only our layer has are marked `layer_only`, and listed with the reasons in `maintainers/upstream/LAYER_ONLY.md`.
"""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING

import pydantic_ai
import pydantic_ai_deferred

IS_PATCHED = os.environ.get('DEFERRED_HOST', 'layer') == 'patched'
"""Whether the tests run on the patched host."""

if TYPE_CHECKING or not IS_PATCHED:
    from pydantic_ai_deferred.results import check_results

    Agent = pydantic_ai_deferred.Agent
else:
    from pydantic_ai._deferred_results import check_results

    Agent = pydantic_ai.Agent

__all__ = ('IS_PATCHED', 'SKIPPED', 'Agent', 'check_results')

SKIPPED = (
    'Tool not executed - a final result was already processed.'
    if IS_PATCHED
    else 'Not executed: the run had reached its final result.'
)
"""What the history says of a raised deferral beside an output that ends the run."""

# With one of the two forgotten, the tests would pass and say nothing about the patch.
_has_keyword = 'deferred_tool_handler' in inspect.signature(pydantic_ai.Agent.run).parameters
assert _has_keyword == IS_PATCHED, f'{pydantic_ai.__file__} is not the host that DEFERRED_HOST names'
