"""Ask about the tool calls of a LangChain agent while the agent runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from langchain.agents.middleware import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

# A namespace package: pyright does not find its `py.typed`.
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command

from tool_approval.core.arguments import as_json
from tool_approval.core.asking import passing_on
from tool_approval.core.binding import Binding
from tool_approval.core.calls import GateResult, Prepared, Refused, Responded
from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import CHANGED, Gate
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import wait_for

from .bound_tool import BoundTool, answer_of, refusal
from .calls import CallReader, decide_alone, find_facts, injected_keys
from .pausing import (
    AnsweringUI,
    Answers,
    Question,
    answers_to,
    call_digest,
    can_pause,
    question_about,
)
from .run_state import (
    ApprovalState,
    Consent,
    Consents,
    OfferedTools,
    find_answer,
    find_consent,
    find_offer,
    last_response,
    later_hooks,
)

_AS_MADE = {'what': 'the call as the model made it'}
"""Text that is hashed together with a model's call, so that the digest differs from the digest of an approval."""

_REPEATED = 'Several calls of this response have the same id, so none of them was run.'


class ApprovalMiddleware(AgentMiddleware[ApprovalState, Any, Any]):
    """Asks about an agent's tool calls while its run waits, without a checkpointer or a second invocation.

    After each response of the model, all calls of the response are decided together before any of them runs. A refused
    call is answered with a message that has `status='error'` and the reason.

    Put this middleware last in the list. The last middleware knows the tools that other middleware adds, and
    hands calls directly to the tools. If another middleware, anywhere in the list, changes a call
    after the decision, the call does not run. A later middleware that replaces a tool must be trusted.
    """

    state_schema = ApprovalState

    def __init__(
        self,
        controller: ApprovalController,
        *,
        default: Default = 'required',
        caller: str | None = None,
        tells_changes: bool = True,
    ) -> None:
        """Put an agent's tools under a controller's policy.

        Args:
            controller: Controller that judges the calls and decides whether they run. Give the controller a lasting
                `key` if runs are resumed in another process.
            default: Verdict if neither the policy nor the tool's own check decides: `required` or `none`.
            caller: Name of the agent, instead of the name given to `create_agent`. Without `caller`, an agent that
                runs in another agent's tool forgets its approvals when its run ends.
            tells_changes: Whether the model is informed of arguments that an approver changed.

        Raises:
            ValueError: `default` is neither `required` nor `none`.
        """
        super().__init__()
        self._gate = Gate(controller, default=default, tells_changes=tells_changes)
        self._caller = caller

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Record the tools that the model can call, for the decisions in `after_model`."""
        response = handler(request)
        config = get_config()
        questions = wait_for(lambda: self._questions(request, response, config)) if self._pauses(config) else []
        return ExtendedModelResponse(model_response=response, command=_offering(request, questions))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """Do the same as `wrap_model_call`, in a coroutine."""
        response = await handler(request)
        config = get_config()
        questions = await self._questions(request, response, config) if self._pauses(config) else []
        return ExtendedModelResponse(model_response=response, command=_offering(request, questions))

    def after_model(self, state: ApprovalState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Decide all calls of the response. This method blocks, even if an event loop is running."""
        config = get_config()
        if questions := self._unanswered(state):
            return self._pause(state, config, questions)
        return None if later_hooks(config, self.name) else wait_for(lambda: self._decide_all(state, config))

    async def aafter_model(self, state: ApprovalState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same as `after_model`, in a coroutine."""
        config = get_config()
        if questions := self._unanswered(state):
            return self._pause(state, config, questions)
        return None if later_hooks(config, self.name) else await self._decide_all(state, config)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a call if it was allowed."""
        ready, bound = wait_for(lambda: self._ready(request))
        result = ready if isinstance(ready, ToolMessage) else handler(ready)
        return _without_notice(request, result, bound)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Run an allowed call on the event loop."""
        ready, bound = await self._ready(request)
        result = ready if isinstance(ready, ToolMessage) else await handler(ready)
        return _without_notice(request, result, bound)

    def _pauses(self, config: RunnableConfig) -> bool:
        """Return whether a run pauses for answers, because no UI can be asked, and can be resumed."""
        return self._gate.controller.ui is None and can_pause(config)

    async def _questions(
        self, request: ModelRequest[Any], response: ModelResponse[Any], config: RunnableConfig
    ) -> list[Question]:
        """Return a question about each call of a response that an approver must decide.

        The questions are made here, because the run's state is saved between this step and the pause. Later, the tools
        are not known before they run, and the rules may be others.
        """
        made_calls = [call for each in response.result if isinstance(each, AIMessage) for call in each.tool_calls]
        tools, times = _tools_of(request), Counter(made['id'] for made in made_calls)
        digests: dict[str | None, str | None] = {}
        asked: list[ApprovalRequest] = []
        for made in made_calls:
            tool, call_id = tools.get(made['name']), made['id']
            if tool is None or not call_id or times[call_id] > 1:
                continue
            try:
                digests[call_id] = call_digest(made)
                call = self._reader(tool, made, request.state, config).read(made['args'])
            except ValueError:
                continue  # refused when it is about to run
            prepared = await self._gate.prepare(call)
            if prepared.verdict.is_needs_approval:
                asked.append(prepared.request)
        shown = await self._gate.controller.triage(asked)
        return [
            question_about(view, call=digests[view.tool_call_id], digest=str(self._gate.controller.digest_of(each)))
            for each, view in zip(asked, shown, strict=True)
            if view is not None
        ]

    def _unanswered(self, state: ApprovalState) -> list[Question]:
        """Return the questions about calls that are still to run, and that no other middleware has changed."""
        _, pending = last_response(state['messages'])
        by_id = {made['id']: made for made in pending}
        return [
            each
            for each in state.get('tool_approval_questions') or []
            if (made := by_id.get(each['call_id'])) is not None and each['call'] == call_digest(made)
        ]

    def _pause(self, state: ApprovalState, config: RunnableConfig, questions: list[Question]) -> dict[str, Any]:
        """Pause the run until a reviewer has answered, and return the answers as an update of the state."""
        if later := later_hooks(config, self.name):
            raise ValueError(
                f'without a UI, {self.name} pauses the run; put it before {", ".join(later)} in the middleware list, '
                'or the approver is asked about calls that are dropped later'
            )
        message, _ = last_response(state['messages'])
        answers = Answers(message_id=message and message.id, by_call=answers_to(questions))
        return {'tool_approval_answers': answers}

    async def _decide_all(self, state: ApprovalState, config: RunnableConfig) -> dict[str, Any] | None:
        """Decide all calls of the last response before any of them runs.

        Returns:
            An update of the state, with answers to the calls that do not run and approvals of the calls that run.
        """
        message, pending = last_response(state['messages'])
        if message is None or not pending:
            return None
        times = Counter(made['id'] for made in pending)
        answers: dict[str, ToolMessage] = {}
        digests: dict[str, str] = {}
        prepared: list[Prepared] = []
        for made in pending:
            # A call of a tool that is not offered, or a call without an id, is decided when it is about to run.
            tool, call_id = find_offer(state).tools.get(made['name']), made['id']
            if tool is None or not call_id:
                continue
            if times[call_id] > 1:
                answers[call_id] = refusal(_REPEATED, name=made['name'], call_id=call_id)
                continue
            reader = self._reader(tool, made, state, config)
            try:
                digests[call_id], call = self._digest(made), reader.read(made['args'])
            except ValueError as error:
                answers[call_id] = refusal(reader.unfit(error).reason, name=made['name'], call_id=call_id)
            else:
                prepared.append(await self._gate.prepare(call))
        consents: dict[str, Consent] = {}
        try:
            with passing_on(GraphBubbleUp):
                decided = await self._gate.decide_all(prepared)
        except GraphBubbleUp:
            # The UI pauses the graph. After a pause in this step, the tools would not be known: ask when they run.
            return None
        for each, settled in zip(prepared, decided, strict=True):
            call_id = str(each.call.tool_call_id)
            if isinstance(settled, Refused | Responded):
                answers[call_id] = answer_of(settled, name=each.call.tool_name, call_id=call_id)
            elif settled.request is not None and settled.binding is not None:
                call, args = digests[call_id], settled.call.arguments.bound['given']
                consents[call_id] = cast('Consent', {**settled.binding.as_json(), 'call': call, 'args': args})
        update = Consents(message_id=message.id, by_call=consents)
        return {'messages': list(answers.values()), 'tool_approval_consents': update}

    async def _ready(self, request: ToolCallRequest) -> tuple[ToolCallRequest | ToolMessage, BoundTool | None]:
        """Return the call to run in place of the model's call, and its tool; or an answer if the call may not run."""
        made, tool = request.tool_call, request.tool
        if tool is None:
            # The host would refuse it too, but a middleware further inside may add a tool that was not judged.
            reason = f'The agent has no tool {made["name"]!r}, so the call was not run.'
            return refusal(reason, name=made['name'], call_id=made['id'] or ''), None
        if not made['id']:
            reason = 'The call has no id and cannot be answered, so it was not run.'
            return refusal(reason, name=made['name'], call_id=''), None
        if len(_calls_with_id(request.state, made['id'])) > 1:
            return refusal(_REPEATED, name=made['name'], call_id=made['id']), None
        reader = self._reader(tool, made, request.state, cast(Any, request).runtime.config)
        consent = find_consent(request.state, made['id'])
        if consent is None:
            with passing_on(GraphBubbleUp):
                settled = await decide_alone(self._gate_for(request.state, made['id']), reader, made['args'])
        else:
            settled = await self._confirm(reader, made, consent)
        if isinstance(settled, Refused | Responded):
            return answer_of(settled, name=made['name'], call_id=made['id']), None
        # The tool checks again: a middleware further inside may still change the arguments.
        bound = BoundTool(reader, settled, self._gate)
        by_host = injected_keys(tool)
        args = {name: value for name, value in (settled.call.given or {}).items() if name not in by_host}
        return request.override(tool=bound, tool_call={**made, 'args': args}), bound

    def _gate_for(self, state: Mapping[str, Any], call_id: str) -> Gate:
        """Return the gate that decides a call: with the reviewer's answer, if the run was paused for one."""
        answer, gate = find_answer(state, call_id), self._gate
        if answer is None:
            return gate
        controller = gate.controller.with_ui(AnsweringUI(gate.controller, answer))
        return Gate(controller, default=gate.default, tells_changes=gate.tells_changes)

    async def _confirm(self, reader: CallReader, made: ToolCall, consent: Consent) -> GateResult:
        binding = Binding.of(consent)
        try:
            is_same, call = consent['call'] == self._digest(made), reader.read(consent['args'])
        except ValueError:
            is_same, call = False, None
        if call is None or not is_same:
            facts = reader.facts
            request = ApprovalRequest(
                tool_name=made['name'], tool_call_id=made['id'], run_id=facts.run_id, session_id=facts.session_id
            )
            self._gate.controller.record_outcome(request, 'refused', digest=binding.decided)
            return Refused(reason=CHANGED)
        return self._gate.confirm(await self._gate.prepare(call), binding)

    def _reader(self, tool: BaseTool, made: ToolCall, state: Mapping[str, Any], config: RunnableConfig) -> CallReader:
        facts = find_facts(config, caller=self._caller, run_id=find_offer(state).run_id)
        return CallReader(tool=tool, name=made['name'], call_id=made['id'], facts=facts, config=config)

    def _digest(self, made: ToolCall) -> str:
        return self._gate.controller.digest(made['name'], as_json(made['args']), _AS_MADE)


def _calls_with_id(state: Mapping[str, Any], call_id: str) -> list[ToolCall]:
    message, _ = last_response(state['messages'])
    return [made for made in (message.tool_calls if message is not None else []) if made['id'] == call_id]


def _without_notice(
    request: ToolCallRequest, result: ToolMessage | Command[Any], bound: BoundTool | None
) -> ToolMessage | Command[Any]:
    """Return a result. A refusal is returned in a form to which other middleware adds no notice that an edit ran."""
    made = request.tool_call
    if bound is not None and bound.refused is None:
        return result
    refused = result if bound is None else bound.refused
    # LangChain's own approval middleware, further outside, reports its edit as executed whatever the result is. It
    # changes only messages, and updates that are mappings.
    is_changed = any(each['args'] != made['args'] for each in _calls_with_id(request.state, made['id'] or ''))
    return Command(update=[('messages', [refused])]) if is_changed else cast('ToolMessage', refused)


def _tools_of(request: ModelRequest[Any]) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}


def _offering(request: ModelRequest[Any], questions: list[Question]) -> Command[Any]:
    info = request.runtime.execution_info
    first = find_offer(request.state).run_id
    run_id = first or (None if info is None else info.run_id or info.checkpoint_id)
    offer = OfferedTools(run_id=run_id, tools=_tools_of(request))
    return Command(update={'tool_approval_offer': offer, 'tool_approval_questions': questions})
