"""One conversation, before it is run: what the model says, what the tools do, what is decided about their calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

Deed: TypeAlias = Literal['returns', 'returns nothing', 'returns with content', 'asks for a retry', 'fails']
"""What the body of a tool does where it does not defer; `fails` needs the host's `ToolFailed`."""
Output: TypeAlias = Literal['text', 'tool', 'prompted']
"""How the conversation ends: with text, with an output tool, or with text of a schema."""
Way: TypeAlias = Literal['run', 'iter', 'iter, streamed', 'run with events', 'run_stream_events', 'run_stream']
"""How the agent with a handler is run."""
Place: TypeAlias = Literal['constructor', 'keyword', 'override', 'capability']
"""Where its handler is given; at the other places there is one that must not be asked."""
Style: TypeAlias = Literal['sync', 'async', 'sync, awaitable']
"""What its handler is."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One tool call of the model. What it does not come to is left unused."""

    tool: str
    """A name of `tools.py`, the output tool's, or one that no tool has."""
    args: dict[str, Any] | str | None
    """As the model sends them, possibly invalid."""
    deed: Deed
    """What the tool does when it executes."""
    deferral_metadata: dict[str, Any] | None
    """Given with a deferral that the tool raises."""
    approval: Any
    """The decision, where the call awaits approval: `True`, `False`, `ToolApproved` or `ToolDenied`."""
    result: Any
    """The result, where the call is carried out elsewhere: a plain value or one of the host's results."""
    answer_metadata: dict[str, Any] | None
    """Given with the decision."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One response of the model that has tool calls."""

    calls: tuple[Call, ...]
    """In the order of the response; never empty."""
    text: str
    """What it says beside them, or nothing."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A conversation and how it is run. Each round happens unless an output ends the run before; then comes the end."""

    rounds: tuple[Round, ...]
    """The responses, before the one that ends the conversation."""
    output: Output
    """How the conversation ends."""
    end_strategy: Literal['early', 'graceful', 'exhaustive']
    """What the host does with the other calls beside an output."""
    mode: Literal['parallel', 'sequential', 'parallel_ordered_events']
    """How the host executes the calls of one response."""
    carries_metadata: bool
    """Whether the answers carry the metadata of the deferrals to the tools."""
    way: Way
    """How the agent with a handler is run."""
    place: Place
    """Where its handler is given."""
    style: Style
    """What its handler is."""
    is_meddled: bool
    """Whether its handler spoils what it was shown, after it has decided."""
    allows_leaving: bool
    """Whether its output type has `DeferredToolRequests` though no call needs it."""

    @cached_property
    def calls(self) -> dict[str, Call]:
        """All calls by their id, which sorts in the order of the conversation."""
        return {
            tool_call_id(step, index): call
            for step, round_ in enumerate(self.rounds)
            for index, call in enumerate(round_.calls)
        }

    @property
    def defers_again(self) -> bool:
        """Whether a call may defer again after its approval: then it leaves even a run that has a handler."""
        return any(call.tool.startswith('again_') for call in self.calls.values())

    @property
    def is_streamable(self) -> bool:
        """Whether `run_stream` plays it to the end: it takes the first part that can be an output for the final one."""
        has_output_call = any(call.tool == 'report' for call in self.calls.values())
        has_output_text = self.output != 'tool' and any(round_.text for round_ in self.rounds)
        return not (self.defers_again or has_output_call or has_output_text)


def tool_call_id(step: int, index: int) -> str:
    """The id of a call: the response's position in the conversation, then its own in the response."""
    return f'call-{step}-{index}'
