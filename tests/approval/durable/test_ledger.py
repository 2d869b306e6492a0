"""What becomes of one call, with one ledger or two."""

import asyncio
import json
import logging
import threading
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from tool_approval.core.calls import ExecutedCall, Kept
from tool_approval.durable import Done, Ledger, RunRow, ledger, open_store
from tool_approval.inbox import InboxError, InboxUnavailable
from tool_approval.testing import RecordingUI

from tests.approval.parts import NOON, ListSink
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ExecutionNotRepeated,
    current_call,
    execute_tool,
)

from .parts import change

pytestmark = pytest.mark.anyio

CALL = ExecutedCall(run_id='run', tool_name='pay', tool_call_id='call', args={'to': 'ada'}, identity=['pay', 1])
LATER = NOON + timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(ledger, 'POLL_S', 0.01)
    monkeypatch.setattr(ledger, 'RETRY_S', 0.01)
    # The clock of a test goes on only by hand.
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)


@pytest.fixture
def store(tmp_path):
    made = open_store(f'{tmp_path}/state/inbox.sqlite')
    yield made
    made.close()


class Process:
    """A ledger as in a process of its own, whose clock is set by hand."""

    def __init__(self, store, **keywords):
        self.seconds = 0.0
        self.ledger = Ledger(store, beats=False, clock=lambda: self.seconds, now=lambda: NOON, **keywords)
        self.tick = self.ledger.tick

    def sees_dead(self):
        """Look long enough to take all others for dead that do not count."""
        for _ in range(5):
            self.seconds += 10
            gone = self.tick()
        return gone


@pytest.fixture
def process(store):
    made = []

    def make(**keywords):
        made.append(Process(store, **keywords))
        return made[-1]

    yield make
    for each in made:
        each.ledger.close()


class Tool:
    """Counts its effects by idempotency key."""

    def __init__(self, *, result='paid', error=None):
        self.effects = []
        self.result = result
        self.error = error
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self):
        self.effects.append(current_call().idempotency_key)
        self.began.set()
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        return self.result


def rows(store):
    return [(row.attempt, row.state) for row in store.executions_of('run')]


async def test_a_call_is_executed_and_its_result_is_kept(store, process):
    tool = Tool(result={'paid': [1, None, 'é']})

    assert await process().ledger.execute(CALL, tool) == {'paid': [1, None, 'é']}
    kept = await process().ledger.execute(CALL, tool)

    assert kept == Kept('done', value={'paid': [1, None, 'é']})
    assert len(tool.effects) == 1
    [row] = store.executions_of('run')
    assert (row.tool_name, row.tool_call_id, row.state, row.idempotency_key) == ('pay', 'call', 'done', tool.effects[0])
    assert row.started_at == NOON


async def test_an_idempotency_key_is_of_one_call_alone(process):
    tool, one = Tool(), process().ledger

    for number in range(3):
        await one.execute(CALL._replace(identity=['pay', number]), tool)

    assert len(set(tool.effects)) == 3


async def test_no_current_call_exists_outside_an_execution(process):
    await process().ledger.execute(CALL, Tool())

    with pytest.raises(LookupError, match='this execution has no ledger'):
        current_call()


async def test_an_error_is_kept_and_the_call_is_not_run_again(process):
    tool = Tool(error=OSError('with a secret'))

    with pytest.raises(OSError, match='with a secret'):
        await process().ledger.execute(CALL, tool)

    assert await process().ledger.execute(CALL, tool) == Kept('failed', text='The call failed (OSError).')
    assert len(tool.effects) == 1


@pytest.mark.parametrize(('text', 'kept'), [('no file \udcff', 'no file ?'), (None, 'The call failed.')])
async def test_an_error_whose_text_cannot_be_kept_has_failed(process, text, kept):
    class Odd(Exception):
        def __str__(self):
            return text

    with pytest.raises(Odd):
        await process().ledger.execute(CALL, Tool(error=Odd()), text_of=str)

    assert await process().ledger.execute(CALL, Tool()) == Kept('failed', text=kept)


async def test_a_tool_that_says_it_has_not_begun_may_run_again(store, process):
    one = process().ledger
    with pytest.raises(LookupError):
        await one.execute(CALL, Tool(error=LookupError()), not_begun=(LookupError,))

    assert await process().ledger.execute(CALL, Tool()) == 'paid'
    assert rows(store) == [(1, 'done')]


@pytest.mark.parametrize(
    ('result', 'text'),
    [
        (object(), 'The call was executed, but its result has no JSON form (PydanticSerializationError).'),
        ('\ud800', 'The call was executed, but its result has no JSON form (PydanticSerializationError).'),
        ('x' * 5_000_000, 'The call was executed, but its result is too large to be stored (5000012 bytes).'),
    ],
)
async def test_a_result_that_cannot_be_kept_is_said_to_be_so_and_nothing_runs_again(process, result, text):
    tool = Tool(result=result)

    assert await process().ledger.execute(CALL, tool) is result
    assert await process().ledger.execute(CALL, tool) == Kept('done', text=text)
    assert len(tool.effects) == 1


@pytest.mark.parametrize('changed', ['', 'no JSON', '[]', '{"text":1}', '[' * 100_000])
async def test_call_with_an_unreadable_result_is_not_run_again(store, process, changed):
    await process().ledger.execute(CALL, Tool())
    change(store, 'UPDATE executions SET result = ?', changed)

    kept = await process().ledger.execute(CALL, Tool())

    assert kept == Kept('done', text="The call of 'pay' ended (done); its recorded result is unreadable.")


async def test_malformed_approver_of_a_kept_result_is_left_out(store, process):
    await process().ledger.execute(CALL, Tool())
    change(store, 'UPDATE executions SET result = ?', '{"value":1,"by":{}}')

    assert await process().ledger.execute(CALL, Tool()) == Kept('done', value=1)


async def test_revoked_call_is_refused_for_good(store, process):
    tool = Tool()

    assert await process().ledger.execute(CALL, tool, check=lambda: 'Revoked.') == Kept('refused', text='Revoked.')
    assert await process().ledger.execute(CALL, tool) == Kept('refused', text='Revoked.')

    assert (tool.effects, rows(store)) == ([], [(1, 'refused')])


async def test_executed_call_is_not_checked_again(process):
    await process().ledger.execute(CALL, Tool())

    assert (await process().ledger.execute(CALL, Tool(), check=lambda: 'Revoked.')).state == 'done'


@pytest.mark.parametrize('same_process', [True, False])
async def test_second_execution_waits_for_the_first_and_gets_its_result(process, same_process):
    tool, one = Tool(), process()
    other = one if same_process else process()
    first = await begun(one, tool)

    second = asyncio.create_task(other.ledger.execute(CALL, tool))
    await asyncio.sleep(0.05)
    assert not second.done()
    tool.may_end.set()

    assert await first == 'paid'
    assert await second == Kept('done', value='paid')
    assert len(tool.effects) == 1


@pytest.mark.parametrize('error', [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
async def test_an_execution_that_is_cut_off_is_unknown(store, process, error):
    tool, one = Tool(error=error()), process()

    with pytest.raises(error):
        await one.ledger.execute(CALL, tool)
    one.ledger._worker.close(10)
    assert rows(store) == [(1, 'unknown')]
    kept = await process().ledger.execute(CALL, tool)
    assert kept.state == 'unknown'
    assert kept.text == (
        "The call of 'pay' was started at 2026-03-04 12:00:00 UTC, but its end was not recorded: its worker died, or "
        'the run was cancelled. The call may have happened.'
    )
    assert len(tool.effects) == 1


async def test_cancelling_before_the_tool_begins_leaves_the_call_approved(store, process):
    one, gate = process(), threading.Event()
    original = store.move

    def slow(row, to, **keywords):
        gate.wait(10)
        return original(row, to, **keywords)

    store.move = slow
    tool = Tool()
    task = asyncio.create_task(one.ledger.execute(CALL, tool))
    while not rows(store):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    one.ledger._worker.close(10)

    assert (tool.effects, rows(store)) == ([], [(1, 'approved')])


async def test_reserved_calls_of_a_dead_worker_are_free_and_executed_ones_unknown(store, process):
    dead, heir = process(), process()
    await dead.ledger.execute(CALL, Tool())
    [row] = store.executions_of('run')
    dead.tick()
    change(store, "UPDATE executions SET state = 'reserved'")
    assert heir.sees_dead() == {dead.ledger.worker_id}
    assert store.latest(row.key) == replace(row, state='approved', owner=None)

    change(store, "UPDATE executions SET state = 'executing', owner = ?, result = NULL", dead.ledger.worker_id)
    assert heir.sees_dead() == {dead.ledger.worker_id}
    assert await heir.ledger.unknown('run') == [replace(row, state='unknown', result=None)]
    store.forget_worker(dead.ledger.worker_id)
    assert heir.sees_dead() == set()


async def test_a_worker_that_died_before_its_first_heartbeat_is_dead(process):
    heir = process()
    for _ in range(5):
        heir.seconds += 10
        gone = heir.tick(['never beat', heir.ledger.worker_id])

    assert gone == {'never beat'}


async def test_a_worker_that_counts_is_not_taken_for_dead(process):
    one, other = process(), process()
    for _ in range(10):
        one.seconds += 10
        other.seconds += 10
        other.tick()
        assert one.tick() == set()


async def begun(one, tool, **keywords):
    """An execution whose tool has begun, and does not end before it may."""
    tool.may_end.clear()
    running = asyncio.create_task(one.ledger.execute(CALL, tool, **keywords))
    await tool.began.wait()
    return running


async def taken_for_dead(one, heir, tool):
    """A worker in the middle of an execution, which another one takes for dead."""
    running = await begun(one, tool)
    one.tick()
    assert one.ledger.worker_id in heir.sees_dead()
    return running


async def test_a_worker_that_was_taken_for_dead_settles_its_own(store, process):
    one, heir, tool = process(), process(), Tool()
    running = await taken_for_dead(one, heir, tool)
    assert rows(store) == [(1, 'unknown')]

    tool.may_end.set()

    assert await running == 'paid'
    assert rows(store) == [(1, 'done')]
    assert await heir.ledger.execute(CALL, tool) == Kept('done', value='paid')


async def test_a_worker_that_comes_back_after_another_attempt_changes_nothing(store, process, caplog):
    one, heir, tool = process(), process(), Tool()
    running = await taken_for_dead(one, heir, tool)
    second = Tool(result='second')

    async def again(question):
        return True

    assert await heir.ledger.execute(CALL, second, ask=again) == 'second'
    tool.may_end.set()

    assert await running == 'paid'
    assert rows(store) == [(1, 'unknown'), (2, 'done')]
    assert await heir.ledger.execute(CALL, tool) == Kept('done', value='second')
    assert len({*tool.effects, *second.effects}) == 2, 'each attempt has a key of its own'
    assert "A call of 'pay' ended after its outcome had been settled" in caplog.text


async def test_a_worker_that_comes_back_after_its_call_was_given_up_changes_nothing(store, process, caplog):
    one, heir, tool = process(), process(), Tool()
    running = await taken_for_dead(one, heir, tool)
    [row] = await heir.ledger.unknown('run')
    assert await heir.ledger.give_up(row, 'ada')
    tool.may_end.set()

    assert await running == 'paid'
    assert 'ada decided' in (await heir.ledger.execute(CALL, tool)).text
    assert "A call of 'pay' ended after its outcome had been settled" in caplog.text


@pytest.mark.parametrize('database', ['sqlite', 'postgres'])
async def test_a_call_of_a_run_that_has_ended_meanwhile_does_not_begin(database, tmp_path, request):
    url = (
        request.getfixturevalue('postgres_url') if database == 'postgres' else str(tmp_path / 'state' / 'inbox.sqlite')
    )
    store, tool = open_store(url), Tool()
    store.add_run(RunRow(id='run', agent='bot', state='{}', created_at=NOON, changed_at=NOON))

    def cancelled():
        assert store.cancel('run', at=NOON)

    with Ledger(store, beats=False) as one:
        kept = await one.execute(CALL, tool, check=cancelled)
        again = await one.execute(CALL, tool)

    assert kept == again == Kept('refused', text='The run has ended, so the call was not run.')
    assert (tool.effects, rows(store)) == ([], [(1, 'refused')])
    store.close()


async def test_a_worker_that_loses_its_reservation_does_not_begin(store, process):
    one, tool = process(), Tool()
    original, is_first = store.move, iter([True])

    def move(row, to, **keywords):
        if to == 'executing' and next(is_first, False):
            # Taken for dead between the two.
            store.release(one.ledger.worker_id, 0, at=NOON)
        return original(row, to, **keywords)

    store.move = move

    assert await one.ledger.execute(CALL, tool) == 'paid'
    assert (len(tool.effects), rows(store)) == (1, [(1, 'done')])


async def unknown(process, **keywords):
    with pytest.raises(asyncio.CancelledError):
        await process().ledger.execute(CALL, Tool(error=asyncio.CancelledError()))
    one = process(**keywords).ledger
    while not (found := await one.unknown('run')):
        await asyncio.sleep(0.01)
    return one, found[0]


async def test_the_tools_own_check_settles_what_was_done(store, process):
    asked = []

    async def check(call):
        asked.append(call)
        return Done({'receipt': 7})

    one, row = await unknown(process, reconcile={'pay': check})

    assert await one.execute(CALL, Tool()) == Kept('done', value={'receipt': 7})
    [call] = asked
    assert (call.args, call.idempotency_key, call.attempt) == ({'to': 'ada'}, row.idempotency_key, 1)
    assert (call.tool_name, call.tool_call_id, call.run_id, call.started_at) == ('pay', 'call', 'run', NOON)
    assert rows(store) == [(1, 'done')]


async def test_the_tools_own_check_lets_what_was_not_done_run_again(store, process):
    one, row = await unknown(process, reconcile={'pay': lambda call: 'not_done'})
    tool = Tool()

    assert await one.execute(CALL, tool) == 'paid'
    assert rows(store) == [(1, 'unknown'), (2, 'done')]
    assert tool.effects != [row.idempotency_key]
    assert await one.unknown('run') == []


@pytest.mark.parametrize('said', ['unknown', None, True, ('paid',)])
async def test_inconclusive_check_leaves_the_call_unknown(store, process, said):
    one, _ = await unknown(process, reconcile={'pay': lambda call: said})

    assert (await one.execute(CALL, Tool())).state == 'unknown'
    assert rows(store) == [(1, 'unknown')]


async def test_failing_check_leaves_the_call_unknown(store, process, caplog):
    def check(call):
        raise OSError('with a secret')

    one, _ = await unknown(process, reconcile={'pay': check})

    assert (await one.execute(CALL, Tool())).state == 'unknown'
    assert "Could not find out the outcome of a call of 'pay': OSError" in caplog.text
    assert 'secret' not in caplog.text


async def test_person_is_asked_if_the_check_is_inconclusive(store, process):
    one, _ = await unknown(process)
    questions = []

    async def deny(question):
        questions.append(question)
        return False

    kept = await one.execute(CALL, Tool(), ask=deny)

    [question] = questions
    assert question.endswith('The call may have happened.')
    assert kept == Kept('unknown', text=f'{question} The call was not run again.')
    assert await one.execute(CALL, Tool(), ask=deny) == kept
    assert len(questions) == 1
    assert await one.unknown('run') == store.unknown_executions() == []


async def test_unknown_calls_are_found_by_the_id_of_the_run_as_it_is(store, process):
    one = process().ledger
    with pytest.raises(asyncio.CancelledError):
        await one.execute(CALL._replace(run_id='a\nb'), Tool(error=asyncio.CancelledError()))
    while not store.unknown_executions():
        await asyncio.sleep(0.01)

    assert await one.unknown('a\nb') == store.unknown_executions()


async def test_call_settled_while_the_question_is_open_is_done(process):
    one, row = await unknown(process)

    async def nobody(question):
        return None

    async def meanwhile(question):
        assert await one.settle(row, 'paid')

    assert (await one.execute(CALL, Tool(), ask=nobody)).state == 'unknown'
    assert await one.execute(CALL, Tool(), ask=meanwhile) == Kept('done', value='paid')


async def test_an_unknown_call_is_settled_once(store, process):
    one, row = await unknown(process)

    assert await one.give_up(row, 'ada\n') is True
    assert [await one.settle(row, 1), await one.again(row), await one.give_up(row)] == [False] * 3, (
        'the first answer holds'
    )
    given_up = store.latest(row.key)
    assert await one.again(given_up) is True, 'until it was tried again, a person may think better of it'
    assert store.latest(row.key).result is None
    assert [await one.settle(row, 1), await one.again(row), await one.give_up(row)] == [False] * 3
    assert rows(store) == [(1, 'unknown'), (2, 'approved')]
    assert 'ada<U+000A> decided not to run the call again.' in store.executions_of('run')[0].result


@pytest.mark.parametrize('kind', ['settle', 'give_up', 'again'])
async def test_settler_of_a_call_is_kept_and_logged(store, process, kind):
    is_first = iter([True])

    def pay(to):
        if next(is_first, False):
            raise asyncio.CancelledError
        return 'paid again'

    controller = ApprovalController(ui=RecordingUI(), audit=(log := ListSink()))
    with pytest.raises(asyncio.CancelledError):
        await executed(process().ledger, pay, controller, to='ada')
    one = process().ledger
    while not (found := await one.unknown('talk')):
        await asyncio.sleep(0.01)
    if kind == 'settle':
        assert await one.settle(found[0], ['paid'], 'bob')
        assert await executed(one, pay, controller, to='ada') == ['paid']
    elif kind == 'again':
        assert await one.again(found[0], 'bob')
        assert await executed(one, pay, controller, to='ada') == 'paid again'
        assert log.outcomes()[-2:] == ['failed', 'executed']
    else:
        assert await one.give_up(found[0], 'bob')
        with pytest.raises(ExecutionNotRepeated, match='bob decided not to run the call again'):
            await executed(one, pay, controller, to='ada')

    outcome = 'executed' if kind == 'settle' else 'failed'
    settled = [(each['outcome'], each['settled_by']) for each in log.entries if 'settled_by' in each]
    assert settled == [(outcome, 'bob')]


async def test_person_who_retries_is_kept_with_the_previous_attempt(store, process):
    one, row = await unknown(process)

    assert await one.again(row, 'ada')

    [before, _] = store.executions_of('run')
    assert json.loads(before.result) == {'text': f'{ledger.unknown_text(row)} The call was tried again.', 'by': 'ada'}


async def test_a_ledger_that_only_settles_makes_the_keys_that_the_others_make(store, process):
    _, row = await unknown(process)

    assert await process().ledger.again(row)

    tool = Tool()
    await process().ledger.execute(CALL, tool)
    assert tool.effects == [store.latest(row.key).idempotency_key]


def away(store, monkeypatch, name, *, is_done, times):
    """The store fails so often in a method, after or before it has done its work."""
    original, left = getattr(store, name), iter(range(times))

    def method(*args, **keywords):
        if next(left, None) is None:
            return original(*args, **keywords)
        if is_done:
            original(*args, **keywords)
        raise InboxUnavailable('here', 'away')

    monkeypatch.setattr(store, name, method)


@pytest.mark.parametrize('is_done', [True, False])
@pytest.mark.parametrize('name', ['secret', 'latest', 'add_execution', 'move'])
async def test_a_store_that_is_away_for_a_while_costs_time_and_no_second_effect(
    store, process, monkeypatch, name, is_done
):
    away(store, monkeypatch, name, is_done=is_done, times=2)
    tool, one = Tool(), process()

    assert await one.ledger.execute(CALL, tool) == 'paid'

    assert (len(tool.effects), rows(store)) == (1, [(1, 'done')])


async def test_a_store_that_stays_away_before_the_tool_begins_runs_nothing(store, process, monkeypatch):
    monkeypatch.setattr(ledger, 'PATIENCE_S', 0.05)
    one, tool = process(), Tool()
    with monkeypatch.context() as broken:
        away(store, broken, 'move', is_done=True, times=10**6)
        with pytest.raises(InboxUnavailable):
            await one.ledger.execute(CALL, tool)
        while not one.ledger._failed:
            await asyncio.sleep(0.01)

    assert tool.effects == []
    one.tick()
    assert rows(store) == [(1, 'approved')]


async def test_closing_records_an_outcome_that_could_not_be_recorded_before(store, process, monkeypatch):
    one = process()
    with monkeypatch.context() as broken:

        async def pay():
            away(store, broken, 'move', is_done=False, times=10**6)
            return 'paid'

        assert await one.ledger.execute(CALL, pay) == 'paid'
    assert rows(store) == [(1, 'executing')]

    one.ledger.close()

    assert rows(store) == [(1, 'done')]


async def test_a_call_begins_again_after_what_was_written_late_is_kept(store, process, monkeypatch):
    """A late write that is repeated must not free the next execution of the same worker."""
    monkeypatch.setattr(ledger, 'PATIENCE_S', 0.05)
    one, other, tool = process(), process(), Tool()
    with monkeypatch.context() as broken:
        away(store, broken, 'move', is_done=True, times=10**6)
        with pytest.raises(InboxUnavailable):
            await one.ledger.execute(CALL, tool)
        while not one.ledger._failed:
            await asyncio.sleep(0.01)
    tool.may_end.clear()

    second = asyncio.create_task(one.ledger.execute(CALL, tool))
    await asyncio.sleep(0.05)
    assert tool.effects == []
    one.tick()
    await tool.began.wait()
    one.tick()
    third = asyncio.create_task(other.ledger.execute(CALL, tool))
    await asyncio.sleep(0.05)
    tool.may_end.set()

    assert (await second, await third) == ('paid', Kept('done', value='paid'))
    assert len(tool.effects) == 1


async def test_a_result_is_kept_as_soon_as_the_store_is_back(store, process, monkeypatch):
    one, tool = process(), Tool()
    running = await begun(one, tool)
    with monkeypatch.context() as broken:
        away(store, broken, 'move', is_done=False, times=10**6)
        tool.may_end.set()
        assert await running == 'paid'
        with pytest.raises(InboxUnavailable):
            one.tick()
    assert rows(store) == [(1, 'executing')]

    one.tick()
    one.tick()

    assert rows(store) == [(1, 'done')]


async def test_a_result_that_was_kept_without_an_answer_is_written_once(store, process, monkeypatch, caplog):
    one, tool = process(), Tool()
    running = await begun(one, tool)
    with monkeypatch.context() as broken:
        away(store, broken, 'move', is_done=True, times=1)
        tool.may_end.set()
        await running
    one.tick()

    assert rows(store) == [(1, 'done')]
    assert caplog.text == ''
    assert await one.ledger.execute(CALL, tool) == Kept('done', value='paid')


async def test_a_heartbeat_runs_by_itself_and_goes_on_after_the_store_was_away(store, monkeypatch, caplog):
    away(store, monkeypatch, 'beat', is_done=False, times=3)
    with Ledger(store, lease_s=0.05) as one:
        await one.execute(CALL, Tool())
        one.start()
        async with asyncio.timeout(20):
            while not store.beats().get(one.worker_id, 0) > 2:
                await asyncio.sleep(0.01)

    assert [each.levelno for each in caplog.records].count(logging.ERROR) == 1
    one.start()
    assert one._thread is not None
    assert not one._thread.is_alive()


async def test_a_closed_ledger_runs_nothing(store):
    one = Ledger(store)
    one.close()

    with pytest.raises(InboxError, match='closed'):
        await one.execute(CALL, Tool())


async def test_a_ledger_that_is_closed_while_a_tool_executes_leaves_it_to_others(store, process):
    one, tool = process(), Tool()
    running = await begun(one, tool)
    one.ledger.close()
    tool.may_end.set()

    assert await running == 'paid'
    assert rows(store) == [(1, 'executing')]


async def test_an_event_loop_that_has_ended_does_not_hinder_the_settling(store, process):
    one = process()

    def end():
        async def run():
            with pytest.raises(asyncio.CancelledError):
                await one.ledger.execute(CALL, Tool(error=asyncio.CancelledError()))

        asyncio.run(run())

    gate = threading.Event()
    thread = threading.Thread(target=end)
    original = store.move
    store.move = lambda row, to, **keywords: (to != 'unknown' or gate.wait(10)) and original(row, to, **keywords)
    thread.start()
    thread.join(20)
    gate.set()
    one.ledger._worker.close(10)

    assert rows(store) == [(1, 'unknown')]


async def test_two_workers_race_on_both_databases(make_store):
    tool, numbers = Tool(), count()
    ledgers = [Ledger(make_store(), beats=False) for _ in range(2)]
    for _ in range(20):
        call = CALL._replace(identity=['race', next(numbers)])
        results = await asyncio.gather(*(each.execute(call, tool) for each in ledgers))
        assert sorted(str(each) for each in results) == sorted(['paid', str(Kept('done', value='paid'))])
    assert len(tool.effects) == len(set(tool.effects)) == 20
    for each in ledgers:
        each.close()


NAMED = {'tool_call_id': '1', 'session_id': 'talk'}


async def executed(ledger, func, controller=None, metadata=NAMED, **args):
    controller = controller or ApprovalController(ui=RecordingUI())
    return await execute_tool(func, 'pay', args, controller, metadata, default='required', ledger=ledger)


@pytest.mark.parametrize('policy', [None, {'pay': {'approval': 'none'}}])
async def test_a_function_without_a_framework_is_run_once_for_each_call(process, policy):
    effects = []

    def pay(to):
        effects.append(to)
        return {'to': to}

    controller = ApprovalController(ui=RecordingUI(), policy=policy)
    for _ in range(2):
        assert await executed(process().ledger, pay, controller, to='ada') == {'to': 'ada'}
    await executed(process().ledger, pay, controller, NAMED | {'tool_call_id': '2'}, to='ada')
    await executed(process().ledger, pay, controller, {'tool_call_id': '2', 'run_id': 'run'}, to='ada')

    assert effects == ['ada'] * 3


async def test_function_that_raised_is_not_run_again(process):
    def pay(to):
        raise OSError('away')

    with pytest.raises(OSError, match='away'):
        await executed(process().ledger, pay, to='ada')
    with pytest.raises(ExecutionNotRepeated, match=r"'pay' was not run again: The call failed \(OSError\)") as caught:
        await executed(process().ledger, pay, to='ada')
    assert (caught.value.tool_name, caught.value.state) == ('pay', 'failed')


async def test_a_function_whose_result_was_not_kept_returns_what_is_known(process):
    await executed(process().ledger, lambda to: object(), to='ada')

    kept = await executed(process().ledger, lambda to: object(), to='ada')

    assert kept.startswith('The call was executed, but its result has no JSON form')


async def test_a_function_whose_approver_may_not_approve_any_more_is_not_run(process):
    allowed = {'ada'}

    def answer(request):
        allowed.clear()
        return ApprovalDecision(approved=True, decided_by=('ada',))

    memory = ApprovalMemory(is_allowed=lambda approver: approver in allowed)
    controller = ApprovalController(ui=RecordingUI(answer), memory=memory)

    for _ in range(2):
        with pytest.raises(ApprovalDenied, match='may no longer approve'):
            await executed(process().ledger, lambda to: 1, controller, to='ada')
        allowed.add('ada')


@pytest.mark.parametrize('metadata', [None, {'tool_call_id': '1'}, {'run_id': 'run'}, NAMED | {'tool_call_id': 7}])
async def test_a_call_without_a_name_is_refused(process, metadata):
    with pytest.raises(ValueError, match='with a ledger, `context_metadata` needs `tool_call_id`'):
        await executed(process().ledger, lambda to: 1, None, metadata, to='ada')
