"""Define what the middleware keeps in the state of a run, and find it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict, cast

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

# A namespace package: pyright does not find its `py.typed`.
from langgraph.channels import UntrackedValue  # pyright: ignore[reportMissingTypeStubs]

from .pausing import Answer, Answers, Question


@dataclass(frozen=True, kw_only=True)
class OfferedTools:
    """Tools that the model could call in its last response. The list is never saved by a checkpointer."""

    run_id: str | None = None
    """Id of the agent's run. If the caller gives no id, this is the id of the run's first step."""
    tools: Mapping[str, BaseTool] = field(default_factory=dict[str, BaseTool])
    """Tools by name."""


class Consent(TypedDict):
    """An approval, kept until its call runs in a later step. A checkpointer may save the approval.

    The dictionary has the keys below and the keys of `Binding.as_json`.
    """

    call: str
    """Digest of the call as the model made it."""
    args: dict[str, Any]
    """Arguments to give the tool, in JSON form."""


class Consents(TypedDict):
    """Approvals of one response."""

    message_id: str | None
    """Id of the response. Call ids are not enough, because some models use the same call ids in every response."""
    by_call: dict[str, Consent]
    """Maps the id of each approved call to its approval."""


class ApprovalState(AgentState[Any]):
    """State of an agent that has the middleware. The middleware's keys are not part of the agent's input or output."""

    tool_approval_offer: NotRequired[Annotated[OfferedTools, UntrackedValue, PrivateStateAttr]]
    """Tools that the model could call. The key is missing in a step that resumes a run."""
    tool_approval_consents: NotRequired[Annotated[Consents, PrivateStateAttr]]
    """Approved calls of the last response."""
    tool_approval_questions: NotRequired[Annotated[list[Question], PrivateStateAttr]]
    """Calls of the last response that a reviewer must decide while the run is paused."""
    tool_approval_answers: NotRequired[Annotated[Answers, PrivateStateAttr]]
    """The reviewer's answers."""


def last_response(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, list[ToolCall]]:
    """Return the model's last response, and its calls that are not answered yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message, [call for call in message.tool_calls if call['id'] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, []


def find_offer(state: Mapping[str, Any]) -> OfferedTools:
    """Return the tools that were offered to the model, or none if the tools are unknown."""
    return cast('OfferedTools | None', state.get('tool_approval_offer')) or OfferedTools()


def find_consent(state: Mapping[str, Any], call_id: str) -> Consent | None:
    """Return the approval of the call that has this id in the last response, or `None` if there is no approval."""
    consents = cast('Consents | None', state.get('tool_approval_consents'))
    message, _ = last_response(state['messages'])
    if consents is None or message is None or message.id != consents['message_id']:
        return None
    return consents['by_call'].get(call_id)


def find_answer(state: Mapping[str, Any], call_id: str) -> Answer | None:
    """Return the reviewer's answer about the call that has this id in the last response, or `None`."""
    answers = cast('Answers | None', state.get('tool_approval_answers'))
    message, _ = last_response(state['messages'])
    is_current = answers is not None and message is not None and message.id == answers['message_id']
    return answers['by_call'].get(call_id) if answers is not None and is_current else None


def later_hooks(config: RunnableConfig, name: str) -> list[str]:
    """Return the names of the middleware whose hooks after the model run after the hook of the named middleware.

    These hooks may drop or change calls. They belong to the middleware before the named one in the agent's list.
    """
    # The host has no public way to find them: each hook is a node with a channel of its own, in the order of the list.
    # If the names change, the middleware behaves as if it were first in the list (test_order.py).
    read = (config.get('configurable') or {}).get('__pregel_read')
    known = [cast('Mapping[str, object]', each) for each in getattr(read, 'args', ()) if isinstance(each, Mapping)]
    hooks = [channel.removeprefix('branch:to:') for channels in known[:1] for channel in channels]
    hooks = [each.removesuffix('.after_model') for each in hooks if each.endswith('.after_model')]
    return hooks[: hooks.index(name)] if name in hooks else []
