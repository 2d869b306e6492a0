"""Guard files and a shell with one `approvals.yaml`, in an OS sandbox if one works. Needs no key and no network.

`python examples/guarded_agent.py` works in a temporary folder. It names the settings file, which makes the file
trusted. A file that is only found in a folder must be trusted first.
"""

import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tool_approval.integrations.pydantic_ai import Approvals, FileToolset, ShellToolset
from tool_approval.settings import Workspace, load_settings, open_workspace

from tool_approval import ApprovalDecision, ApprovalMode, ApprovalRequest

SETTINGS = """\
sandbox:
  paths:
    notes: {root: ./notes, mode: rw}
    diary: {root: ./diary, mode: ro, read_approval: true}
  require_os_sandbox: false  # `true` does not start where commands cannot be confined
shell:
  rules:
    - {pattern: cat, approval: false}
    - {pattern: rm, allowed: false}
"""

CALLS = (
    ToolCallPart('read_file', {'path': 'notes/todo.txt'}),
    ToolCallPart('edit_file', {'path': 'notes/todo.txt', 'old_text': 'milk', 'new_text': 'oats'}),
    ToolCallPart('write_file', {'path': 'approvals.yaml', 'content': 'shell: {default: {approval: false}}'}),
    ToolCallPart('run_shell', {'command': 'cat notes/todo.txt'}),
    ToolCallPart('run_shell', {'command': 'cat diary/monday.txt'}),
    ToolCallPart('run_shell', {'command': 'head -n 1 diary/monday.txt'}),
    ToolCallPart('run_shell', {'command': 'rm notes/todo.txt'}),
    ToolCallPart('run_shell', {'command': 'wc -c notes/todo.txt'}),
)


class Person:
    """Answers in place of a user: approves the edit and reading the diary, and nothing else."""

    one_at_a_time = True

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Print the question and the answer."""
        is_fine = request.tool_name == 'edit_file' or 'diary' in str(request.args)
        print(f'  asked: {request.description} -> {"yes" if is_fine else "no"}')
        return ApprovalDecision(approved=is_fine, note=None if is_fine else 'Count for yourself.')


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: make one call after another, whatever they return."""
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return ModelResponse([CALLS[len(returns)] if len(returns) < len(CALLS) else TextPart('That is all.')])


def prepare(folder: Path) -> Workspace:
    """Create the files and the settings, and return the tools."""
    for name, content in (('notes/todo.txt', 'buy milk\n'), ('diary/monday.txt', 'It rained.\nAnn called.\n')):
        (folder / name).parent.mkdir()
        (folder / name).write_text(content)
    (folder / 'approvals.yaml').write_text(SETTINGS)
    return open_workspace(load_settings(folder / 'approvals.yaml', directory=folder, named=True))


def run(workspace: Workspace) -> str:
    """Run the agent, and print the result of each call."""
    files, shell = FileToolset(workspace.files), ShellToolset(workspace.shell)
    approvals = Approvals(workspace.policy, mode=workspace.settings.mode, ui=Person(), presenters=files.presenters)
    agent = Agent(FunctionModel(plan), toolsets=[files, shell], capabilities=[approvals])
    result = agent.run_sync('Look after my notes.')
    calls = iter(CALLS)
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                print(f'{part.tool_name} {next(calls).args}\n  {" / ".join(str(part.content).splitlines())}')
    return result.output


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = prepare(Path(folder))
        print(f'commands are confined by: {workspace.backend.name}')
        print(run(workspace))


if __name__ == '__main__':
    main()
