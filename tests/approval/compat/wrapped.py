"""A toolset of harmless functions, a callback that keeps what it was asked, and a run of both."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from tool_approval.compat.blocking_approval import ApprovalDecision, ApprovalRequest, ApprovalToolset

from tests.loop.scripted import Response, returns, scripted

YES = ApprovalDecision(approved=True)
NO = ApprovalDecision(approved=False, note='not today')
SESSION = ApprovalDecision(approved=True, remember='session')


class Files:
    """Tools that only say what they would do."""

    def __init__(self):
        self.ran: list[str] = []

    def write(self, path: str) -> str:
        self.ran.append(f'write {path}')
        return f'wrote {path}'

    def read(self, path: str) -> str:
        self.ran.append(f'read {path}')
        return f'contents of {path}'

    def toolset(self, **options: Any) -> FunctionToolset[Any]:
        return FunctionToolset([self.write, self.read], **options)


class Asked:
    """A callback that gives one answer after the other, and the last one for good."""

    def __init__(self, *answers: Any):
        self.answers = list(answers) or [YES]
        self.requests: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Any:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def names(self) -> list[str]:
        return [request.tool_name for request in self.requests]

    @property
    def descriptions(self) -> list[str]:
        return [request.description for request in self.requests]


class Judging(FunctionToolset[Any]):
    """A toolset with logic of its own, of the signature of 0.7."""

    def __init__(self, files: Files, said: Any):
        super().__init__([files.write, files.read])
        self.said = said
        self.judged: list[tuple[Any, ...]] = []

    def needs_approval(self, name: str, tool_args: dict[str, Any], ctx: Any) -> Any:
        self.judged.append((name, tool_args, ctx))
        return self.said


def run(toolset: AbstractToolset[Any], *responses: Response, deps: Any = None) -> list[Any]:
    """What the model was told of each call, in order."""
    agent = Agent(scripted(*responses, 'done'), toolsets=[toolset], deps_type=object)
    result = agent.run_sync('Go.', deps=deps)
    return [content for content, _ in returns(result.all_messages()).values()]


def wrapped(inner: AbstractToolset[Any], asked: Asked, *args: Any, **options: Any) -> ApprovalToolset[Any]:
    return ApprovalToolset(inner, asked, *args, **options)
