"""What the middleware keeps in the state of an agent's run: the tools on offer, and the calls that were approved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict, cast

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

# A namespace package, whose mark of being typed is not found.
from langgraph.channels import UntrackedValue  # pyright: ignore[reportMissingTypeStubs]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What the model could call in its last response. It is never checkpointed."""

    run_id: str | None = None
    """The id of the agent's run: the one the caller gave, else that of its first step."""
    tools: Mapping[str, BaseTool] = field(default_factory=dict[str, BaseTool])
    """By name."""


class Consent(TypedDict):
    """An approval on its way to the call, which runs in a later step. A checkpointer may write it down."""

    call: str
    """Digest of the call as the model made it."""
    digest: str
    """Digest of the call as it was approved: what the approval is bound to."""
    args: dict[str, Any]
    """What to run with, in JSON form."""
    is_changed: bool
    """Whether the approver changed the arguments."""


class Consents(TypedDict):
    """All approvals of one response."""

    message_id: str | None
    """The response. Some models give the calls of every response the same ids."""
    by_call: dict[str, Consent]
    """By the call's id."""


class ApprovalState(AgentState[Any]):
    """The state of an agent that has the middleware. Neither key is part of its input or its output."""

    tool_approval_offer: NotRequired[Annotated[Offer, UntrackedValue, PrivateStateAttr]]
    """What the model could call; missing in a step that resumes a run."""
    tool_approval_consents: NotRequired[Annotated[Consents, PrivateStateAttr]]
    """What was approved of it."""


def last_response(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, list[ToolCall]]:
    """The model's last response, and its calls that nothing has answered yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message, [call for call in message.tool_calls if call['id'] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, []


def find_offer(state: Mapping[str, Any]) -> Offer:
    """What was on offer, as far as the run knows."""
    return cast('Offer | None', state.get('tool_approval_offer')) or Offer()


def find_consent(state: Mapping[str, Any], call_id: str) -> Consent | None:
    """The approval of a call of the last response, if there is one."""
    consents = cast('Consents | None', state.get('tool_approval_consents'))
    message, _ = last_response(state['messages'])
    if consents is None or message is None or message.id != consents['message_id']:
        return None
    return consents['by_call'].get(call_id)
