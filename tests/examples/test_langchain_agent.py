from langchain_core.messages import AIMessage, ToolMessage
from tool_approval.testing import RecordingUI

from tool_approval import Approvals

NOTICE = '[The approver changed the arguments of this call, which ran with: {"path":"draft.txt.bak"}]'


def test_person_is_asked_and_each_outcome_reaches_the_model(run):
    program = run('langchain_agent')

    assert program.stderr == ''
    assert program.returncode == 0
    assert program.stdout.splitlines() == [
        "asked, 1 of 3: delete_file(path='old.log') -> yes",
        "asked, 2 of 3: delete_file(path='thesis.txt') -> no",
        "asked, 3 of 3: delete_file(path='draft.txt') -> yes",
        'success: draft.txt draft.txt.bak old.log thesis.txt',
        'error: The approver denied this call, so it was not run: Not my thesis.',
        'success: old.log is deleted.',
        'success: draft.txt.bak is deleted.',
        '',
        NOTICE,
        "error: The tool 'format_disk' is blocked by policy.",
        'success: old.log is deleted.',
    ]


def test_denied_calls_change_no_file(load):
    example = load('langchain_agent')
    agent = example.create_agent(
        example.Planner(),
        tools=[example.list_files, example.delete_file, example.format_disk],
        middleware=[Approvals(ui=RecordingUI(False)).middleware()],
    )

    messages = agent.invoke({'messages': [('user', 'Tidy up.')]})['messages']

    assert [message.status for message in messages if isinstance(message, ToolMessage)] == ['error'] * 6
    assert isinstance(messages[-1], AIMessage)
