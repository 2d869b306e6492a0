"""What is remembered, and for whom."""

import threading

from langchain.agents import create_agent
from langchain_core.tools import tool
from tool_approval.integrations.langchain import ApprovalMiddleware, ApprovalToolWrapper
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI

from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory

from .scripted import Files, Runner, call, scripted

READ = [call('read', '1', path='a')]


def thread(thread_id: object):
    return {'configurable': {'thread_id': thread_id}}


def test_an_answer_is_remembered_for_the_next_call_of_the_same_response(run, files):
    ui = ScriptedUI(['s'])
    model = scripted([call('read', '1', path='a'), call('read', '2', path='a')], 'done')

    run(model, files.tools(), ApprovalController(ui=ui))

    ui.assert_done()
    assert files.ran == ['read a', 'read a']


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


def test_an_answer_is_remembered_for_later_responses_of_the_run(run, files):
    ui = ScriptedUI(['s'])

    run(scripted(READ, [call('read', '2', path='a')], 'done'), files.tools(), ApprovalController(ui=ui))

    ui.assert_done()
    assert files.ran == ['read a', 'read a']


def test_other_arguments_are_asked_about(run, files):
    ui = ScriptedUI(['s', False])

    run(scripted(READ, [call('read', '2', path='b')], 'done'), files.tools(), ApprovalController(ui=ui))

    ui.assert_done()
    assert files.ran == ['read a']


def test_without_a_session_nothing_is_remembered_beyond_the_run(run, files):
    ui = ScriptedUI(['s', False])
    controller = ApprovalController(ui=ui)

    run(scripted(READ, 'done'), files.tools(), controller, name='clerk')
    run(scripted(READ, 'done'), files.tools(), controller, name='clerk')

    ui.assert_done()
    assert files.ran == ['read a']


def test_the_thread_is_the_session(run, files):
    ui = ScriptedUI(['s', False])
    controller = ApprovalController(ui=ui)

    run(scripted(READ, 'done'), files.tools(), controller, thread(7), name='clerk')
    run(scripted(READ, 'done'), files.tools(), controller, thread(7), name='clerk')
    run(scripted(READ, 'done'), files.tools(), controller, thread(8), name='clerk')

    ui.assert_done()
    assert [request.session_id for request in ui.requests] == ['7', '8']
    assert files.ran == ['read a', 'read a']


def test_agents_without_a_name_share_nothing(run, files):
    ui = ScriptedUI(['s', False])
    controller = ApprovalController(ui=ui)

    run(scripted(READ, 'done'), files.tools(), controller, thread('t'))
    run(scripted(READ, 'done'), files.tools(), controller, thread('t'))

    ui.assert_done()
    assert [request.metadata.get('caller') for request in ui.requests] == [None, None]


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

    run(scripted(READ, [call('read', '2', path='b')], 'done'), files.tools(), controller)
    run(scripted(READ, 'done'), files.tools(), controller)

    first, second, other = [request.run_id for request in ui.requests]
    assert first == second != other


def nested(run: Runner, controller: ApprovalController, files: Files, **inner):
    """An agent with a tool that runs another agent, which makes the same call."""

    def work() -> str:
        agent = create_agent(
            scripted(READ, 'done'), files.tools(), middleware=[ApprovalMiddleware(controller, **inner)]
        )
        return str(agent.invoke({'messages': [('user', 'go')]})['messages'][-1].content)

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


def test_a_wrapped_tool_in_a_graph_without_a_session_remembers_nothing(run, files):
    ui = ScriptedUI(['s', False])
    controller = ApprovalController(ui=ui)
    agent = create_agent(
        scripted(READ, [call('read', '2', path='a')], 'done'), [ApprovalToolWrapper(files.tools()[0], controller)]
    )

    run.invoke(agent)

    ui.assert_done()
    assert files.ran == ['read a']


def test_a_wrapped_tool_remembers_for_the_thread(run, files):
    ui = ScriptedUI(['s'])
    controller = ApprovalController(ui=ui)
    agent = create_agent(
        scripted(READ, [call('read', '2', path='a')], 'done'),
        [ApprovalToolWrapper(files.tools()[0], controller, caller='clerk')],
    )

    run.invoke(agent, thread('t'))

    ui.assert_done()
    assert files.ran == ['read a', 'read a']


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
