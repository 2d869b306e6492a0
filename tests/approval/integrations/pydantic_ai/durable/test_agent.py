"""A durable run: what becomes of its calls while it waits in the store, and no process waits for it."""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import threading
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, TextContent, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.calls import denied_because
from tool_approval.durable import Done, DurableStore, RunRow, open_store
from tool_approval.inbox import AlreadySettled, ApproverRule, Inbox, InboxUI, InvalidAnswer, NotAnApprover
from tool_approval.inbox.errors import InboxUnavailable, InboxUntrusted
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset
from tool_approval.storage import FileApprovalStore

from tests.approval.durable.parts import SOON, change
from tests.approval.inbox.parts import ADA, BOB, NO, YES, answer, soon
from tests.approval.parts import ListSink
from tests.loop.scripted import call, returns
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalError,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalPresentation,
    ApprovalResult,
    AuditError,
)

pytest.importorskip('dbos', reason='the development environment has DBOS')

from dbos import DBOS
from pydantic_ai.durable_exec.dbos import DBOSDurability
from sqlalchemy.exc import DBAPIError
from tool_approval.durable.engine import DBOSEngine
from tool_approval.integrations.pydantic_ai.durable import DurableAgent, DurableRunFailed
from tool_approval.integrations.pydantic_ai.durable.segment import DurableRunCancelled, Segment
from tool_approval.integrations.pydantic_ai.durable.state import RunState

PAY = call('pay', '1', amount=10)


def telling(*responses):
    """A model that gives one response after the other, and in the end tells what became of all calls."""

    def respond(messages, info):
        done = sum(isinstance(message, ModelResponse) for message in messages)
        told = [TextPart(json.dumps(returns(messages)))]
        return ModelResponse(parts=list(responses[done]) if done < len(responses) else told)

    return FunctionModel(respond)


class Bot:
    """An agent with a tool that pays."""

    def __init__(self, *responses, description='Pay an invoice.', name='bot', **keywords):
        self.paid = []
        self.keywords = {'model': telling(*responses), 'name': name, **keywords}
        self.agent = Agent(**self.keywords)

        @self.agent.tool_plain(name='pay', requires_approval=True, description=description)
        def pay(amount: int) -> str:
            self.paid.append(amount)
            return f'paid {amount}'

    def durable(self, url, controller=None, **keywords):
        approvals = Approvals(controller, default='none', external=keywords.pop('external', None))
        own = {'toolsets': self.agent.toolsets, 'tools': (), 'capabilities': [DBOSDurability(), approvals]}
        return DurableAgent(Agent(**{**self.keywords, **own}), store=url, **keywords)


@asynccontextmanager
async def working(durable):
    async with asyncio.timeout(60), durable.worker(polling=0.05, lease=0.5):
        yield


@pytest.fixture
def memory(tmp_path):
    """A memory that outlives its process."""
    return ApprovalMemory(FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json'))


ALWAYS = ApprovalDecision(approved=True, remember='always')


async def park(durable, inbox, count=1, **start):
    """Start a run and leave it when it waits, so that no process is left. The open entries."""
    async with working(durable):
        await durable.start('go', run_id='run', **start)
        return await soon(inbox, count)


async def finish(durable, run_id='run'):
    """The calls of a run and what the model was given for them, once it has ended."""
    async with working(durable):
        return json.loads(await durable.get(run_id).result())


async def answered(durable, inbox, *decisions, by=ADA):
    """Run, and give these answers, each as soon as its question is there. What the model was given."""
    async with working(durable):
        run = await durable.start('go', run_id='run')
        for decision in decisions:
            [entry] = await soon(inbox)
            await answer(inbox, entry, decision, by=by)
        return json.loads(await run.result())


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
def test_an_approved_call_executes_once_and_its_run_ends(kind, url, request):
    if kind == 'postgres':
        url = request.getfixturevalue('postgres_url')
    bot, sink = Bot([PAY]), ListSink()
    controller = ApprovalController(audit=sink)

    with Inbox(open_store(url).inbox_store) as inbox:
        told = asyncio.run(answered(bot.durable(url, controller), inbox, YES))

    assert told == {'1': ['paid 10', 'success']}
    assert bot.paid == [10]
    assert [(entry['decided_by'], entry['approved']) for entry in sink.decisions()] == [(['ada'], True)]
    assert sink.outcomes() == ['executed']


def over(url, *, policy=None, memory=None, **ui):
    """A controller whose questions are in the inbox of the store."""
    return ApprovalController(ui=InboxUI(Inbox(open_store(url).inbox_store), **ui), policy=policy, memory=memory)


NOBODY = {'pay': ApproverRule()}
BOB_ALONE = {'pay': ApproverRule(users=frozenset({'bob'}))}
OPS = {'pay': ApproverRule(groups=frozenset({'ops'}))}
BLOCKED, FREE = {'pay': {'approval': 'blocked'}}, {'pay': {'approval': 'none'}}
PAID = ['paid 10', 'success']
LATE = 'No approver answered within 0.5 seconds, so the call was denied.'


@pytest.mark.parametrize(
    ('options', 'decisions', 'told'),
    [
        pytest.param({}, [NO], [denied_because('Not now.'), 'denied'], id='denied with a note'),
        pytest.param({'timeout': 0.5}, [], [LATE, 'denied'], id='the deadline has passed'),
        pytest.param({'approvers': OPS}, [YES], PAID, id='an approver whom the UI names'),
        pytest.param(
            {'approvers': NOBODY},
            [],
            ["No approver is listed for 'pay', so the call was denied.", 'denied'],
            id='no approver, not asked',
        ),
        pytest.param({'policy': FREE}, [], PAID, id='no approval needed, never waits'),
    ],
)
def test_a_call_is_decided_by_rules_deadline_and_approvers(options, decisions, told, url, inbox):
    bot = Bot([PAY])

    given = asyncio.run(answered(bot.durable(url, over(url, **options)), inbox, *decisions, by=BOB))

    assert given == {'1': told}
    assert bot.paid == ([10] if told == PAID else [])


def test_of_two_answers_at_once_one_counts(url, inbox):
    bot = Bot([PAY])

    async def main():
        [entry] = await park(bot.durable(url), inbox)
        with Inbox(open_store(url).inbox_store) as other:
            said = await asyncio.gather(
                answer(inbox, entry, YES), answer(other, entry, NO, BOB), return_exceptions=True
            )
        [refused] = [each for each in said if isinstance(each, AlreadySettled)]
        return refused.state, await finish(bot.durable(url))

    state, told = asyncio.run(main())
    assert told == {'1': ['paid 10', 'success'] if state == 'approved' else [denied_because('Not now.'), 'denied']}
    assert bot.paid == ([10] if state == 'approved' else [])


def test_several_calls_and_two_rounds_are_answered(url, inbox):
    bot = Bot([PAY, call('pay', '2', amount=20)], [call('pay', '3', amount=30)])

    async def main():
        entries = await park(bot.durable(url), inbox, 2)
        for entry in entries:
            await answer(inbox, entry, YES if entry.request.args['amount'] == 10 else NO)
        async with working(bot.durable(url)):
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            return json.loads(await bot.durable(url).get('run').result())

    assert asyncio.run(main()) == {
        '1': ['paid 10', 'success'],
        '2': [denied_because('Not now.'), 'denied'],
        '3': ['paid 30', 'success'],
    }
    assert bot.paid == [10, 30]


def test_the_run_waits_until_all_its_questions_are_answered(url, inbox):
    bot = Bot([PAY, call('pay', '2', amount=20)])

    async def main():
        first, second = await park(bot.durable(url), inbox, 2)
        await answer(inbox, first)
        durable = bot.durable(url)
        async with working(durable):
            await asyncio.sleep(1)
            assert (await durable.get('run').status()).status == 'waiting'
            assert bot.paid == []
            await answer(inbox, second)
            await durable.get('run').result()

    asyncio.run(main())
    assert sorted(bot.paid) == [10, 20]


def test_an_answer_after_the_deadline_does_not_count_though_no_worker_was_there_to_end_it(url, inbox):
    bot = Bot([PAY])

    async def main():
        durable = bot.durable(url, over(url, timeout=1.5))
        [entry] = await park(durable, inbox)
        await asyncio.sleep(1.6)
        with pytest.raises(AlreadySettled, match=r'expired .* an answer after the deadline does not count'):
            await answer(inbox, entry)
        return await inbox.history(), await finish(durable)

    [kept], told = asyncio.run(main())
    assert (kept.state, kept.answer) == ('expired', None)
    assert told['1'] == [LATE.replace('0.5', '1.5'), 'denied']
    assert bot.paid == []


@pytest.mark.parametrize('ahead', [timedelta(days=-400), timedelta(days=400)])
def test_the_clock_of_a_worker_moves_no_deadline(ahead, url, inbox, monkeypatch):
    at = datetime.now(UTC) + ahead
    for module in ('segment', 'agent'):
        monkeypatch.setattr(f'tool_approval.integrations.pydantic_ai.durable.{module}.now', lambda: at)
    bot = Bot([PAY])

    async def main():
        [entry] = await park(bot.durable(url, over(url, timeout=60, now=lambda: at)), inbox)
        left = entry.content.expires_at - datetime.now(UTC)
        await answer(inbox, entry)
        return left, await finish(bot.durable(url))

    left, told = asyncio.run(main())
    assert timedelta(seconds=30) < left <= timedelta(seconds=60)
    assert told == {'1': PAID}


def test_the_approvers_arguments_are_those_that_run(url, inbox):
    bot = Bot([PAY])
    changed = ApprovalDecision(approved=True, override_args={'amount': 5})

    told = asyncio.run(answered(bot.durable(url), inbox, changed))

    assert told['1'][0].startswith('paid 5\n\n[The approver changed the arguments')
    assert bot.paid == [5]


def test_remembered_approval_is_not_asked_again(url, inbox, memory):
    bot = Bot([PAY], [call('pay', '2', amount=10)])

    told = asyncio.run(answered(bot.durable(url, ApprovalController(memory=memory)), inbox, ALWAYS))

    assert told == {'1': ['paid 10', 'success'], '2': ['paid 10', 'success']}


def test_the_approvals_of_the_agent_decide_in_a_durable_run(url, inbox):
    """Its rules, its default and its session are those of the object that guards the agent everywhere else."""
    done = []

    def note(text: str) -> str:
        done.append(text)
        return text

    async def main():
        rules = {'free': {'approval': 'none'}, 'never': {'approval': 'blocked'}}
        tools = [Tool(note, name=name) for name in ('free', 'never', 'other')]
        model = telling([call(name, str(n), text=name) for n, name in enumerate(('free', 'never', 'other'))])
        approvals = Approvals(rules, session='desk')
        durable = DurableAgent(
            Agent(model, name='bot', tools=tools, capabilities=[DBOSDurability(), approvals]), store=url
        )
        async with working(durable):
            run = await durable.start('go')
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            return entry, json.loads(await run.result())

    entry, told = asyncio.run(main())

    assert (entry.request.tool_name, entry.request.session_id) == ('other', 'desk')
    assert [outcome for _, outcome in told.values()] == ['success', 'failed', 'success']
    assert done == ['free', 'other']


def test_a_remembered_approval_that_was_revoked_meanwhile_is_asked_again(url, inbox, memory):
    first, second = Bot([PAY]), Bot([PAY, call('pay', '2', amount=20)])

    async def main():
        await answered(first.durable(url, ApprovalController(memory=memory)), inbox, ALWAYS)
        durable = second.durable(url, ApprovalController(memory=memory))
        async with working(durable):
            run = await durable.start('go', run_id='second')
            [entry] = await soon(inbox)
            assert entry.request.args == {'amount': 20}
            [remembered] = memory.list_approvals()
            memory.revoke(remembered.id)
            await answer(inbox, entry)
            [entry] = await soon(inbox)
            assert entry.request.args == {'amount': 10}
            await answer(inbox, entry, NO)
            return json.loads(await run.result())

    assert asyncio.run(main()) == {'1': [denied_because('Not now.'), 'denied'], '2': ['paid 20', 'success']}


GONE = "The approver of this call may no longer approve 'pay', so the call was not run."


ANSWERS = {
    'as it was': (YES, {}, None, PAID),
    'blocked': (YES, {'policy': BLOCKED}, None, ["The tool 'pay' is blocked by policy.", 'denied']),
    'denied, and free by now': (NO, {'policy': FREE}, None, [denied_because('Not now.'), 'denied']),
    'the approver is no longer listed': (YES, {'approvers': BOB_ALONE}, None, [GONE, 'denied']),
    'nobody is listed any more': (YES, {'approvers': NOBODY}, None, [GONE, 'denied']),
    'the request cannot be read': (
        YES,
        {},
        "content = '{'",
        ['The stored request cannot be read, so the call was denied.', 'denied'],
    ),
    'the request was changed': (
        YES,
        {},
        """content = replace(content, '"amount":10', '"amount":99')""",
        ['The answer did not match the request, so the call was denied.', 'denied'],
    ),
}


@pytest.mark.parametrize(('decision', 'options', 'changed', 'told'), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_checked_again_by_the_worker_that_resumes(decision, options, changed, told, url, inbox):
    before, bot = Bot([PAY]), Bot([PAY])

    async def main():
        [entry] = await park(before.durable(url), inbox)
        await answer(inbox, entry, decision, by=ADA)
        if changed:
            store = open_store(url)
            change(store, f'UPDATE requests SET {changed}')
            store.close()
        return await finish(bot.durable(url, over(url, **options)))

    assert asyncio.run(main()) == {'1': told}
    assert (before.paid, bot.paid) == ([], [10] if told == PAID else [])


def test_what_who_is_no_longer_listed_wanted_remembered_is_not(url, inbox, memory):
    bot = Bot([PAY])

    async def main():
        [entry] = await park(bot.durable(url, ApprovalController(memory=memory)), inbox)
        await answer(inbox, entry, ALWAYS, by=ADA)
        return await finish(bot.durable(url, over(url, approvers=BOB_ALONE, memory=memory)))

    assert asyncio.run(main())['1'][1] != 'success'
    assert bot.paid == []
    assert memory.list_approvals() == []


LEADS = {'leads': {'users': ['ada', 'bob'], 'count': 2}}


def by_leads(url, *, tool='pay', **leads):
    policy = ApprovalPolicy({tool: {'approvers': 'leads'}}, approvers={'leads': {**LEADS['leads'], **leads}})
    return over(url, policy=policy)


def test_a_vote_outlives_the_process_and_the_others_see_it(url, inbox):
    bot = Bot([PAY])

    async def main():
        [first] = await park(bot.durable(url, by_leads(url)), inbox)
        await answer(inbox, first, by=ADA)
        async with working(bot.durable(url, by_leads(url))):
            [second] = await soon(inbox)
        assert (bot.paid, first.request.votes.agreed, second.request.votes.agreed) == ([], (), ('ada',))
        assert second.request.votes.since == first.posted_at
        with pytest.raises(NotAnApprover, match='another person must agree too'):
            await answer(inbox, second, by=ADA)
        await answer(inbox, second, by=BOB)
        return await finish(bot.durable(url, by_leads(url)))

    assert asyncio.run(main()) == {'1': ['paid 10', 'success']}
    assert bot.paid == [10]


def test_who_may_answer_a_parked_request_after_a_time_is_notified(url, inbox):
    later = {'zoe': {'users': ['zoe']}}
    leads = {'leads': {**LEADS['leads'], 'escalate': {'after': '30m', 'to': 'zoe'}}}
    policy = ApprovalPolicy({'pay': {'approvers': 'leads'}}, approvers={**leads, **later})
    passed = [timedelta()]

    async def main():
        [entry] = await park(Bot([PAY]).durable(url, over(url, policy=policy)), inbox)
        page = Inbox(open_store(url).inbox_store, now=lambda: datetime.now(UTC) + passed[0])
        changes = page.changes()
        try:
            assert await anext(changes) is None
            passed[0] += timedelta(minutes=30)
            async with asyncio.timeout(20):
                while entry.id not in (await anext(changes) or ()):
                    pass
        finally:
            await changes.aclose()
            page.close()

    asyncio.run(main())


def test_of_several_people_one_denial_decides_and_a_change_starts_over(url, inbox):
    bot = Bot([PAY, call('pay', '2', amount=20)])
    changed = ApprovalDecision(approved=True, override_args={'amount': 15})

    async def main():
        entries = await park(bot.durable(url, by_leads(url)), inbox, 2)
        ten, twenty = sorted(entries, key=lambda each: each.request.args['amount'])
        await answer(inbox, twenty, NO, by=ADA)
        await answer(inbox, ten, by=ADA)
        async with working(bot.durable(url, by_leads(url))):
            [second] = await soon(inbox)
            await answer(inbox, second, changed, by=BOB)
            [third] = await soon(inbox)
            assert (third.request.args, third.request.votes.agreed) == ({'amount': 15}, ('bob',))
            await answer(inbox, third, by=ADA)
        return await finish(bot.durable(url, by_leads(url)))

    told = asyncio.run(main())
    assert (bot.paid, told['1'][0].splitlines()[0], told['2'][1] != 'success') == ([15], 'paid 15', True)


def test_of_several_people_who_was_removed_has_no_vote_when_the_run_goes_on(url, inbox):
    bot = Bot([PAY])

    async def main():
        [first] = await park(bot.durable(url, by_leads(url)), inbox)
        await answer(inbox, first, by=ADA)
        return await finish(bot.durable(url, by_leads(url, users=['bob', 'eve'])))

    assert asyncio.run(main())['1'][1] != 'success'
    assert bot.paid == []


def test_a_call_whose_tool_has_changed_is_asked_again(url, inbox):
    before, after = Bot([PAY]), Bot([PAY], description='Pay an invoice, twice.')

    async def main():
        [first] = await park(before.durable(url), inbox)
        await answer(inbox, first)
        durable = after.durable(url)
        async with working(durable):
            [second] = await soon(inbox)
            assert second.id != first.id
            assert after.paid == []
            await answer(inbox, second)
            return json.loads(await durable.get('run').result())

    assert asyncio.run(main()) == {'1': ['paid 10', 'success']}
    assert (before.paid, after.paid) == ([], [10])


def test_a_denial_holds_though_the_tool_of_another_call_has_changed(url, inbox):
    def make(description):
        bot = Bot([PAY, call('tidy', '2')])

        @bot.agent.tool_plain(requires_approval=True, description=description)
        def tidy() -> str:
            return 'tidied'

        return bot

    async def main():
        for entry in await park(make('Tidy up.').durable(url), inbox, 2):
            await answer(inbox, entry, NO if entry.request.tool_name == 'pay' else YES)
        bot = make('Delete everything.')
        durable = bot.durable(url, ApprovalController(policy={'pay': {'approval': 'none'}}))
        async with working(durable):
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            told = json.loads(await durable.get('run').result())
        return entry.request.tool_name, bot.paid, told

    told = {'1': [denied_because('Not now.'), 'denied'], '2': ['tidied', 'success']}
    assert asyncio.run(main()) == ('tidy', [], told)


def test_an_external_call_beside_a_changed_tool_keeps_its_answer(url, inbox):
    from pydantic_ai import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    ask = ToolDefinition(name='ask', parameters_json_schema={'type': 'object'})

    def make(description):
        bot = Bot([call('ask', '1'), call('tidy', '2')], toolsets=[ExternalToolset([ask])])

        @bot.agent.tool_plain(requires_approval=True, description=description)
        def tidy() -> str:
            return 'tidied'

        controller = ApprovalController(policy={'ask': {'approval': 'required'}})
        return bot.durable(url, controller, external={'ask': lambda: 'told'})

    async def main():
        for entry in await park(make('Tidy up.'), inbox, 2):
            await answer(inbox, entry)
        durable = make('Delete everything.')
        async with working(durable):
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            return entry.request.tool_name, json.loads(await durable.get('run').result())

    assert asyncio.run(main()) == ('tidy', {'1': ['told', 'success'], '2': ['tidied', 'success']})


def test_a_toolset_under_approval_and_its_changed_tool(url, inbox):
    def make(description):
        controller, written = ApprovalController(), []
        toolset = FunctionToolset(id='files')

        @toolset.tool_plain(description=description)
        def write(path: str) -> str:
            written.append(path)
            return 'written'

        bot = Bot([call('write', '1', path='a')], toolsets=[ApprovalToolset(toolset, controller)])
        return bot.durable(url, controller), written

    async def main():
        durable, before = make('Write.')
        [entry] = await park(durable, inbox)
        await answer(inbox, entry)
        durable, after = make('Write more.')
        async with working(durable):
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            return json.loads(await durable.get('run').result()), before, after

    assert asyncio.run(main()) == ({'1': ['written', 'success']}, [], ['a'])


@pytest.mark.parametrize(
    ('verdict', 'told', 'executions'),
    [
        (ApprovalResult.needs_approval(), ('written', 'success'), 1),
        (ApprovalResult.pre_approved(), ('written', 'success'), 0),
        (ApprovalResult.blocked('Not here.'), ('Not here.', 'failed'), 0),
    ],
)
def test_a_rule_frees_a_call_that_still_executes_at_most_once_unless_its_check_frees_it(url, verdict, told, executions):
    def write(path: str) -> str:
        return 'written'

    write.needs_approval = lambda name, args: verdict
    bot = Bot([call('write', '1', path='a')], tools=[write])
    durable = bot.durable(url, ApprovalController(policy={'write': {'approval': 'none'}}))

    async def main():
        async with working(durable):
            run = await durable.start('go', run_id='run')
            return json.loads(await run.result())

    assert asyncio.run(main()) == {'1': list(told)}
    with closing(open_store(url)) as store:
        assert len(store.executions_of('run')) == executions


def test_a_response_is_the_result_of_any_call_and_no_tool_runs(url, inbox):
    from pydantic_ai import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    ask = ToolDefinition(
        name='ask', parameters_json_schema={'type': 'object', 'properties': {'n': {'type': 'integer'}}}
    )
    policy = {'pay': {'answers': ['respond']}, 'ask': {'approval': 'required'}}
    bot, sink = Bot([PAY, call('ask', '2', n=1)], toolsets=[ExternalToolset([ask])]), ListSink()
    durable = bot.durable(url, ApprovalController(policy=policy, audit=sink))

    async def main():
        for entry in await park(durable, inbox, 2):
            with pytest.raises(InvalidAnswer, match='does not allow the answer `approve`'):
                await answer(inbox, entry)
            said = {'kind': 'tool-denied', 'by': entry.request.tool_name}
            await answer(inbox, entry, ApprovalDecision(approved=False, response=said))
        return await finish(durable)

    told = asyncio.run(main())
    assert told == {
        '1': [{'kind': 'tool-denied', 'by': 'pay'}, 'success'],
        '2': [{'kind': 'tool-denied', 'by': 'ask'}, 'success'],
    }
    assert bot.paid == []
    assert sink.outcomes() == ['responded', 'responded']


def test_external_calls_are_decided_and_carried_out(url, inbox):
    from pydantic_ai import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    def tool(name):
        return ToolDefinition(
            name=name, parameters_json_schema={'type': 'object', 'properties': {'n': {'type': 'integer'}}}
        )

    tools = ExternalToolset([tool(each) for each in ('ask', 'free', 'lost', 'blocked')])
    responses = [call(name, name, n=1) for name in ('ask', 'free', 'lost', 'blocked')]
    bot = Bot([*responses, PAY], toolsets=[tools])
    done = []

    def carry_out(n):
        done.append(n)
        return f'{n} done'

    controller = ApprovalController(policy={'ask': {'approval': 'required'}, 'free': {'approval': 'none'}})
    later = ApprovalController(policy={'blocked': {'approval': 'blocked'}})
    external = dict.fromkeys(('ask', 'free', 'blocked'), carry_out)

    async def main():
        entries = await park(bot.durable(url, controller, external=external), inbox, 2)
        for entry in entries:
            changed = {'n': 2} if entry.request.tool_name == 'ask' else None
            await answer(inbox, entry, ApprovalDecision(approved=True, override_args=changed))
        return await finish(bot.durable(url, later, external=external))

    told = asyncio.run(main())
    assert told['ask'][0] == '2 done'
    assert told['free'] == ['1 done', 'success']
    assert 'No function is configured for external calls of' in told['lost'][0]
    assert 'blocked' in told['blocked'][0]
    assert told['1'] == ['paid 10', 'success']
    assert sorted(done) == [1, 2]


def test_dependencies_are_made_anew_in_each_segment(url, inbox):
    class Deps(BaseModel):
        customer: str
        session_id: str | None = None

    made = []

    def make(customer):
        made.append(customer)
        return Deps(customer=customer)

    bot = Bot([call('charge', '1')], deps_type=Deps)

    @bot.agent.tool(requires_approval=True)
    def charge(ctx: RunContext[Deps]) -> str:
        return f'charged {ctx.deps.customer}'

    async def main():
        durable = bot.durable(url, deps={'customer': make})
        [entry] = await park(durable, inbox, deps=('customer', {'customer': 'c42'}))
        await answer(inbox, entry)
        return await finish(bot.durable(url, deps={'customer': make}))

    assert asyncio.run(main()) == {'1': ['charged c42', 'success']}
    assert made == ['c42', 'c42']


@pytest.mark.parametrize(
    ('prompt', 'options', 'problem'),
    [
        ('go', {'run_id': 'a\0b'}, 'cannot be printed'),
        ('go', {'run_id': 'cafe\u0301'}, 'cannot be printed'),
        ('go', {'run_id': 'x' * 201}, 'more than 200 characters'),
        ('go', {'deps': ('customer', {'id': 1, 'client': object()})}, "'client' is of type object"),
        ('go', {'deps': ('other', {})}, "No factory of dependencies is named 'other'"),
        ([TextContent(content='go', metadata=object())], {}, '`prompt` has no JSON form'),
    ],
)
def test_a_run_that_cannot_be_kept_is_refused(prompt, options, problem, url):
    durable = Bot().durable(url, deps={'customer': dict})

    with pytest.raises(UserError, match=problem):
        asyncio.run(durable.start(prompt, **options))


def test_the_store_may_be_away_several_times_in_a_row(url, monkeypatch, caplog):
    monkeypatch.setattr('tool_approval.integrations.pydantic_ai.durable.agent.RETRY_S', 0.001)
    faults = [InboxUnavailable('inbox', 'away')] * 3

    async def use():
        if faults:
            raise faults.pop()
        return 'used'

    assert asyncio.run(Bot().durable(url).persistently(use)) == 'used'
    assert [each for each in caplog.messages if 'waits' in each] == [
        "A durable run of 'bot' waits: the inbox in inbox is unavailable: away"
    ]


def test_a_run_that_is_cancelled_asks_nothing_more(url, inbox):
    bot = Bot([PAY])

    async def main():
        durable = bot.durable(url)
        [entry] = await park(durable, inbox)
        assert await durable.get('run').cancel()
        assert not await durable.get('run').cancel()
        assert (await inbox.get(entry.id)).state == 'withdrawn'
        with pytest.raises(DurableRunFailed, match='cancelled'):
            await durable.get('run').result()

    asyncio.run(main())
    assert bot.paid == []


def test_a_run_that_was_started_twice_is_one(url, inbox):
    bot = Bot([PAY])

    async def main():
        durable = bot.durable(url)
        await durable.start('go', run_id='run')
        await durable.start('something else', run_id='run')
        return await answered(durable, inbox, YES)

    assert asyncio.run(main()) == {'1': ['paid 10', 'success']}
    assert bot.paid == [10]


def test_a_run_of_the_same_id_executes_after_its_store_was_removed(url, tmp_path):
    async def main():
        told = []
        for _ in range(2):
            durable = Bot().durable(url)
            async with working(durable):
                run = await durable.start('go', run_id='run')
                told.append(await run.result())
            durable.store.close()
            for each in (tmp_path / 'state').glob('inbox.sqlite*'):
                each.unlink()
        return told

    assert asyncio.run(main()) == ['{}', '{}']


@pytest.mark.parametrize(
    ('error', 'told'),
    [(ValueError('broken'), r'ValueError.*broken'), (asyncio.CancelledError(), 'CancelledError')],
    ids=['an error', 'a cancellation from inside'],
)
def test_an_error_of_a_tool_ends_its_run_as_its_result(error, told, url):
    bot = Bot([call('break', '1')])

    @bot.agent.tool_plain(name='break')
    async def break_() -> str:
        raise error

    async def main():
        durable = bot.durable(url)
        async with working(durable):
            run = await durable.start('go')
            with pytest.raises(DurableRunFailed, match=told):
                await run.result()
            assert (await run.status()).status == 'failed'

    asyncio.run(main())


def test_half_characters_end_no_run(url, inbox):
    bot = Bot([call('list', 'l')], [PAY])

    @bot.agent.tool_plain(name='list')
    def list_() -> str:
        return 'a file \udcff, a face \U0001f600'

    told = asyncio.run(answered(bot.durable(url), inbox, YES))

    assert told == {'l': ['a file ?, a face \U0001f600', 'success'], '1': ['paid 10', 'success']}
    assert bot.paid == [10]


def change_state(url, state):
    store = open_store(url)
    change(store, "UPDATE runs SET state = ? WHERE id = 'run'", state)
    store.close()


async def run_another(durable, inbox):
    """Take another run of this worker to its end."""
    run = await durable.start('go', run_id='other')
    [entry] = await soon(inbox)
    await answer(inbox, entry)
    await run.result()


@pytest.mark.parametrize('state', ['{"version": 2, "history": "x"}', '{', '[]'])
def test_a_corrupt_run_fails_alone(state, url, inbox):
    bot = Bot([PAY])

    async def main():
        [entry] = await park(bot.durable(url), inbox)
        change_state(url, state)
        await answer(inbox, entry)
        durable = bot.durable(url)
        async with working(durable):
            with pytest.raises(DurableRunFailed, match='cannot be read'):
                await durable.get('run').result()
            await run_another(durable, inbox)

    asyncio.run(main())
    assert bot.paid == [10]


def test_a_damaged_time_of_a_run_holds_up_neither_it_nor_others(url, inbox):
    bot = Bot([PAY])

    async def main():
        durable = bot.durable(url)
        await durable.start('go', run_id='run')
        change(durable.store, "UPDATE runs SET created_at = 'yesterday' WHERE id = 'run'")
        async with working(durable):
            for entry in await soon(inbox):
                await answer(inbox, entry, NO)
            await durable.get('run').result()
            await run_another(durable, inbox)

    asyncio.run(main())
    assert bot.paid == [10]


@pytest.mark.parametrize(
    ('code', 'raised'), [(sqlite3.SQLITE_FULL, InboxUnavailable), (sqlite3.SQLITE_CORRUPT, DBAPIError)]
)
def test_a_worker_that_cannot_start_now_can_start_later(code, raised, url, inbox, monkeypatch):
    def refused():
        error = sqlite3.OperationalError('no')
        error.sqlite_errorcode = code
        raise DBAPIError('UPDATE', {}, error)

    bot = Bot([PAY])
    with monkeypatch.context() as patched:
        patched.setattr(DBOS, 'launch', refused)
        with pytest.raises(raised):
            asyncio.run(park(bot.durable(url), inbox))

    assert asyncio.run(answered(bot.durable(url), inbox, YES)) == {'1': PAID}


def test_the_run_of_another_version_waits_for_a_worker_that_knows_it(url, inbox, caplog):
    bot = Bot([PAY])

    async def main():
        [entry] = await park(bot.durable(url), inbox)
        await answer(inbox, entry)
        store = open_store(url)
        kept = store.get_run('run').state
        store.close()
        change_state(url, json.dumps({**json.loads(kept), 'version': 3, 'new': True}))
        durable = bot.durable(url)
        async with working(durable):
            await asyncio.sleep(1)
            assert (await durable.get('run').status()).status == 'waiting'
        change_state(url, kept)
        return await finish(bot.durable(url))

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(main()) == {'1': ['paid 10', 'success']}
    assert [each.getMessage() for each in caplog.records if 'another version' in each.getMessage()] != []


async def cut_off(bot, url, inbox, **keywords):
    """Leave a run in the middle of its approved call, as a crash does."""
    durable = bot.durable(url, **keywords)
    async with working(durable):
        await durable.start('go', run_id='run')
        [entry] = await soon(inbox)
        await answer(inbox, entry)
        while not bot.paid:
            await asyncio.sleep(0.01)


class Hanging(Bot):
    """Its payment never ends, the first time."""

    def __init__(self):
        super().__init__([call('wire', '1', amount=10)])

        @self.agent.tool_plain(requires_approval=True)
        async def wire(amount: int) -> str:
            self.paid.append(amount)
            if len(self.paid) == 1:
                await asyncio.Event().wait()
            return f'wired {amount}'


@pytest.fixture
def at_once(monkeypatch):
    """A worker that is closed cuts off what it is running."""
    monkeypatch.setattr('tool_approval.durable.engine.GRACE_S', 0)


@pytest.mark.parametrize(
    ('decision', 'result', 'paid'),
    [
        (YES, 'wired 10', 2),
        (NO, 'ada decided not to run the call again.', 1),
    ],
)
def test_an_approver_decides_about_a_call_that_may_have_happened(decision, result, paid, url, inbox, at_once):
    bot = Hanging()

    async def main():
        await cut_off(bot, url, inbox)
        durable = bot.durable(url)
        async with working(durable):
            [entry] = await soon(inbox)
            assert (
                'The call may have happened. Approve to run the call again, or deny to give up on the call.'
                in entry.request.description
            )
            await answer(inbox, entry, decision)
            return json.loads(await durable.get('run').result())

    assert asyncio.run(main())['1'][0].endswith(result)
    assert len(bot.paid) == paid


async def both_agree(inbox):
    """Answer as Ada, and then as Bob. Who had agreed to each of the two questions."""
    agreed = []
    for by in (ADA, BOB):
        [entry] = await soon(inbox)
        agreed.append(entry.request.votes.agreed)
        await answer(inbox, entry, by=by)
    return agreed


def test_several_people_decide_whether_a_call_that_may_have_happened_runs_again(url, inbox, at_once):
    bot = Hanging()

    async def main():
        durable = bot.durable(url, by_leads(url, tool='wire'))
        async with working(durable):
            await durable.start('go', run_id='run')
            await both_agree(inbox)
            while not bot.paid:
                await asyncio.sleep(0.01)
        durable = bot.durable(url, by_leads(url, tool='wire'))
        async with working(durable):
            agreed = await both_agree(inbox)
            return json.loads(await durable.get('run').result()), agreed

    assert asyncio.run(main()) == ({'1': ['wired 10', 'success']}, [(), ('ada',)])
    assert len(bot.paid) == 2


def test_a_worker_that_was_frozen_during_a_call_withdraws_the_question_about_it(url, inbox, at_once):
    bot = Hanging()

    async def main():
        await cut_off(bot, url, inbox)
        durable = bot.durable(url)
        async with working(durable):
            [entry] = await soon(inbox)
            [row] = durable.store.executions_of('run')
            assert row.is_unsettled
            # What the worker that was taken for dead records when it goes on.
            assert durable.store.move(row, 'done', owner=row.owner, at=SOON, result='{"value": "wired late"}')
            with pytest.raises(AlreadySettled, match='withdrawn'):
                await answer(inbox, entry)
            return json.loads(await durable.get('run').result())

    assert asyncio.run(main()) == {'1': ['wired late', 'success']}
    assert len(bot.paid) == 1


@pytest.mark.parametrize(
    ('found', 'result', 'paid'), [(Done('it was wired'), 'it was wired', 1), ('not_done', 'wired 10', 2)]
)
def test_a_tool_may_find_out_what_became_of_its_call(found, result, paid, url, inbox, at_once):
    bot = Hanging()

    async def main():
        await cut_off(bot, url, inbox)
        durable = bot.durable(url, reconcile={'wire': lambda call: found})
        async with working(durable):
            return json.loads(await durable.get('run').result())

    assert asyncio.run(main()) == {'1': [result, 'success']}
    assert len(bot.paid) == paid


def test_a_call_that_may_have_happened_is_given_up_where_nobody_may_approve_it(url, inbox, at_once):
    bot = Hanging()

    async def main():
        await cut_off(bot, url, inbox)
        durable = bot.durable(url, over(url, approvers={'wire': ApproverRule()}))
        async with working(durable):
            return json.loads(await durable.get('run').result())

    assert asyncio.run(main())['1'][0].endswith('The call may have happened. The call was not run again.')
    assert len(bot.paid) == 1


@pytest.mark.parametrize('error', [SystemExit, KeyboardInterrupt])
def test_a_tool_that_exits_ends_its_run_and_no_other(error, url, inbox):
    bot = Bot([call('stop', '1')])

    @bot.agent.tool_plain(requires_approval=True)
    def stop() -> str:
        raise error

    async def main():
        durable = bot.durable(url)
        async with working(durable):
            for _ in range(2):
                run = await durable.start('go')
                [entry] = await soon(inbox)
                await answer(inbox, entry)
                with pytest.raises(DurableRunFailed, match=f'a tool raised {error.__name__}'):
                    await run.result()
                [row] = durable.store.executions_of(run.id)
                assert row.state == 'unknown'

    asyncio.run(main())


def test_a_worker_ends_when_its_process_is_asked_to(url):
    bot = Bot([PAY])
    controller = ApprovalController(policy={'pay': {'approval': 'none'}})
    durable = bot.durable(url, controller)
    asyncio.run(durable.start('go', run_id='run'))

    async def ended():
        await durable.get('run').result()
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=lambda: asyncio.run(ended()))
    thread.start()
    durable.run_worker()
    thread.join()

    assert bot.paid == [10]


def test_a_worker_in_which_nothing_can_run_any_more_ends_with_an_error(url, monkeypatch):
    durable = Bot([PAY]).durable(url)
    monkeypatch.setattr(DBOSEngine, 'is_broken', True)

    with pytest.raises(ApprovalError, match='event loop of durable runs has ended'):
        durable.run_worker()


def test_a_process_is_one_worker_of_an_agent(url):
    async def main():
        durable = Bot().durable(url)
        async with working(durable):
            with pytest.raises(ApprovalError, match='already a worker of this agent'):
                async with working(durable):
                    raise AssertionError

    asyncio.run(main())


def test_request_too_large_to_show_is_denied_without_failing_the_run(url, inbox):
    bot = Bot([call('note', '2', text='x' * 5_000_000), PAY])

    @bot.agent.tool_plain(requires_approval=True)
    def note(text: str) -> str:
        return 'noted'

    def present(request):
        return ApprovalPresentation(type='text', content='x' * 5_000_000)

    told = asyncio.run(answered(bot.durable(url, ApprovalController(presenters={'pay': present})), inbox))

    assert [told['1'][1], told['2'][1]] == ['denied', 'denied']
    assert told['1'][0].startswith('The inbox could not store the request')
    assert told['2'][0].startswith("The arguments of 'note' are invalid")
    assert bot.paid == []


def test_nothing_more_executes_once_a_run_is_cancelled(url):
    bot = Bot([call('stop', '1'), call('pay', '2', amount=10)])
    controller = ApprovalController(policy={'*': {'approval': 'none'}})
    durable = bot.durable(url, controller)

    @bot.agent.tool_plain(requires_approval=True, sequential=True)
    async def stop() -> str:
        await durable.get('run').cancel()
        return 'stopped'

    async def main():
        async with working(durable):
            run = await durable.start('go', run_id='run')
            with pytest.raises(DurableRunFailed, match='cancelled'):
                await run.result()
            await asyncio.sleep(0.5)

    asyncio.run(main())
    assert bot.paid == []


def test_a_worker_waits_for_a_store_that_is_away(url, inbox, monkeypatch):
    bot = Bot([PAY])
    get_run, failures = DurableStore.get_run, []

    def failing(self, run_id):
        if bot.paid or len(failures) == 2 or threading.current_thread().name != 'tool-approval-inbox':
            return get_run(self, run_id)
        failures.append(run_id)
        raise InboxUnavailable(self.place, 'gone')

    async def main():
        durable = bot.durable(url)
        [entry] = await park(durable, inbox)
        await answer(inbox, entry)
        monkeypatch.setattr(DurableStore, 'get_run', failing)
        return await finish(durable)

    assert asyncio.run(main()) == {'1': ['paid 10', 'success']}
    assert len(failures) == 2


@pytest.mark.parametrize('name', ['resume', 'requests_of', 'park', 'latest', 'move', 'finish'])
def test_a_worker_waits_until_a_person_has_mended_the_store(name, url, inbox, monkeypatch):
    bot = Bot([PAY])
    method, failures = getattr(DurableStore, name), []

    def failing(self, *args, **keywords):
        # The run's own worker alone: the sweep and the approver have threads of other names.
        if failures or threading.current_thread().name != 'tool-approval-inbox':
            return method(self, *args, **keywords)
        failures.append(name)
        raise InboxUntrusted(self.place, 'all may read it')

    monkeypatch.setattr(DurableStore, name, failing)

    assert asyncio.run(answered(bot.durable(url), inbox, YES)) == {'1': ['paid 10', 'success']}
    assert failures == [name]


def test_a_segment_that_is_over_is_not_run_again(url):
    bot = Bot([PAY])

    asyncio.run(bot.durable(url)._run_segment('run', 0))

    assert bot.paid == []


ROW = RunRow(id='run', agent='bot', state='', created_at=SOON, changed_at=SOON)


def once(action, row=ROW):
    """Do something in a segment whose run has this row in the store."""

    async def patiently(read):
        return read()

    durable = SimpleNamespace(
        engine=SimpleNamespace(apart=lambda action: action()),
        persistently=lambda action: action(),
        patiently=patiently,
        store=SimpleNamespace(get_run=lambda run_id: row),
    )
    return asyncio.run(Segment(durable, ROW, 0, RunState(history=[])).once(action))


@pytest.mark.parametrize('row', [None, replace(ROW, status='cancelled')], ids=['gone', 'cancelled'])
def test_a_run_that_was_cancelled_meanwhile_takes_no_further_step(row):
    done = []

    async def act():
        done.append(1)

    once(act)
    with pytest.raises(DurableRunCancelled):
        once(act, row)

    assert done == [1]


def test_unknown_run_is_reported(url):
    with pytest.raises(Exception, match='no such run'):
        asyncio.run(Bot().durable(url).get('other').result())


@pytest.mark.parametrize(
    ('make', 'problem'),
    [
        (lambda: Agent('test', capabilities=[DBOSDurability(name='x')]), 'a name'),
        (lambda: Agent('test', name='bot'), 'must record model requests'),
        (lambda: Agent('test', name='bot', capabilities=[DBOSDurability()]), 'needs approvals'),
        (lambda: Agent('test', name='bot', capabilities=[DBOSDurability(), Approvals(id=None)]), 'need an `id`'),
        (lambda: Agent('test', name='bot', capabilities=[DBOSDurability(), Approvals(ledger=object())]), 'no `ledger`'),
        (lambda: 'agent', 'not str'),
    ],
)
def test_an_agent_that_cannot_be_durable_is_refused(make, problem, url):
    with pytest.raises(UserError, match=problem):
        DurableAgent(make(), store=url)


def test_a_ui_that_is_gone_with_its_process_is_refused(url, tmp_path):
    from tool_approval.testing import approve_all

    elsewhere = InboxUI(Inbox(open_store(str(tmp_path / 'other.sqlite')).inbox_store))
    for ui in (approve_all(), elsewhere):
        with pytest.raises(UserError, match='with the `store` of the'):
            Bot().durable(url, ApprovalController(ui=ui))


def test_a_structured_output_comes_back_as_what_it_is(url):
    class Report(BaseModel):
        total: int

    async def main():
        for output_type, expected in ((Report, Report(total=3)), ([Report, str], {'total': 3})):
            from pydantic_ai.models.test import TestModel

            model = TestModel(custom_output_args={'total': 3}, call_tools=[])
            agent = Agent(model, name='reporter', output_type=output_type, capabilities=[DBOSDurability(), Approvals()])
            durable = DurableAgent(agent, store=url)
            async with working(durable):
                run = await durable.start('go')
                assert await run.result() == expected

    asyncio.run(main())


def test_an_approval_that_expired_while_another_question_was_open_is_asked_again(url):
    bot, sink, later = Bot([PAY, call('pay', '2', amount=20)]), ListSink(), [timedelta(0)]
    controller = ApprovalController(audit=sink, valid_for=timedelta(hours=1), now=lambda: datetime.now(UTC) + later[0])
    durable = bot.durable(url, controller)

    async def run(inbox):
        async with working(durable):
            started = await durable.start('go', run_id='run')
            first, second = await soon(inbox, 2)
            await answer(inbox, first, YES)
            later[0] = timedelta(hours=2)
            await answer(inbox, second, YES)
            again = await soon(inbox, 2)
            later[0] = timedelta(0)
            for entry in again:
                await answer(inbox, entry, YES)
            return json.loads(await started.result()), {first.id, second.id} & {entry.id for entry in again}

    with Inbox(open_store(url).inbox_store) as inbox:
        told, same = asyncio.run(run(inbox))

    assert told == {'1': ['paid 10', 'success'], '2': ['paid 20', 'success']}
    assert same == set()
    assert len(sink.questions) == 4


def test_votes_that_expired_while_another_question_was_open_are_given_again(url):
    bot, later, agreed = Bot([PAY, call('pay', '2', amount=20)]), [timedelta(0)], []
    controller = ApprovalController(
        policy=by_leads(url).policy, valid_for=timedelta(hours=1), now=lambda: datetime.now(UTC) + later[0]
    )
    durable = bot.durable(url, controller)

    async def main(inbox):
        async with working(durable):
            started = await durable.start('go', run_id='run')
            for by, count in ((ADA, 2), (BOB, 2), (ADA, 1), (BOB, 1)):  # the other call was approved later
                last = await soon(inbox, count)
                agreed.append([each.request.votes.agreed for each in last])
                for entry in last:
                    await answer(inbox, entry, by=by)
                    later[0] = timedelta(hours=0 if len(agreed) == 1 else 2)
            return json.loads(await started.result())

    with Inbox(open_store(url).inbox_store, now=controller.now) as inbox:
        told = asyncio.run(main(inbox))
    assert (told, sorted(bot.paid)) == ({'1': ['paid 10', 'success'], '2': ['paid 20', 'success']}, [10, 20])
    assert agreed == [[(), ()], [('ada',), ('ada',)], [()], [('ada',)]]


def test_a_question_that_cannot_be_logged_is_not_asked(url, caplog):
    class Full:
        def record(self, entry):
            if entry['event'] == 'question':
                raise AuditError('log', 'the disk is full')

    bot = Bot([PAY])

    assert asyncio.run(denied_alone(bot.durable(url, ApprovalController(audit=Full())))) == 'denied'
    assert bot.paid == []


async def denied_alone(durable):
    async with working(durable):
        run = await durable.start('go', run_id='run')
        [(_, outcome)] = json.loads(await run.result()).values()
        return outcome
