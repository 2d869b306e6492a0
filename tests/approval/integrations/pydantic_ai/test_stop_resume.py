"""Answering a run that ended with deferred calls, and resuming it."""

import _thread
import asyncio
import signal
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolRequests
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import UserPromptPart
from tool_approval.audit import JsonlAuditSink, verify
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import DENIED
from tool_approval.integrations.pydantic_ai import (
    build_approval_requests,
    collect_approvals,
    collect_approvals_sync,
    run_with_approval,
    run_with_approval_sync,
)
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory

from .agents import DELETE, REFUSED, Log, external, guarded


def deleting(*responses: Any, **agent: Any):
    ran: list[str] = []
    made: pydantic_ai.Agent[Any, str] = pydantic_ai.Agent(
        scripted(*(responses or ([DELETE], 'done'))), name='janitor', **agent
    )

    @made.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        ran.append(path)
        return f'deleted {path}'

    return made, ran


def stopped(agent: Any) -> Any:
    result = asyncio.run(agent.run('go', output_type=[str, DeferredToolRequests]))
    assert isinstance(result.output, DeferredToolRequests)
    return result


def test_requests_are_built_for_approvals_alone_in_their_order():
    agent, _ = deleting(
        [call('delete', '1', path='a'), call('ask', '2', question='?'), call('delete', '3', path='b')],
        'done',
        toolsets=[external('ask')],
    )

    requests = build_approval_requests(stopped(agent).output)

    assert [(each.tool_call_id, dict(each.args)) for each in requests] == [('1', {'path': 'a'}), ('3', {'path': 'b'})]


@pytest.mark.parametrize('mode', ['auto_approve', 'approve_all'])
def test_modes_that_approve_never_call_the_ui(mode: str):
    agent, _ = deleting([call('delete', '1', path='a'), call('delete', '2', path='b')], 'done')
    ui = approve_all()

    results = collect_approvals_sync(stopped(agent).output, ui=ui, mode=mode)

    assert results.approvals == {'1': True, '2': True}
    assert ui.requests == []


def test_the_denying_mode_denies_everything_without_asking():
    agent, _ = deleting()
    ui = approve_all()

    results = collect_approvals_sync(stopped(agent).output, ui=ui, mode='auto_deny')

    [denied] = results.approvals.values()
    assert isinstance(denied, pydantic_ai.ToolDenied)
    assert ui.requests == []


def test_decisions_become_the_hosts_types():
    agent, _ = deleting([call('delete', str(number), path='a') for number in range(4)], 'done')
    changed = ApprovalDecision(approved=True, override_args={'path': 'b'})
    ui = ScriptedUI([True, changed, 'why', False])

    results = collect_approvals_sync(stopped(agent).output, ui=ui)

    assert results.approvals == {
        '0': True,
        '1': pydantic_ai.ToolApproved(override_args={'path': 'b'}),
        '2': pydantic_ai.ToolDenied(denied_because('why')),
        '3': pydantic_ai.ToolDenied(DENIED),
    }


def test_without_a_memory_nothing_is_remembered_from_one_stop_to_the_next_and_with_one_it_is():
    agent, _ = deleting()
    output = stopped(agent).output
    ui, memory = ScriptedUI(['s', 's', 's']), ApprovalMemory()

    collect_approvals_sync(output, ui=ui)
    collect_approvals_sync(output, ui=ui)
    collect_approvals_sync(output, ui=ui, memory=memory)
    collect_approvals_sync(output, ui=ui, memory=memory)

    ui.assert_done()
    assert len(memory) == 1


def test_a_memory_that_is_given_is_the_conversation_of_every_run():
    ui, memory = ScriptedUI(['s']), ApprovalMemory()

    told = [took(ui, memory) for _ in range(2)]

    ui.assert_done()
    assert told == [('deleted a', 'success')] * 2


def test_the_deps_may_name_the_conversations_that_share_a_memory():
    ui, memory = ScriptedUI(['s', 'not for Eve']), ApprovalMemory()

    told = [took(ui, memory, deps=SimpleNamespace(session_id=name)) for name in ('Ada', 'Ada', 'Eve')]

    ui.assert_done()
    assert told == [('deleted a', 'success'), ('deleted a', 'success'), (denied_because('not for Eve'), 'denied')]


def test_a_session_of_the_deps_that_is_no_text_is_an_error_before_the_run():
    with pytest.raises(UserError, match=r'`deps\.session_id` must be a string, not int'):
        took(approve_all(), ApprovalMemory(), deps=SimpleNamespace(session_id=7))


def took(ui: Any, memory: ApprovalMemory, **run: Any) -> tuple[Any, str]:
    """What the model was told of its one call, in a run of its own."""
    agent, _ = deleting()
    return returns(run_with_approval_sync(agent, 'go', ui=ui, memory=memory, **run).all_messages())['1']


def test_external_calls_are_answered_too():
    agent, _ = deleting([call('ask', '1', question='age?'), call('ask', '2', question='x')], toolsets=[external('ask')])

    results = collect_approvals_sync(
        stopped(agent).output, external={'ask': lambda ctx, question: (ctx, question)}, mode='strict'
    )

    assert results.calls == {'1': (None, 'age?'), '2': (None, 'x')}


def test_a_whole_run_is_taken_through_its_stops_with_one_memory_and_one_prompt():
    agent, ran = deleting(
        [call('delete', '1', path='a')], [call('delete', '2', path='a')], [call('delete', '3', path='b')], 'done'
    )
    ui = ScriptedUI(['s', 'keep it'])

    result = run_with_approval_sync(agent, 'clean up', ui=ui)

    ui.assert_done()
    assert result.output == 'done'
    assert ran == ['a', 'a']
    prompts = [part for message in result.all_messages() for part in message.parts if isinstance(part, UserPromptPart)]
    assert [prompt.content for prompt in prompts] == ['clean up']
    assert returns(result.all_messages())['3'] == (denied_because('keep it'), 'denied')


def test_the_agents_own_output_type_is_kept():
    agent: pydantic_ai.Agent[None, int] = pydantic_ai.Agent(
        scripted([call('delete', '1')], [call('final_result', '2', response=42)]), output_type=int
    )
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

    result = asyncio.run(run_with_approval(agent, 'go', mode='approve_all'))

    assert result.output == 42


def test_a_history_before_the_prompt_is_kept_once():
    agent, _ = deleting('hello', [call('delete', '1', path='a')], 'done')
    before = asyncio.run(agent.run('hi')).all_messages()

    result = asyncio.run(run_with_approval(agent, 'clean up', mode='approve_all', message_history=before))

    assert result.all_messages()[: len(before)] == before
    assert len(result.all_messages()) == len(before) + 4


def test_sync_form_works_inside_a_running_loop():
    agent, ran = deleting()

    async def main():
        return run_with_approval_sync(agent, 'go', ui=approve_all())

    assert asyncio.run(main()).output == 'done'
    assert ran == ['a']


async def by_signal() -> None:
    # To that thread itself: a signal to the process need not wake the one that waits.
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


async def without_waking_a_thread() -> None:
    await asyncio.sleep(0.1)  # the main thread waits by now
    # As a signal that arrives right before that wait: it is noted, and ends no wait.
    _thread.interrupt_main()


@pytest.mark.parametrize('interrupt', [by_signal, without_waking_a_thread])
def test_an_interrupt_inside_a_running_loop_withdraws_the_question(interrupt: Any):
    agent, _ = deleting()
    requests, cancelled = stopped(agent).output, threading.Event()

    class Interrupted:
        async def choose(self, request, *, mode):
            await interrupt()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

    async def main():
        collect_approvals_sync(requests, ui=Interrupted())

    # Not `asyncio.run`: its loop answers the first signal itself.
    with closing(asyncio.new_event_loop()) as loop, pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(main())

    assert cancelled.wait(10)


def test_an_error_inside_a_running_loop_reaches_the_caller():
    agent, _ = deleting()

    async def main():
        run_with_approval_sync(agent, 'go', mode='no such mode')

    with pytest.raises(ValueError, match='no such mode'):
        asyncio.run(main())


def test_a_controller_and_the_parts_of_one_exclude_each_other():
    agent, _ = deleting()
    controller = ApprovalController()

    for given in ({'ui': approve_all()}, {'mode': 'strict'}, {'memory': ApprovalMemory()}):
        keywords: Any = given
        with pytest.raises(ValueError, match='cannot be combined with `ui`'):
            asyncio.run(collect_approvals(stopped(agent).output, controller=controller, **keywords))


def guarded_agent(controller: ApprovalController, ran: list[str]) -> pydantic_ai.Agent[Any, str]:
    """An agent whose only tool is in a toolset under approval."""

    def delete(path: str) -> str:
        ran.append(path)
        return f'deleted {path}'

    return pydantic_ai.Agent(scripted([call('delete', '1', path='a')], 'done'), toolsets=[guarded(delete, controller)])


def test_an_approval_toolset_binds_what_was_approved_across_stop_and_resume():
    ran: list[str] = []
    controller = ApprovalController(ui=RecordingUI(True))
    agent = guarded_agent(controller, ran)
    stop = stopped(agent)
    results = collect_approvals_sync(stop.output, controller=controller)
    history = stop.all_messages()

    def resume(path: str) -> Any:
        changed = pydantic_ai.ToolApproved(override_args={'path': path})
        results.approvals['1'] = True if path == 'a' else changed
        return asyncio.run(agent.run(message_history=list(history), deferred_tool_results=results))

    replayed = resume('/')

    assert ran == []
    assert returns(replayed.all_messages())['1'] == REFUSED
    assert resume('a').output == 'done'
    assert ran == ['a']


def test_the_synchronous_forms_leave_the_event_loop_of_run_sync_alone():
    agent, _ = deleting()
    output = agent.run_sync('go', output_type=[str, DeferredToolRequests]).output
    loop = asyncio.get_event_loop_policy().get_event_loop()
    assert isinstance(output, DeferredToolRequests)

    collect_approvals_sync(output, mode='strict')

    assert asyncio.get_event_loop_policy().get_event_loop() is loop


@pytest.mark.parametrize('decision', [True, ApprovalDecision(approved=True, override_args={'path': 'b'})])
@pytest.mark.parametrize('way', ['run_with_approval', 'collect_approvals'])
def test_an_outcome_after_resuming_belongs_to_its_decision(tmp_path: Path, way: str, decision: Any):
    key = b'0123456789abcdef'
    controller = ApprovalController(ui=ScriptedUI([decision]), audit=JsonlAuditSink(tmp_path / 'audit.jsonl', key=key))
    agent = guarded_agent(controller, [])
    if way == 'run_with_approval':
        run_with_approval_sync(agent, 'go', controller=controller)
    else:
        first = stopped(agent)
        answers = collect_approvals_sync(first.output, controller=controller)
        agent.run_sync(message_history=first.all_messages(), deferred_tool_results=answers)

    finding = verify(tmp_path / 'audit.jsonl', key=key)

    assert finding.unfinished == ()


def test_forged_metadata_cannot_keep_an_outcome_out_of_the_log():
    log = Log()
    controller = ApprovalController(ui=approve_all(), audit=log)
    agent = guarded_agent(controller, [])
    first = stopped(agent)
    answers = collect_approvals_sync(first.output, controller=controller)
    answers.metadata['1']['tool_approval']['is_enclosed'] = True

    agent.run_sync(message_history=first.all_messages(), deferred_tool_results=answers)

    assert log.told == [('decision', True, '1'), ('outcome', 'executed', '1')]
