"""A chat model that follows a script, in LangChain's own agent loop."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from pydantic import PrivateAttr
from tool_approval.integrations.langchain import ApprovalMiddleware

from tool_approval import ApprovalController, ApprovalDecision, ApprovalRequest, ApprovalResult


class ScriptedModel(BaseChatModel):
    """Gives one response after the other, whatever it is told, and keeps what it was told."""

    responses: list[AIMessage]
    _told: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return 'scripted'

    @property
    def told(self) -> list[list[BaseMessage]]:
        return self._told

    def bind_tools(self, tools: Any, **kwargs: Any) -> 'ScriptedModel':
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self._told.append(list(messages))
        message = self.responses[len(self._told) - 1]
        return ChatResult(generations=[ChatGeneration(message=message.model_copy(deep=True))])


def call(name: str, call_id: str, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=call_id, type='tool_call')


def change(**args: Any) -> ApprovalDecision:
    """An approval of other arguments."""
    return ApprovalDecision(approved=True, override_args=args)


def scripted(*responses: str | Sequence[ToolCall]) -> ScriptedModel:
    """A model whose responses are texts, or lists of calls."""
    return ScriptedModel(
        responses=[
            AIMessage(each) if isinstance(each, str) else AIMessage('', tool_calls=list(each)) for each in responses
        ]
    )


def results(messages: Iterable[BaseMessage]) -> list[tuple[str | None, Any, str]]:
    """Name, content and status of each answer to a call, in order."""
    return [(each.name, each.content, each.status) for each in messages if isinstance(each, ToolMessage)]


class Files:
    """Tools that write down what they did."""

    def __init__(self):
        self.ran: list[str] = []

    def tools(self) -> list[BaseTool]:
        @tool
        def read(path: str) -> str:
            """Read a file."""
            self.ran.append(f'read {path}')
            return f'content of {path}'

        @tool
        def write(path: str, content: str = 'nothing') -> str:
            """Write a file."""
            self.ran.append(f'write {path} {content}')
            return 'written'

        return [read, write]

    def judged_tool(self) -> BaseTool:
        """A tool that never writes to /etc, writes freely to /tmp, and asks about the rest."""

        def write(path: str, content: str = '') -> str:
            """Write a file."""
            self.ran.append(f'write {path}')
            return 'written'

        def needs_approval(name: str, args: dict[str, Any]) -> Any:
            if args['path'].startswith('/etc'):
                return ApprovalResult.blocked('The system is not yours.')
            return not args['path'].startswith('/tmp')

        write.needs_approval = needs_approval  # type: ignore[attr-defined]
        return tool(write)


GO = {'messages': [('user', 'go')]}


class Runner:
    """Runs an agent to its end, one way or the other."""

    def __init__(self, *, is_async: bool):
        self.is_async = is_async

    def agent(self, model: BaseChatModel, tools: Any, controller: ApprovalController, **options: Any):
        before, after = options.pop('before', []), options.pop('after', [])
        own = {key: options.pop(key) for key in ('default', 'caller', 'tells_changes') if key in options}
        return create_agent(
            model, tools, middleware=[*before, ApprovalMiddleware(controller, **own), *after], **options
        )

    def wait(self, coroutine: Any) -> Any:
        return asyncio.run(coroutine)

    def output(self, agent: Any, config: Any = None, given: Any = GO) -> dict[str, Any]:
        """The state that a run ends with."""
        return self.wait(agent.ainvoke(given, config)) if self.is_async else agent.invoke(given, config)

    def invoke(self, agent: Any, config: Any = None, given: Any = GO) -> list[BaseMessage]:
        return self.output(agent, config, given)['messages']

    def __call__(self, model: BaseChatModel, tools: Any, controller: ApprovalController, config: Any = None, **options):
        return results(self.invoke(self.agent(model, tools, controller, **options), config))


class Altering(AgentMiddleware):
    """Changes what is about to run."""

    def altered(self, request: Any) -> Any:
        raise NotImplementedError

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self.altered(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.altered(request))


class WaitingUI:
    """A UI that approves only after the run that asked has ended."""

    def __init__(self):
        self.asked, self.withdrawn, self.has_ended = threading.Event(), threading.Event(), threading.Event()

    def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self.asked.set()
        self.has_ended.wait(10)
        return ApprovalDecision(approved=True)

    def withdraw(self, request: ApprovalRequest) -> None:
        self.withdrawn.set()

    async def cancel(self, run: Any) -> None:
        """Start `run`, and cancel it while its question is open."""
        running = asyncio.create_task(run())
        await asyncio.to_thread(self.asked.wait, 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        self.has_ended.set()
