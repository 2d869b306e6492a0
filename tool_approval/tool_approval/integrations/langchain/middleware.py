"""Ask about the tool calls of a LangChain agent while the agent runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict, cast

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

# A namespace package: pyright does not find its `py.typed`.
from langgraph.channels import UntrackedValue  # pyright: ignore[reportMissingTypeStubs]
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from tool_approval.core.arguments import as_json
from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import CHANGED, Binding, Gate, GateResult, Prepared, Refused
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import wait_for

from .bound_tool import BoundTool, refusal
from .calls import CallReader, decide_alone, find_facts, injected_keys


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
        return ExtendedModelResponse(model_response=handler(request), command=_offering(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """Do the same as `wrap_model_call`, in a coroutine."""
        return ExtendedModelResponse(model_response=await handler(request), command=_offering(request))

    def after_model(self, state: ApprovalState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Decide all calls of the response. This method blocks, even if an event loop is running."""
        config = get_config()
        return wait_for(lambda: self._decide_all(state, config))

    async def aafter_model(self, state: ApprovalState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same as `after_model`, in a coroutine."""
        return await self._decide_all(state, get_config())

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a call if it was allowed."""
        ready = wait_for(lambda: self._ready(request))
        return ready if isinstance(ready, ToolMessage) else handler(ready)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Run an allowed call on the event loop."""
        ready = await self._ready(request)
        return ready if isinstance(ready, ToolMessage) else await handler(ready)

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
        all_settled = [await self._gate.judge_changed(each) for each in await self._gate.decide_all(prepared)]
        for each, settled in zip(prepared, all_settled, strict=True):
            call_id = str(each.call.tool_call_id)
            if isinstance(settled, Refused):
                answers[call_id] = refusal(settled.reason, name=each.call.tool_name, call_id=call_id)
            elif settled.request is not None and settled.binding is not None:
                call, args = digests[call_id], settled.call.arguments.bound['given']
                consents[call_id] = cast('Consent', {**settled.binding.as_json(), 'call': call, 'args': args})
        update = Consents(message_id=message.id, by_call=consents)
        return {'messages': list(answers.values()), 'tool_approval_consents': update}

    async def _ready(self, request: ToolCallRequest) -> ToolCallRequest | ToolMessage:
        """Return the call to run in place of the model's call, or an answer if the model's call may not run."""
        made, tool = request.tool_call, request.tool
        if tool is None:
            # The host would refuse it too, but a middleware further inside may add a tool that was not judged.
            reason = f'The agent has no tool {made["name"]!r}, so the call was not run.'
            return refusal(reason, name=made['name'], call_id=made['id'] or '')
        if not made['id']:
            reason = 'The call has no id and cannot be answered, so it was not run.'
            return refusal(reason, name=made['name'], call_id='')
        reader = self._reader(tool, made, request.state, cast(Any, request).runtime.config)
        consent = find_consent(request.state, made['id'])
        if consent is None:
            settled = await decide_alone(self._gate, reader, made['args'])
        else:
            settled = await self._confirm(reader, made, consent)
        if isinstance(settled, Refused):
            return refusal(settled.reason, name=made['name'], call_id=made['id'])
        # The tool checks again: a middleware further inside may still change the arguments.
        bound = BoundTool(reader, settled, self._gate)
        by_host = injected_keys(tool)
        args = {name: value for name, value in (settled.call.given or {}).items() if name not in by_host}
        return request.override(tool=bound, tool_call={**made, 'args': args})

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


def _offering(request: ModelRequest[Any]) -> Command[Any]:
    info = request.runtime.execution_info
    first = find_offer(request.state).run_id
    run_id = first or (None if info is None else info.run_id or info.checkpoint_id)
    tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
    return Command(update={'tool_approval_offer': OfferedTools(run_id=run_id, tools=tools)})
