"""What is remembered, and for whom."""

import threading

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from tool_approval.integrations.langchain import ApprovalMiddleware, ApprovalToolWrapper
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI

from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory

from .scripted import GO, Files, Runner, call, scripted

READ = [call('read', '1', path='a')]


def thread(thread_id: object):
    return {'configurable': {'thread_id': thread_id}}


AGAIN, OTHER = [call('read', '2', path='a')], [call('read', '2', path='b')]


@pytest.mark.parametrize(
    ('name', 'threads', 'responses', 'answers', 'sessions', 'times'),
    [
        pytest.param(None, [None], [[*READ, *AGAIN]], ['s'], [None], 2, id='for the next call of the response'),
        pytest.param(None, [None], [READ, AGAIN], ['s'], [None], 2, id='for later responses of the run'),
        pytest.param(None, [None], [READ, OTHER], ['s', False], [None, None], 1, id='not for other arguments'),
        pytest.param('clerk', [None, None], [READ], ['s', False], [None, None], 1, id='not for another run'),
        pytest.param('clerk', [7, 7, 8], [READ], ['s', False], ['7', '8'], 2, id='for another run of the thread'),
        pytest.param(None, ['t', 't'], [READ], ['s', False], ['t', 't'], 1, id='not for agents without a name'),
    ],
)
def test_an_answer_for_the_session_is_remembered(run, files, name, threads, responses, answers, sessions, times):
    ui = ScriptedUI(answers)
    controller = ApprovalController(ui=ui)

    for thread_id in threads:
        config = None if thread_id is None else thread(thread_id)
        run(scripted(*responses, 'done'), files.tools(), controller, config, name=name)

    ui.assert_done()
    assert [request.session_id for request in ui.requests] == sessions
    assert [request.metadata.get('caller') for request in ui.requests] == [name] * len(sessions)
    assert files.ran == ['read a'] * times


def test_calls_of_one_response_ask_a_blocking_ui_one_question_at_a_time(run, files):
    class Prompt:
        def __init__(self):
            self.open, self.most, self.asked = 0, 0, []

        def choose(self, request, *, mode):
            self.open += 1
            self.most = max(self.most, self.open)
            threading.Event().wait(0.02)
            self.open -= 1
            self.asked.append(request.args['path'])
            return ApprovalDecision(approved=True, remember='session')

    ui = Prompt()

    run(
        scripted([call('read', str(i), path='ab'[i % 2]) for i in range(6)], 'done'),
        files.tools(),
        ApprovalController(ui=ui),
    )

    assert (ui.most, sorted(ui.asked)) == (1, ['a', 'b'])
    assert len(files.ran) == 6


def test_a_request_tells_run_session_and_agent(run, files):
    ui = ScriptedUI([False])
    config = {'run_id': '01234567-89ab-cdef-0123-456789abcdef', 'configurable': {'session_id': 's'}}

    run(scripted(READ, 'done'), files.tools(), ApprovalController(ui=ui), config, name='clerk')

    [request] = ui.requests
    assert (request.run_id, request.session_id) == ('01234567-89ab-cdef-0123-456789abcdef', 's')
    assert request.metadata['caller'] == 'clerk'


def test_all_requests_of_a_run_have_its_id_also_where_nobody_gave_one(run, files):
    ui = RecordingUI(True)
    controller = ApprovalController(ui=ui)

    run(scripted(READ, OTHER, 'done'), files.tools(), controller)
    run(scripted(READ, 'done'), files.tools(), controller)

    first, second, other = [request.run_id for request in ui.requests]
    assert first == second != other


def nested(run: Runner, controller: ApprovalController, files: Files, **inner):
    """An agent with a tool that runs another agent, which makes the same call."""

    def work() -> str:
        agent = create_agent(
            scripted(READ, 'done'), files.tools(), middleware=[ApprovalMiddleware(controller, **inner)]
        )
        return str(agent.invoke(GO)['messages'][-1].content)

    @tool
    def delegate() -> str:
        """Let somebody else do it."""
        return work()

    controller.policy = type(controller.policy)({'delegate': {'approval': 'none'}})
    model = scripted(READ, [call('delegate', '2')], [call('delegate', '3')], 'done')
    run(model, [*files.tools(), delegate], controller, thread('t'), name='boss')


def test_unnamed_agent_in_a_tool_shares_nothing(run, files):
    ui = ScriptedUI(['s', 's', False])

    nested(run, ApprovalController(ui=ui), files)

    ui.assert_done()
    assert [request.metadata.get('caller') for request in ui.requests] == ['boss', None, None]
    assert files.ran == ['read a', 'read a']


def test_named_agent_in_a_tool_is_remembered_and_not_taken_for_the_one_above(run, files):
    ui = ScriptedUI(['s', 's'])

    nested(run, ApprovalController(ui=ui), files, caller='worker')

    ui.assert_done()
    assert [request.metadata['caller'] for request in ui.requests] == ['boss', 'worker']
    assert files.ran == ['read a', 'read a', 'read a']


@pytest.mark.parametrize(
    ('caller', 'config', 'answers', 'times'),
    [
        pytest.param(None, None, ['s', False], 1, id='not without a session'),
        pytest.param('clerk', thread('t'), ['s'], 2, id='for the thread'),
    ],
)
def test_a_wrapped_tool_in_a_graph_remembers(run, files, caller, config, answers, times):
    ui = ScriptedUI(answers)
    wrapper = ApprovalToolWrapper(files.tools()[0], ApprovalController(ui=ui), caller=caller)

    run.invoke(create_agent(scripted(READ, AGAIN, 'done'), [wrapper]), config)

    ui.assert_done()
    assert files.ran == ['read a'] * times


def test_always_holds_for_the_tool_as_it_was_described(run, files, tmp_path):
    @tool
    def read(path: str) -> str:
        """Read a file, and publish it."""
        files.ran.append(f'published {path}')
        return 'content'

    ui = ScriptedUI(['a', False])
    store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')
    controller = ApprovalController(ui=ui, memory=ApprovalMemory(store))

    for tools in (files.tools(), files.tools(), [read]):
        run(scripted(READ, 'done'), tools, controller, name='clerk')

    ui.assert_done()
    assert files.ran == ['read a', 'read a']
