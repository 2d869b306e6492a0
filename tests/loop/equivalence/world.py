"""What happens while a scenario is run, written down; and the decisions, whoever asks for them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ToolCallPart

from .scenario import Scenario
from .transcript import View


class Execution(NamedTuple):
    """The body of a tool ran, to its end or up to the deferral it raised."""

    step: int
    """How many responses the model had given."""
    tool_call_id: str
    tool: str
    is_approved: bool
    metadata: Any
    """What the tool saw as `ctx.tool_call_metadata`."""
    args: dict[str, Any]
    """The validated arguments."""


@dataclass(frozen=True)
class Question:
    """What a handler, or whoever resumes, was asked."""

    approvals: tuple[str, ...]
    """The ids of the calls that await approval."""
    calls: tuple[tuple[str, str], ...]
    """The ids of the calls that are carried out elsewhere, and what each waits for."""
    tools: dict[str, str]
    """The tool of each call."""
    metadata: dict[str, dict[str, Any]]
    """What was given with the deferrals."""

    def in_order(self) -> Question:
        """The same question with each list in the order of the response."""
        return replace(self, approvals=tuple(sorted(self.approvals)), calls=tuple(sorted(self.calls)))


@dataclass(eq=False)
class World:
    """The dependencies of a run: its scenario, and what has happened in it so far."""

    scenario: Scenario
    views: list[View] = field(default_factory=list[View])
    """What the model was given, request by request."""
    executions: list[Execution] = field(default_factory=list[Execution])
    """What ran, in any order."""
    questions: list[Question] = field(default_factory=list[Question])
    """What was asked, in this order."""
    shown: dict[str, ToolCallPart] = field(default_factory=dict[str, ToolCallPart])
    """Copies of the calls as they were shown for approval, by id."""

    def note_execution(self, ctx: RunContext[World], args: dict[str, Any]) -> None:
        """Called by every tool, also from threads."""
        assert ctx.tool_call_id is not None
        assert ctx.tool_name is not None
        self.executions.append(
            Execution(
                step=len(self.views),
                tool_call_id=ctx.tool_call_id,
                tool=ctx.tool_name,
                is_approved=ctx.tool_call_approved,
                metadata=deepcopy(ctx.tool_call_metadata),
                args=deepcopy(args),
            )
        )

    def decide(self, requests: DeferredToolRequests) -> DeferredToolResults:
        """What the scenario decides about `requests`."""
        self.questions.append(
            Question(
                approvals=tuple(part.tool_call_id for part in requests.approvals),
                calls=tuple((part.tool_call_id, _kind(requests, part)) for part in requests.calls),
                tools={part.tool_call_id: part.tool_name for part in (*requests.approvals, *requests.calls)},
                metadata=deepcopy(requests.metadata),
            )
        )
        self.shown.update({part.tool_call_id: deepcopy(part) for part in requests.approvals})
        calls = self.scenario.calls
        asked = [part.tool_call_id for part in (*requests.approvals, *requests.calls)]
        results = DeferredToolResults(
            approvals={part.tool_call_id: deepcopy(calls[part.tool_call_id].approval) for part in requests.approvals},
            calls={part.tool_call_id: deepcopy(calls[part.tool_call_id].result) for part in requests.calls},
            metadata={each: deepcopy(given) for each in asked if (given := calls[each].answer_metadata) is not None},
        )
        if self.scenario.carries_metadata:
            results.metadata.update(requests.metadata)
        return results


def _kind(requests: DeferredToolRequests, part: ToolCallPart) -> str:
    # Hosts before 2.x know one kind.
    return requests.kind(part.tool_call_id) if hasattr(requests, 'kind') else 'external'
