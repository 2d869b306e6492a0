"""How many questions a few globs leave, and which injected tasks reach one, in the tasks of AgentDojo."""

from tests.corpus.agentdojo import tasks
from tool_approval import ApprovalPolicy

READING = ('read_*', 'get_*', 'search_*', 'list_*', 'check_*')
"""The globs in `docs/how-to/fewer-questions.md`."""

POLICY = ApprovalPolicy({glob: {'approval': 'none'} for glob in READING})


def asks(tool: str) -> bool:
    return POLICY.settle(tool, {}, None).status == 'needs_approval'


def test_five_globs_leave_at_most_82_questions_for_339_calls():
    calls = [tool for task in tasks('user') for tool in task]

    assert len(calls) == 339
    assert 0 < sum(map(asks, calls)) <= 82


def test_25_of_26_injected_tasks_reach_a_question():
    injected = tasks('injection')

    assert len(injected) == 26
    assert sum(any(map(asks, task)) for task in injected) >= 25
