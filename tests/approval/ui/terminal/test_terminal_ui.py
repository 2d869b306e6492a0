import asyncio
import io
import os
import pwd
import signal
import sys
import threading
from typing import Any

import pytest
from tool_approval.core.request import Votes
from tool_approval.testing import check_ui
from tool_approval.ui.terminal.terminal_ui import TerminalUI

from tool_approval import ApprovalController, ApprovalDecision, ApprovalRequest, FirstOf

from .person import Person, ask, make_ui

REQUEST = ApprovalRequest(tool_name='delete', args={'path': 'notes.txt'})
Q = '╰─ '
QUESTIONS = (Q, '+- ')


@pytest.mark.parametrize(
    'environment', [{}, *(pytest.param(each, marks=pytest.mark.slow) for each in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}))]
)
def test_terminal_ui_passes_the_conformance_suite(environment: dict[str, str]) -> None:
    people: list[Person] = []

    def person_who(approves: bool) -> TerminalUI:
        key = 'y' if approves else 'n'
        person = Person([(QUESTIONS, key)], types_again='TERM' in environment)
        people.append(person.__enter__())
        person.also([('2 requests: ', 'o'), (QUESTIONS, key), (QUESTIONS, key)])
        return make_ui(person, **environment)

    def person_who_writes(text: str) -> TerminalUI:
        # What is typed faster than a person does counts as pasted, so Enter is typed apart.
        person = Person([(QUESTIONS, 'w'), ('Result: ', text), ('Result: ', '\r')], types_again='TERM' in environment)
        people.append(person.__enter__())
        return make_ui(person, **environment)

    try:
        asyncio.run(check_ui(person_who, timeout_s=30, make_responder=person_who_writes))
    finally:
        for person in people:
            person.__exit__()


def test_every_request_is_denied_with_a_line_if_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    ui = TerminalUI(device='/nonexistent')
    request = REQUEST.model_copy(update={'description': 'a\x1b[2Jb'})

    [decision] = asyncio.run(ApprovalController(ui=ui).request_approvals([request]))

    assert (decision.approved, decision.decided_by) == (False, ('ui',))
    assert decision.note == (
        'The approver could not be asked, so the call was denied: there is no terminal (No such file or directory).'
    )
    assert capsys.readouterr().err == f'Denied delete: a<U+001B>[2Jb. {decision.note}\n'


def test_device_that_is_not_a_terminal_denies(tmp_path) -> None:
    (tmp_path / 'file').write_text('y\n')

    decision = asyncio.run(TerminalUI(device=str(tmp_path / 'file')).choose(REQUEST, mode='interactive'))

    assert 'is not a terminal' in decision.note


@pytest.mark.parametrize('stream', [None, io.StringIO()])
def test_standard_streams_may_be_closed(stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, 'stdout', stream)
    monkeypatch.setattr(sys, 'stderr', stream)

    decision = asyncio.run(TerminalUI(device='/nonexistent').choose(REQUEST, mode='interactive'))

    assert decision.approved is False


@pytest.mark.parametrize('has_name', [True, False])
def test_the_person_is_the_user_of_the_machine(monkeypatch: pytest.MonkeyPatch, has_name: bool) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    expected = pwd.getpwuid(os.getuid()).pw_name if has_name else f'user {os.getuid()}'
    if not has_name:
        monkeypatch.setattr(pwd, 'getpwuid', unknown)
    with Person([(Q, 'y')]) as person:
        ui = TerminalUI(device=person.device, environment={'TERM': 'xterm'}, quiet_s=0)
        decision = asyncio.run(ui.choose(REQUEST, mode='interactive'))

    assert decision.decided_by == (expected,)


@pytest.mark.parametrize('name', ['policy', 'Memory', ' ui '])
def test_a_person_cannot_have_the_name_of_a_rule(name: str) -> None:
    with pytest.raises(ValueError, match='it is the name of a rule; use another name'):
        TerminalUI(person=name)


def test_a_user_of_the_machine_with_the_name_of_a_rule_is_told_from_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, 'getpwuid', lambda uid: pwd.struct_passwd(('audit', *entry[1:])))

    assert TerminalUI().asks(REQUEST) == ['user audit']


def test_the_log_names_the_person_who_is_asked() -> None:
    assert TerminalUI(person='ada').asks(REQUEST) == ['ada']


@pytest.mark.parametrize('place', [{'agreed': ('bob', 'Ada')}, {}])
def test_a_person_without_a_further_vote_is_not_asked(place: dict[str, Any]) -> None:
    metadata = {} if place else {'requester': 'ada'}
    request = REQUEST.model_copy(update={'votes': Votes(needed=3, **place), 'metadata': metadata})

    decision = asyncio.run(TerminalUI(person='ada', device='/nowhere').choose(request, mode='interactive'))

    assert (decision.approved, decision.decided_by) == (False, ('ui',))
    assert decision.note == 'ada has no further vote on this call, so the call was denied.'


def test_a_terminal_that_is_closed_while_it_asks_denies() -> None:
    with Person([(Q, Person.hang_up)]) as person:
        decision = asyncio.run(make_ui(person).choose(REQUEST, mode='interactive'))

    assert (decision.approved, decision.decided_by) == (False, ('ui',))
    assert decision.note == 'The approver could no longer be asked, so the call was denied: the terminal was closed.'


@pytest.mark.parametrize(
    ('decision', 'line'),
    [
        (ApprovalDecision(approved=True, decided_by=('bob',)), '✓ bob approved delete elsewhere: '),
        (ApprovalDecision(approved=False), '✗ another person denied delete elsewhere: '),
    ],
)
def test_a_question_that_was_answered_elsewhere_says_by_whom(decision: ApprovalDecision, line: str) -> None:
    class Elsewhere:
        async def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:
            await reached.wait()
            return decision

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with Person([(Q, lambda person: loop.call_soon_threadsafe(reached.set))]) as person:
            decided = await FirstOf(make_ui(person), Elsewhere()).choose(REQUEST, mode='interactive')
            person.assert_done()
        assert decided.approved is decision.approved
        assert line in person.text

    reached = asyncio.Event()
    asyncio.run(main())


@pytest.mark.parametrize(('key', 'answer'), [('n', 'ada'), ('q', 'stopped')])
def test_an_answer_in_the_moment_of_the_withdrawal_is_not_lost(key: str, answer: str) -> None:
    async def answered(person: Person) -> str | None:
        try:
            return (await make_ui(person).choose(REQUEST, mode='interactive')).decided_by[0]
        except KeyboardInterrupt:
            return 'stopped'

    async def main() -> None:
        with Person([(Q, key)]) as person:
            asking = asyncio.create_task(answered(person))
            await asyncio.sleep(0)
            # Meanwhile the loop hears nothing of it.
            for thread in threading.enumerate():
                if thread.name == 'tool-approval-ui':
                    thread.join(30)
            asking.cancel()
            assert await asking == answer

    asyncio.run(main())


@pytest.mark.parametrize(
    'steps', [[(Q, '')], [(Q, 'd'), ('Note: ', '')], [(Q, 'e'), ('path: ', '')], [(Q, 'l'), (Q, '')]]
)
def test_cancelled_question_is_withdrawn(steps: list) -> None:
    async def main() -> None:
        reached = asyncio.Event()
        loop = asyncio.get_running_loop()
        steps[-1] = (steps[-1][0], lambda person: loop.call_soon_threadsafe(reached.set))
        with Person(steps) as person:
            asking = asyncio.create_task(make_ui(person).choose(REQUEST, mode='interactive'))
            await reached.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            person.assert_done()
        assert 'ada is no longer asked. Denied: delete' in person.text
        # The thread hands over its result shortly before it ends.
        for thread in threading.enumerate():
            if thread.name == 'tool-approval-ui':
                thread.join(timeout=30)
                assert not thread.is_alive()

    asyncio.run(main())


@pytest.mark.parametrize(
    'before', ['', 'signal.signal(signal.SIGTERM, signal.SIG_IGN); '], ids=['ends', 'has to be killed']
)
def test_an_editor_is_ended_with_its_question(tmp_path, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    if before:
        monkeypatch.setattr('tool_approval.ui.terminal.editing.PATIENCE_S', 0.01)
    started = tmp_path / 'started'
    os.mkfifo(started)
    program = f"import os, signal, time; {before}open('{started}', 'w').write(str(os.getpid())); time.sleep(600)"
    editor = f'{sys.executable} -c "{program}"'

    async def main() -> int:
        with Person([(Q, 'e')]) as person:
            asking = asyncio.create_task(make_ui(person, EDITOR=editor).choose(REQUEST, mode='interactive'))
            pid = int(await asyncio.to_thread(started.read_text))
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            person.assert_done()
        return pid

    pid = asyncio.run(main())

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize('groups_responses', [False, True])
def test_all_calls_of_a_response_can_be_one_question(groups_responses: bool) -> None:
    requests = [REQUEST, REQUEST.model_copy(update={'args': {'path': 'other.txt'}})]
    steps = (
        [('2 requests: A approve all', 'A'), ('Approve all 2? Press A', 'A')]
        if groups_responses
        else [(Q, 'y'), (Q, 'y')]
    )

    with Person(steps) as person:
        ui = TerminalUI(
            device=person.device, environment={'TERM': 'xterm'}, quiet_s=0, groups_responses=groups_responses
        )
        decisions = asyncio.run(ApprovalController(ui=ui).request_approvals(requests))
        person.assert_done()

    assert [decision.approved for decision in decisions] == [True, True]


def test_terminal_ui_asks_from_another_thread() -> None:
    decisions: list[ApprovalDecision] = []

    def work() -> None:
        decisions.extend(ask(REQUEST, steps=[(Q, 'y')])[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert decisions[0].approved is True


def test_signals_are_handled_as_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)]

    ask(REQUEST, steps=[(Q, 'y')])

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)] == before


def test_two_runs_ask_one_after_the_other() -> None:
    async def main(ui: TerminalUI) -> list[ApprovalDecision]:
        controllers = [ApprovalController(ui=ui), ApprovalController(ui=ui)]
        return await asyncio.gather(*(controller.request_approval(REQUEST) for controller in controllers))

    with Person([(Q, 'y'), (Q, 'n')]) as person:
        decisions = asyncio.run(main(make_ui(person)))

    assert [decision.approved for decision in decisions] == [True, False]
