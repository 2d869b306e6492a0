"""Approve calls in a web client that speaks AG-UI or Vercel AI: `python examples/frontend_approvals.py`.

The run ends at a call that needs approval, and the client is asked in its own protocol. The answer starts another run.
The server keeps the conversation: an answer only counts for a call that the server waits for, and the call has the
arguments that the model wrote, whatever the client sends. The example plays the client of each protocol.
Needs `pip install ./pydantic_ai_slim './tool_approval[pydantic-ai]' ag-ui-protocol starlette` in the checkout.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.ui import UIAdapter
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from tool_approval.answering import decision_on
from tool_approval.integrations.pydantic_ai import Approvals

from tool_approval import ApprovalDecision, ApprovalMode, ApprovalRequest

Adapter = UIAdapter[Any, Any, Any, Any, Any]


def pay(to: str, amount: int) -> str:
    """Pretend to pay."""
    return f'{to} got {amount}'


async def plan(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Stand in for a language model: pay once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        yield str(returns[0].content)
    else:
        yield {0: DeltaToolCall('pay', '{"to": "Ada", "amount": 40}')}


class FromClient:
    """A UI whose answers have been sent by the client of a run. A call without an answer is denied."""

    def __init__(self, sent: DeferredToolResults | None, user: str) -> None:
        """Answer with what `user` has sent."""
        self.sent = sent or DeferredToolResults()
        self.user = user

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Return the answer that has the id of the call. Changed arguments are judged again."""
        match self.sent.approvals.get(request.tool_call_id or ''):
            case True | ToolApproved(override_args=None):
                decision = decision_on(request, approved=True)
            case ToolApproved(override_args=dict(changed)):
                decision = decision_on(request, approved=True, override_args=changed)
            case ToolDenied(message=note):
                decision = decision_on(request, approved=False, note=note)
            case _:
                decision = decision_on(request, approved=False)
        return decision.model_copy(update={'decided_by': (self.user,)})


class Server:
    """Runs an agent for clients, and keeps their conversations."""

    def __init__(self) -> None:
        """Start without conversations."""
        self.key = secrets.token_bytes(32)
        """Binds approvals to arguments. With several processes, they need the same key and a common store."""
        self.agent = Agent(
            FunctionModel(stream_function=plan),
            tools=[pay],
            output_type=[str, DeferredToolRequests],
            capabilities=[Approvals(key=self.key)],
        )
        self.kept: dict[tuple[str, str | None], tuple[list[ModelMessage], DeferredToolRequests | None]] = {}

    def adapter(self, protocol: str, body: bytes) -> Adapter:
        """Read what a client sent. The server's history counts, not the client's."""
        if protocol == 'ag-ui':
            return AGUIAdapter(self.agent, AGUIAdapter.build_run_input(body), manage_message_history='server')
        read = VercelAIAdapter.build_run_input(body)
        return VercelAIAdapter(self.agent, read, manage_message_history='server', sdk_version=6)

    async def respond(self, adapter: Adapter, user: str) -> AsyncIterator[str]:
        """Run the agent for a user, whom the web framework has authenticated, and yield the protocol's events."""
        place, sent = (user, adapter.conversation_id), adapter.deferred_tool_results
        # Taken out, so that the first answer counts.
        history, waiting = self.kept.pop(place, ([], None))
        results = None
        if waiting is not None:
            results = await Approvals(key=self.key, ui=FromClient(sent, user)).answer(waiting)

        def keep(result: AgentRunResult[Any]) -> None:
            output = result.output
            self.kept[place] = (result.all_messages(), output if isinstance(output, DeferredToolRequests) else None)

        # Without a waiting call, the adapter refuses answers.
        events = adapter.run_stream(message_history=history, deferred_tool_results=results, on_complete=keep)
        async for event in adapter.encode_stream(events):
            yield event


def ag_ui(*, resume: list[dict[str, Any]] | None = None) -> bytes:
    """Return the body of an AG-UI client: a question, or the answers to interrupts."""
    messages = [] if resume else [{'id': 'm', 'role': 'user', 'content': 'Pay Ada.'}]
    body = {'threadId': 't', 'runId': secrets.token_hex(4), 'state': None, 'messages': messages, 'tools': []}
    return json.dumps({**body, 'context': [], 'forwardedProps': None, 'resume': resume}).encode()


def vercel_ai(*parts: dict[str, Any]) -> bytes:
    """Return the body of a client with the AI SDK: a question, with the parts of the assistant's message after it."""
    asked = {'id': 'm', 'role': 'user', 'parts': [{'type': 'text', 'text': 'Pay Ada.'}]}
    answered = [{'id': 'a', 'role': 'assistant', 'parts': parts}] if parts else []
    return json.dumps({'trigger': 'submit-message', 'id': 'c', 'messages': [asked, *answered]}).encode()


def responded(call_id: str, approval: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a message by which the AI SDK answers. The arguments are as the client has them."""
    return {
        'type': 'tool-pay',
        'toolCallId': call_id,
        'state': 'approval-responded',
        'input': {'to': 'Ada', 'amount': 40},
        'approval': approval,
    }


async def events(server: Server, protocol: str, body: bytes, user: str = 'ada') -> list[dict[str, Any]]:
    """Send a body, and return the events of the response."""
    streamed = ''.join([each async for each in server.respond(server.adapter(protocol, body), user)])
    lines = [line.removeprefix('data: ') for line in streamed.splitlines() if line.startswith('data: {')]
    return [json.loads(line) for line in lines]


def said(told: list[dict[str, Any]]) -> str:
    """Return the text of the assistant, or the error."""
    return ''.join(str(event.get('delta') or event.get('errorText') or event.get('message') or '') for event in told)


async def main() -> None:
    server = Server()
    [interrupt] = (await events(server, 'ag-ui', ag_ui()))[-1]['outcome']['interrupts']
    print('AG-UI asks:', interrupt['message'])
    answer = {'interruptId': interrupt['id'], 'status': 'resolved', 'payload': {'approved': True}}
    told = await events(server, 'ag-ui', ag_ui(resume=[answer]))
    print('Approved:', said([event for event in told if event['type'] == 'TEXT_MESSAGE_CONTENT']))

    asked = await events(server, 'vercel-ai', vercel_ai())
    [request] = [event for event in asked if event['type'] == 'tool-approval-request']
    print('Vercel AI asks about a call:', request['approvalId'] == request['toolCallId'])
    verdict = {'id': request['approvalId'], 'approved': False, 'reason': 'Too much.'}
    told = await events(server, 'vercel-ai', vercel_ai(responded(request['toolCallId'], verdict)))
    print('Denied:', said([event for event in told if event['type'] == 'text-delta']))


if __name__ == '__main__':
    asyncio.run(main())
