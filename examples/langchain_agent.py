"""Ask before a LangChain agent's tools run: `python examples/langchain_agent.py`.

The run waits for the answer. It needs no checkpointer and no second invocation. `Planner` stands in for a language
model; replace it by the name of a model, as in `create_agent('openai:gpt-5', ...)`.
"""

# The types of LangChain's graphs are incomplete.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tool_approval import ApprovalDecision, ApprovalMode, ApprovalRequest, Approvals


class Person:
    """Answers in place of a user. Each answer is for the first question about its file."""

    one_at_a_time = True

    def __init__(self) -> None:
        self.answers = {
            'old.log': ApprovalDecision(approved=True, remember='session'),
            'thesis.txt': ApprovalDecision(approved=False, note='Not my thesis.'),
            'draft.txt': ApprovalDecision(approved=True, override_args={'path': 'draft.txt.bak'}),
        }

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Answer a question. A plain function is called in a thread, so it may wait for `input`."""
        place = f'{request.metadata["position"]} of {request.metadata["batch_size"]}'
        decision = self.answers.pop(request.args['path'])
        print(f'asked, {place}: {request.description} -> {"yes" if decision.approved else "no"}')
        return decision


class Planner(BaseChatModel):
    """Stands in for a language model: lists files, deletes three at once, tries two more calls, then reports."""

    @property
    def _llm_type(self) -> str:
        return 'planner'

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> BaseChatModel:
        """Return itself, because it knows the tools."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        calls: list[tuple[str, dict[str, str]]]
        match sum(isinstance(message, AIMessage) for message in messages):
            case 0:
                calls = [('list_files', {})]
            case 1:
                calls = [('delete_file', {'path': path}) for path in ('old.log', 'thesis.txt', 'draft.txt')]
            case 2:
                calls = [('delete_file', {'path': 'old.log'}), ('format_disk', {})]
            case _:
                told = [f'{each.status}: {each.text}' for each in messages if isinstance(each, ToolMessage)]
                return ChatResult(generations=[ChatGeneration(message=AIMessage('\n'.join(told)))])
        made = [
            ToolCall(name=name, args=args, id=f'{len(messages)}-{index}') for index, (name, args) in enumerate(calls)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage('', tool_calls=made))])


@tool
def list_files() -> str:
    """List the files."""
    return 'draft.txt draft.txt.bak old.log thesis.txt'


@tool
def delete_file(path: str) -> str:
    """Pretend to delete a file."""
    return f'{path} is deleted.'


@tool
def format_disk() -> str:
    """Erase everything. The policy blocks this."""
    raise AssertionError('a blocked tool ran')


def main() -> None:
    approvals = Approvals({'list_files': {'approval': 'none'}, 'format_*': {'approval': 'blocked'}}, ui=Person())
    agent = create_agent(
        Planner(),
        tools=[list_files, delete_file, format_disk],
        middleware=[approvals.middleware()],
        name='janitor',
    )
    result = agent.invoke({'messages': [HumanMessage('Tidy up.')]}, {'configurable': {'thread_id': 'Ada'}})
    print(result['messages'][-1].text)


if __name__ == '__main__':
    main()
