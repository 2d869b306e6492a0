"""Approve calls in an editor that speaks the Agent Client Protocol: let it start `python examples/acp_agent.py`.

Pydantic AI has no adapter for this protocol, so this is an agent of its own: each prompt is a run, and a call that
needs approval is a request for permission. The editor's answer belongs to the request that it answers.
Needs `pip install ./pydantic_ai_slim './tool_approval[pydantic-ai]' agent-client-protocol` in the checkout.
"""

import asyncio
import secrets
import string
from typing import Any, cast

import acp
from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption, PermissionOptionKind, TextContentBlock, ToolCallUpdate
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tool_approval.answering import LABELS, AnswerKind, answer_decision, answer_options, editable
from tool_approval.display import display, facts, name_of, warnings_of
from tool_approval.display.fenced import Line, drawn, sections
from tool_approval.integrations.pydantic_ai import Approvals

from tool_approval import ApprovalDecision, ApprovalMode, ApprovalRequest

KINDS: dict[AnswerKind, PermissionOptionKind] = {
    'approve': 'allow_once',
    'session': 'allow_always',
    'deny': 'reject_once',
    'deny_session': 'reject_always',
}
MARKUP = {char: f'\\{char}' for char in string.punctuation}


def delete(path: str) -> str:
    """Pretend to delete a file."""
    return f'{path} is gone'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: delete a file, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse([TextPart(str(returns[0].content))])
    return ModelResponse([ToolCallPart('delete', {'path': 'old.log'})])


class EditorUI:
    """Asks in the editor, about one session."""

    def __init__(self, editor: Client, session_id: str) -> None:
        """Ask about the calls of this session."""
        self.editor = editor
        self.session_id = session_id

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Show the whole request, and return what was chosen. Without a choice, the call is denied."""
        options = answer_options(request)
        lines: list[Line] = [(False, f'! {text}') for text in warnings_of(request)]
        for label, text in facts(request):
            lines += [(True, f'{label}:'), (False, f'| {text}')]
        lines += [(True, 'Call:'), *drawn(display(request, whole=True).lines)]
        if options.denial_covers is not None:
            lines += [(True, 'Answers for this session cover:'), (False, f'| {options.denial_covers}')]
        [text] = sections(lines, room=1 << 40, ours=MARKUP)
        call = ToolCallUpdate(
            tool_call_id=request.tool_call_id or secrets.token_hex(8),
            title=name_of(request.tool_name),
            status='pending',
            raw_input=editable(request),
            content=[acp.tool_content(acp.text_block(text))],
        )
        offered: dict[AnswerKind, PermissionOptionKind] = {
            answer: kind for answer, kind in KINDS.items() if answer in options.answers
        }
        response = await self.editor.request_permission(
            session_id=self.session_id,
            tool_call=call,
            options=[
                PermissionOption(option_id=answer, name=LABELS[answer], kind=kind) for answer, kind in offered.items()
            ],
        )
        outcome = response.outcome
        chosen: AnswerKind = 'deny'
        for answer in offered:
            if isinstance(outcome, AllowedOutcome) and outcome.option_id == answer:
                chosen = answer
        return answer_decision(request, chosen)


class Deleter:
    """An agent that deletes files, for an editor."""

    def __init__(self) -> None:
        """Start without sessions."""
        self.sessions: dict[str, tuple[Approvals, list[ModelMessage]]] = {}

    def on_connect(self, conn: Client) -> None:
        """Keep the connection to the editor."""
        self.editor = conn

    async def initialize(self, protocol_version: int, *_: Any, **__: Any) -> acp.InitializeResponse:
        """Agree on the version of the protocol."""
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, cwd: str, *_: Any, **__: Any) -> acp.NewSessionResponse:
        """Start a session, with a memory of its own."""
        session_id = secrets.token_urlsafe(16)
        self.sessions[session_id] = (Approvals(ui=EditorUI(self.editor, session_id), session=session_id), [])
        return acp.NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], *_: Any, **__: Any) -> acp.PromptResponse:
        """Run the agent, and send its answer to the editor."""
        if session_id not in self.sessions:
            raise acp.RequestError.invalid_params({'sessionId': 'unknown'})
        approvals, history = self.sessions[session_id]
        text = '\n'.join(block.text for block in prompt if isinstance(block, TextContentBlock))
        agent = Agent(FunctionModel(plan), tools=[delete], capabilities=[approvals])
        result = await agent.run(text, message_history=history)
        self.sessions[session_id] = (approvals, result.all_messages())
        await self.editor.session_update(session_id, acp.update_agent_message_text(result.output))
        return acp.PromptResponse(stop_reason='end_turn')


if __name__ == '__main__':
    # The library answers methods that the class does not have with an error.
    asyncio.run(acp.run_agent(cast('acp.Agent', Deleter())))
