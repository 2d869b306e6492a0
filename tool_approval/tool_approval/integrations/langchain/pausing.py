"""Pause a run until an approver has answered elsewhere, in the form of LangChain's `HumanInTheLoopMiddleware`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from langchain.agents.middleware.human_in_the_loop import ActionRequest, DecisionType, HITLRequest, ReviewConfig
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from tool_approval.core.canonical import canonical_json
from tool_approval.core.controller import ApprovalController
from tool_approval.core.decision import AllowedAnswer, ApprovalDecision, ApprovalMode
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.gate import CHANGED
from tool_approval.core.request import ApprovalRequest
from tool_approval.display.fact_texts import extra_access

_ANSWERS: dict[DecisionType, AllowedAnswer] = {
    'approve': 'approve',
    'edit': 'edit',
    'reject': 'deny',
    'respond': 'respond',
}
"""The name that a request has for each of the host's decisions."""


class Question(TypedDict):
    """A call that an approver must decide. A checkpointer saves the question before the run pauses."""

    call_id: str
    """Id of the call."""
    call: str | None
    """See `call_digest`."""
    digest: str
    """Digest of the call as it is shown, to which the answer is bound."""
    action: ActionRequest
    """The call as it is shown."""
    allowed: list[DecisionType]
    """Decisions that the reviewer may make."""


class Answer(TypedDict):
    """A reviewer's answer to a question. A checkpointer saves the answer before any call runs."""

    digest: str
    """Digest of the question."""
    decision: dict[str, Any]
    """The decision, as JSON of `ApprovalDecision`."""


class Answers(TypedDict):
    """Answers to the questions about one response."""

    message_id: str | None
    """Id of the response."""
    by_call: dict[str, Answer]
    """Maps the id of each call to its answer."""


def call_digest(made: ToolCall) -> str | None:
    """Return a digest of a call as the model made it, or `None` if its arguments have no canonical form.

    The digest has no key: it only finds the call again, and the run's state has the arguments in clear text.
    """
    try:
        return hashlib.sha256(canonical_json([made['name'], made['args']]).encode()).hexdigest()
    except NotCanonicalError:
        return None


def can_pause(config: RunnableConfig) -> bool:
    """Return whether a run can be resumed after a pause: its graph has a checkpointer."""
    # The host has no public name for it; if this one goes away, calls are denied as without a checkpointer.
    return (config.get('configurable') or {}).get('__pregel_checkpointer') is not None


def question_about(request: ApprovalRequest, *, call: str | None, digest: str) -> Question:
    """Return the question about a call, with the arguments as the tool will get them."""
    reason = '' if request.reason is None else f'\n\n{request.reason}'
    reason += ''.join(f'\nextra access: {line}' for line in extra_access(request))
    action = ActionRequest(
        name=request.tool_name, args=dict(request.args), description=f'{request.attributed_description}{reason}'
    )
    allowed: list[DecisionType] = [decision for decision, answer in _ANSWERS.items() if request.allows(answer)]
    return Question(call_id=str(request.tool_call_id), call=call, digest=digest, action=action, allowed=allowed)


def answers_to(questions: Sequence[Question]) -> dict[str, Answer]:
    """Pause the run until a reviewer has answered all questions about a response. Return the answers by call id.

    After a response of another form, the run pauses again, with the reason in each description: the host has saved the
    response, and would use it each time that the run is resumed.
    """
    problem: str | None = None
    while True:
        response: object = interrupt(hitl_request(questions, problem))
        try:
            return read_answers(response, questions)
        except ValueError as error:
            problem = str(error)


def hitl_request(questions: Sequence[Question], problem: str | None = None) -> HITLRequest:
    """Return the value of the interrupt that asks all questions about a response.

    Args:
        questions: The questions.
        problem: Why the last response could not be used, if there was one.
    """
    actions = [each['action'] for each in questions]
    if problem is not None:
        note = f'The last response could not be used: {problem}.'
        actions = [
            ActionRequest(name=each['name'], args=each['args'], description=f'{note}\n\n{each.get("description", "")}')
            for each in actions
        ]
    return HITLRequest(
        action_requests=actions,
        review_configs=[
            ReviewConfig(action_name=each['action']['name'], allowed_decisions=each['allowed']) for each in questions
        ],
    )


def read_answers(response: object, questions: Sequence[Question]) -> dict[str, Answer]:
    """Read a `HITLResponse`: `{'decisions': [...]}`, with a decision for each question, in order.

    Returns:
        An answer for each call id.

    Raises:
        ValueError: The response has another form, or a decision that is not allowed. No call has run.
    """
    decisions = cast('Mapping[str, object]', response).get('decisions') if isinstance(response, Mapping) else None
    if not isinstance(decisions, list) or len(cast('list[object]', decisions)) != len(questions):
        raise ValueError(
            f'the response must be a mapping with a list of {len(questions)} `decisions`, one for each action'
        )
    read = [
        _decision(each, question) for each, question in zip(cast('list[object]', decisions), questions, strict=True)
    ]
    return {
        question['call_id']: Answer(digest=question['digest'], decision=decision.model_dump(mode='json'))
        for question, decision in zip(questions, read, strict=True)
    }


def _decision(given: object, question: Question) -> ApprovalDecision:
    action, allowed = question['action'], question['allowed']
    match given:
        case {'type': str(kind)} if kind not in allowed:
            raise ValueError(f'a decision about {action["name"]!r} must be of the type {", ".join(allowed)}')
        case {'type': 'approve'}:
            return ApprovalDecision(approved=True)
        case {'type': 'reject', 'message': str(note)} if note:
            return ApprovalDecision(approved=False, note=note)
        case {'type': 'reject'}:
            return ApprovalDecision(approved=False)
        case {'type': 'edit', 'edited_action': {'name': str(name), 'args': dict()}} if name == action['name']:
            args = cast('dict[str, dict[str, Any]]', given)['edited_action']['args']
            return ApprovalDecision(approved=True, override_args=None if args == action['args'] else args)
        case {'type': 'respond', 'message': str(response)}:
            return ApprovalDecision(approved=False, response=response)
        case _:
            raise ValueError(
                f'a decision about {action["name"]!r} must be of the type {", ".join(allowed)}, an edit needs an '
                '`edited_action` with the same `name` and with `args`, and a response needs a `message`'
            )


class AnsweringUI:
    """Gives the answer that a reviewer gave while the run was paused."""

    only_reads = True

    def __init__(self, controller: ApprovalController, answer: Answer) -> None:
        """Take the answer, and the controller whose key binds it to the question."""
        self._controller = controller
        self._answer = answer

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Return the answer, or a denial if the question has changed since the run paused."""
        if self._controller.digest_of(request) != self._answer['digest']:
            return ApprovalDecision(approved=False, note=CHANGED, decided_by=('ui',))
        return ApprovalDecision.model_validate(self._answer['decision'])
