"""What an agent's run asks of a controller: after a response of the model, and before each call runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from tool_approval.core.arguments import as_json
from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.request import ApprovalRequest

from .arguments import read_arguments
from .bound import BoundTool
from .calls import CHANGED, Allowed, Call, Refused, Settled, confirm, decide, unfit
from .place import find_place
from .results import refusal
from .state import ApprovalState, Consent, Consents, find_consent, find_offer, last_response

_AS_MADE = {'what': 'the call as the model made it'}
"""Keeps the digest of a model's call apart from that of an approval."""

_REPEATED = 'Several calls of this response have the same id, so none of them was run.'


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Stands between the model's calls and an agent's tools."""

    controller: ApprovalController
    """Judges and decides."""
    default: Default
    """What holds for a tool about which nothing is said."""
    caller: str | None
    """The agent's name, in place of the one that the host tells."""
    tells_changes: bool
    """Whether a result tells the model that the approver changed the arguments."""

    async def after_response(self, state: ApprovalState, config: RunnableConfig) -> dict[str, Any] | None:
        """Decide all calls of the last response, before any of them runs.

        Returns:
            The state's update: answers to the calls that do not run, and the approvals of those that do.
        """
        message, pending = last_response(state['messages'])
        if message is None or not pending:
            return None
        times = Counter(made['id'] for made in pending)
        answers: dict[str, ToolMessage] = {}
        calls: dict[str, tuple[Call, ToolCall]] = {}
        for made in pending:
            # What is not on offer, or could not be answered, is looked at when it is about to run.
            tool, call_id = find_offer(state).tools.get(made['name']), made['id']
            if tool is None or not call_id:
                continue
            call = self._read(tool, made, state, config) if times[call_id] == 1 else Refused(reason=_REPEATED)
            if isinstance(call, Refused):
                answers[call_id] = refusal(call.reason, name=made['name'], call_id=call_id)
            else:
                calls[call_id] = call, made
        consents: dict[str, Consent] = {}
        all_settled = await decide(self.controller, [call for call, _ in calls.values()], default=self.default)
        for (call_id, (call, made)), settled in zip(calls.items(), all_settled, strict=True):
            if isinstance(settled, Refused):
                answers[call_id] = refusal(settled.reason, name=call.name, call_id=call_id)
            elif settled.request is not None:
                consents[call_id] = Consent(
                    call=self._digest(made),
                    digest=settled.digest,
                    args=settled.call.arguments.given_json,
                    is_changed=settled.is_changed,
                )
        told = Consents(message_id=message.id, by_call=consents)
        return {'messages': list(answers.values()), 'tool_approval_consents': told}

    async def before_call(self, request: ToolCallRequest) -> ToolCallRequest | ToolMessage:
        """What to run in place of a call, or what to answer in place of its result."""
        made = request.tool_call
        settled = await self._settle(request)
        if isinstance(settled, Refused):
            return refusal(settled.reason, name=made['name'], call_id=made['id'] or '')
        # The tool itself looks once more: a middleware further inside may still change the arguments.
        tool = BoundTool(settled, self.controller, tells_changes=self.tells_changes)
        return request.override(tool=tool, tool_call={**made, 'args': settled.call.arguments.given})

    async def _settle(self, request: ToolCallRequest) -> Settled:
        made, tool = request.tool_call, request.tool
        config: RunnableConfig = cast(Any, request).runtime.config
        if tool is None:
            # The host would say so as well, but a middleware further inside may bring a tool that nobody judged.
            return Refused(reason=f'There is no tool {made["name"]!r} here, so the call was not run.')
        if not made['id']:
            return Refused(reason='The call has no id and cannot be answered, so it was not run.')
        consent = find_consent(request.state, made['id'])
        if consent is None:
            return await self._decide_alone(tool, made, request.state, config)
        approved: ToolCall = {**made, 'args': consent['args']}
        call = self._read(tool, approved, request.state, config)
        if isinstance(call, Refused) or consent['call'] != self._digest(made):
            self._record_change(made, request.state, config)
            return Refused(reason=CHANGED)
        digest, is_changed = consent['digest'], consent['is_changed']
        allowed = Allowed(call=call, digest=digest, declared={}, request=None, is_changed=is_changed)
        return await confirm(self.controller, allowed, default=self.default)

    async def _decide_alone(
        self, tool: BaseTool, made: ToolCall, state: Mapping[str, Any], config: RunnableConfig
    ) -> Settled:
        """Decide a call that was not decided with the others, or did not need to be."""
        call = self._read(tool, made, state, config)
        if isinstance(call, Refused):
            return call
        [settled] = await decide(self.controller, [call], default=self.default)
        if isinstance(settled, Refused) or settled.request is None:
            return settled
        return await confirm(self.controller, settled, default=self.default)

    def _read(self, tool: BaseTool, made: ToolCall, state: Mapping[str, Any], config: RunnableConfig) -> Call | Refused:
        try:
            self._digest(made)
            arguments = read_arguments(tool, made['args'])
        except ValueError as error:
            return unfit(made['name'], error)
        return Call(
            tool=tool,
            name=made['name'],
            arguments=arguments,
            call_id=made['id'],
            place=self._place(state, config),
            config=config,
        )

    def _place(self, state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        return find_place(config, caller=self.caller, run_id=find_offer(state).run_id)

    def _digest(self, made: ToolCall) -> str:
        return self.controller.digest(made['name'], as_json(made['args']), _AS_MADE)

    def _record_change(self, made: ToolCall, state: Mapping[str, Any], config: RunnableConfig) -> None:
        place = self._place(state, config)
        request = ApprovalRequest(
            tool_name=made['name'],
            tool_call_id=made['id'],
            run_id=place.get('run_id'),
            session_id=place.get('session_id'),
        )
        self.controller.record_outcome(request, 'refused')
