"""Durable agents as tools of others: each call is a run of its own, for whose end the calling run waits."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from pydantic import BaseModel
from pydantic_ai import ExternalToolset, RunContext, Tool, ToolDefinition
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.core.errors import UsedUp
from tool_approval.core.gate import Gate
from tool_approval.durable import Done, open_store
from tool_approval.inbox import Inbox
from tool_approval.integrations.pydantic_ai import Approvals

from tests.approval.durable.parts import change
from tests.approval.inbox.parts import NO, YES, answer, soon
from tests.approval.parts import NOON, ListSink
from tests.loop.scripted import call, returns
from tool_approval import ApprovalDecision

pytest.importorskip('dbos', reason='the development environment has DBOS')

from pydantic_ai.durable_exec.dbos import DBOSDurability
from tool_approval.integrations.pydantic_ai.durable import DurableAgent, DurableRunFailed

ASK = {'approval': 'required'}
RESEARCH = call('research', '1', prompt='look')
PAY = call('pay', '1', amount=10)


def telling(*responses):
    """A model that gives one response after the other, and in the end tells what became of all calls."""

    def respond(messages, info):
        done = sum(isinstance(message, ModelResponse) for message in messages)
        told = [TextPart(json.dumps(returns(messages)))]
        return ModelResponse(parts=list(responses[done]) if done < len(responses) else told)

    return FunctionModel(respond)


class Office:
    """A boss, who calls a clerk as the tool `research`, who pays."""

    def __init__(self, url, boss=([RESEARCH],), clerk=([PAY],), *, rules=None, deps=None, clerk_options=(), **options):
        self.url = url
        self.paid = []
        self.sink = ListSink()
        self.clerk = self.durable('clerk', telling(*clerk), deps=deps, **{'tools': [self.pay], **dict(clerk_options)})
        toolsets = [self.clerk.as_tool('research', description='Ask the clerk.')]
        self.boss = self.durable('boss', telling(*boss), toolsets=toolsets, rules=rules, deps=deps, **options)

    def durable(self, name, model, *, rules=None, deps=None, reconcile=None, external=None, **options):
        approvals = Approvals(rules or {'pay': ASK}, default='none', log=self.sink, external=external)
        agent = Agent(model, name=name, capabilities=[DBOSDurability(), approvals], **options)
        return DurableAgent(agent, store=self.url, deps=deps, reconcile=reconcile)

    def pay(self, amount: int) -> str:
        self.paid.append(amount)
        return f'paid {amount}'


@asynccontextmanager
async def working(durable):
    async with asyncio.timeout(60), durable.worker(polling=0.05, lease=0.5):
        yield


async def answered(office, inbox, *decisions, **start):
    """Run the boss, and give these answers, each as soon as its question is there. What the model was given."""
    async with working(office.boss):
        run = await office.boss.start('go', run_id='run', **start)
        for decision in decisions:
            [entry] = await soon(inbox)
            await answer(inbox, entry, decision)
        return json.loads(await run.result())


def runs(url):
    store = open_store(url)
    try:
        return {each.id: each for each in store.list_runs()}
    finally:
        store.close()


def outcomes_of(office, tool_name):
    return [each['outcome'] for each in office.sink.unasked if 'outcome' in each and each['tool_name'] == tool_name]


def nested(url):
    return [each for each in runs(url).values() if each.parent is not None]


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
def test_a_call_of_a_durable_agent_is_a_run_of_its_own(kind, url, request):
    if kind == 'postgres':
        url = request.getfixturevalue('postgres_url')
    office = Office(url)

    with Inbox(open_store(url).inbox_store) as inbox:
        told = asyncio.run(answered(office, inbox, YES))

    assert json.loads(told['1'][0]) == {'1': ['paid 10', 'success']}
    assert office.paid == [10]
    [child] = nested(url)
    assert (child.parent, child.agent, child.status) == ('run', 'boss/clerk', 'done')
    assert office.sink.outcomes() == ['executed']
    assert outcomes_of(office, 'research') == ['executed']


def test_both_runs_wait_without_a_process_and_any_worker_continues_them(url, inbox):
    async def main():
        office = Office(url)
        async with working(office.boss):
            await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
        assert runs(url)['run'].status == 'waiting'
        await answer(inbox, entry)
        later = Office(url)
        async with working(later.boss):
            return office.paid, later.paid, json.loads(await later.boss.get('run').result())

    before, after, told = asyncio.run(main())

    assert (before, after) == ([], [10])
    assert told['1'][1] == 'success'


def test_a_question_of_a_nested_run_shows_the_lineage(url, inbox):
    office = Office(url)

    async def main():
        async with working(office.boss):
            await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
            return entry

    entry = asyncio.run(main())

    [level] = entry.request.lineage
    assert (level.agent_name, level.run_id, level.tool_name, level.tool_call_id) == ('boss', 'run', 'research', '1')
    assert entry.request.facts.caller == 'clerk'
    assert entry.request.run_id == nested(url)[0].id


def test_runs_are_nested_at_any_depth(url, inbox):
    office = Office(url, clerk=([call('ask', '7', prompt='x')],))
    boy = office.durable('boy', telling([PAY]), tools=[office.pay])
    office.clerk = office.durable('clerk', telling([call('ask', '7', prompt='x')]), toolsets=[boy.as_tool('ask')])
    office.boss = office.durable('boss', telling([RESEARCH]), toolsets=[office.clerk.as_tool('research')])

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            return entry, json.loads(await run.result())

    entry, told = asyncio.run(main())

    assert [each.tool_name for each in entry.request.lineage] == ['research', 'ask']
    assert 'paid 10' in told['1'][0]
    assert sorted(each.agent for each in runs(url).values()) == ['boss', 'boss/clerk', 'boss/clerk/boy']
    assert office.paid == [10]


def test_two_nested_runs_at_once_have_a_call_each(url, inbox):
    """The two pay with the same call id, in any order."""
    office = Office(url, boss=([RESEARCH, call('research', '2', prompt='look')],))

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            first, second = await soon(inbox, 2)
            await answer(inbox, second)
            await answer(inbox, first, NO)
            return json.loads(await run.result())

    told = asyncio.run(main())

    results = [json.loads(text)['1'][1] for text, _ in told.values()]
    assert sorted(results) == ['denied', 'success']
    assert office.paid == [10]
    assert [each.status for each in nested(url)] == ['done', 'done']


def test_an_id_that_a_provider_makes_up_again_starts_another_run(url, inbox):
    def respond(messages, info):
        done = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[RESEARCH] if done < 2 else [TextPart('"done"')])

    office = Office(url)
    office.boss = office.durable('boss', FunctionModel(respond), toolsets=[office.clerk.as_tool('research')])

    assert asyncio.run(answered(office, inbox, YES, YES)) == 'done'

    assert office.paid == [10, 10]
    assert len(nested(url)) == 2


def test_a_denied_call_of_a_nested_run_does_not_run_and_both_runs_end(url, inbox):
    office = Office(url)

    told = asyncio.run(answered(office, inbox, NO))

    assert json.loads(told['1'][0])['1'][1] == 'denied'
    assert office.paid == []
    assert {each.status for each in runs(url).values()} == {'done'}


def test_a_call_that_starts_a_run_can_be_denied(url, inbox):
    office = Office(url, rules={'research': ASK})

    told = asyncio.run(answered(office, inbox, NO))

    assert told['1'][1] == 'failed'
    assert nested(url) == []


@pytest.mark.parametrize('changed', [{'prompt': 5}, {}, {'prompt': 'x', 'more': 1}])
def test_a_prompt_that_an_approver_changed_to_something_else_starts_no_run(changed, url, inbox):
    office = Office(url, rules={'research': ASK})

    told = asyncio.run(answered(office, inbox, ApprovalDecision(approved=True, override_args=changed)))

    text, outcome = told['1']
    assert (outcome, 'takes a text, `prompt`' in text) == ('failed', True)
    assert nested(url) == []


def test_an_approver_can_change_the_prompt(url, inbox):
    office = Office(url, rules={'research': ASK})

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
            await answer(inbox, entry, ApprovalDecision(approved=True, override_args={'prompt': 'elsewhere'}))
            await soon(inbox)
            await run.cancel()

    asyncio.run(main())

    assert json.loads(nested(url)[0].state)['history'][0]['parts'][0]['content'] == 'elsewhere'


def test_a_call_whose_approval_no_longer_holds_starts_no_run(url, inbox):
    office, strict = Office(url, rules={'research': ASK}), Office(url, rules={'research': {'approval': 'blocked'}})

    async def main():
        async with working(office.boss):
            await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
        await answer(inbox, entry)
        async with working(strict.boss):
            return json.loads(await strict.boss.get('run').result())

    told = asyncio.run(main())

    assert told['1'][1] == 'failed'
    assert nested(url) == []


def test_a_call_whose_approval_lapses_before_its_run_starts_is_refused(url, monkeypatch):
    monkeypatch.setattr(Gate, 'recheck', lambda self, allowed, check=None: 'It lapsed.')
    office = Office(url)

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            return json.loads(await run.result())

    assert asyncio.run(main())['1'] == ['It lapsed.', 'failed']
    assert nested(url) == []


def test_a_call_for_which_nothing_is_left_of_its_approval_starts_no_run(url, monkeypatch):
    def take(gate, allowed):
        raise UsedUp(allowed.call.tool_name)

    monkeypatch.setattr(Gate, 'take', take)
    office = Office(url)

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            return json.loads(await run.result())

    assert asyncio.run(main())['1'] == [UsedUp('research').reason, 'failed']
    assert nested(url) == []


def test_a_nested_run_that_fails_is_told_to_the_model_without_its_message(url):
    def fail(messages, info):
        raise ValueError('a secret')

    office = Office(url)
    clerk = office.durable('clerk', FunctionModel(fail))
    office.boss = office.durable('boss', telling([RESEARCH]), toolsets=[clerk.as_tool('research')])

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            return json.loads(await run.result())

    text, outcome = asyncio.run(main())['1']
    assert outcome == 'failed'
    assert text == "The run of 'research' failed (ValueError). Calls that it made before may have had effects."
    assert outcomes_of(office, 'research') == ['failed']


def requests_of(url):
    """The number of model requests of each run, by the name of its agent."""
    return {each.agent: json.loads(each.state)['usage']['requests'] for each in runs(url).values()}


def test_the_usage_of_nested_runs_counts_in_the_run_above(url, inbox):
    def used(ctx: RunContext) -> str:
        return f'{ctx.usage.requests} requests'

    office = Office(url, boss=([RESEARCH, call('research', '2', prompt='look')], [call('used', '3')]), tools=[used])

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            for entry in await soon(inbox, 2):
                await answer(inbox, entry)
            return json.loads(await run.result())

    told = asyncio.run(main())

    assert told['3'] == ['6 requests', 'success']
    assert requests_of(url) == {'boss': 7, 'boss/clerk': 2}


def test_the_usage_of_a_nested_run_that_fails_counts_too(url):
    def burn() -> str:
        raise ValueError('burnt')

    office = Office(url, clerk=([call('burn', '1')],), clerk_options={'tools': [burn]})

    asyncio.run(answered(office, None))

    assert requests_of(url) == {'boss': 3, 'boss/clerk': 1}


def test_the_usage_of_a_nested_run_whose_state_is_damaged_does_not_count(url, inbox):
    office = Office(url)

    async def main():
        async with working(office.boss):
            await office.boss.start('go', run_id='run')
            await soon(inbox)
        [child] = nested(url)
        await office.boss.do(lambda: change(office.boss.store, "UPDATE runs SET state = '{' WHERE id = ?", child.id))
        await office.boss.do(lambda: office.boss.store.cancel(child.id, at=NOON))
        async with working(office.boss):
            await office.boss.get('run').result()

    asyncio.run(main())

    assert json.loads(runs(url)['run'].state)['usage']['requests'] == 2


def test_a_nested_run_can_be_cancelled_alone(url, inbox):
    office = Office(url)

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            await soon(inbox)
            assert await office.clerk.get(nested(url)[0].id).cancel()
            return json.loads(await run.result())

    told = asyncio.run(main())

    assert told['1'] == [
        "The run of 'research' was cancelled. Calls that it made before may have had effects.",
        'failed',
    ]


def test_cancelling_a_run_cancels_the_run_below_it_and_withdraws_its_question(url, inbox):
    office = Office(url)

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
            assert await run.cancel()
            with pytest.raises(DurableRunFailed, match='cancelled'):
                await run.result()
            return await inbox.get(entry.id)

    assert asyncio.run(main()).state == 'withdrawn'
    assert [each.status for each in nested(url)] == ['cancelled']
    assert office.paid == []


def test_a_nested_run_that_is_gone_is_not_started_again(url, inbox):
    office = Office(url)

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            await soon(inbox)
            with office.boss.store.inbox_store.transaction() as execute:
                execute("DELETE FROM runs WHERE parent = 'run'")
            return json.loads(await run.result())

    text, outcome = asyncio.run(main())['1']
    assert (outcome, text.partition('.')[0]) == ('failed', "The run of 'research' is no longer in the store")
    assert nested(url) == []


def test_a_nested_run_has_the_dependencies_of_the_run_above(url, inbox):
    class Deps(BaseModel):
        customer: str

    paid = []

    def charge(ctx: RunContext[Deps]) -> str:
        paid.append(ctx.deps.customer)
        return 'charged'

    office = Office(url)
    clerk = office.durable(
        'clerk', telling([call('charge', '1')]), tools=[charge], deps_type=Deps, deps={'customer': Deps}
    )
    boss = office.durable('boss', telling([RESEARCH]), toolsets=[clerk.as_tool('research')], deps={'customer': Deps})
    office.boss = boss

    asyncio.run(answered(office, inbox, deps=('customer', {'customer': 'c42'})))

    assert paid == ['c42']


def test_each_agent_finds_out_unknown_outcomes_itself(url):
    office = Office(url, clerk_options={'reconcile': {'pay': lambda call: Done('paid')}})

    async def main():
        async with working(office.boss):
            return office.boss.ledger._reconcile.keys(), office.clerk.ledger._reconcile.keys()

    assert asyncio.run(main()) == (set(), {'pay'})


def test_the_result_of_a_nested_run_is_given_beside_those_of_other_calls(url, inbox):
    office = Office(url)
    office.boss = office.durable(
        'boss',
        telling([RESEARCH, call('pay', '2', amount=5), call('lookup', '3')]),
        tools=[office.pay],
        toolsets=[office.clerk.as_tool('research'), ExternalToolset([ToolDefinition(name='lookup')])],
        external={'lookup': lambda: 'found'},
    )

    async def main():
        async with working(office.boss):
            run = await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
            assert nested(url) == [], 'no call begins before all calls of the response are decided'
            await answer(inbox, entry)
            [entry] = await soon(inbox)
            assert office.paid == []
            await answer(inbox, entry)
            return json.loads(await run.result())

    told = asyncio.run(main())

    assert told['2'] == ['paid 5', 'success']
    assert told['3'] == ['found', 'success']
    assert 'paid 10' in told['1'][0]
    assert office.paid == [10, 5]


def test_a_call_that_is_decided_again_starts_no_second_run(url, inbox):
    """The tool of another call of the response has changed, so that the approver is asked about that call again."""

    def made(description):
        office = Office(url)
        office.boss = office.durable(
            'boss',
            telling([RESEARCH, call('pay', '2', amount=5)]),
            tools=[Tool(office.pay, description=description)],
            toolsets=[office.clerk.as_tool('research')],
        )
        return office

    async def main():
        before, after = made('Pay.'), made('Pay at once.')
        async with working(before.boss):
            await before.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            [entry] = await soon(inbox)
        async with working(after.boss):
            await answer(inbox, entry)
            [entry] = await soon(inbox)
            await answer(inbox, entry)
            return after.paid, json.loads(await after.boss.get('run').result())

    paid, told = asyncio.run(main())

    assert (paid, len(nested(url))) == ([10, 5], 1)
    assert told['2'] == ['paid 5', 'success']
    assert 'paid 10' in told['1'][0]
    assert requests_of(url) == {'boss': 4, 'boss/clerk': 2}


@pytest.mark.parametrize('kind', ['store', 'name', 'tool', 'slash'])
def test_an_agent_that_cannot_be_nested_is_refused(kind, url, tmp_path):
    office = Office(url)
    options, problem = {'toolsets': [office.clerk.as_tool('research')]}, 'must have the `store`'
    match kind:
        case 'store':
            options = {'toolsets': [Office(f'sqlite:///{tmp_path}/other.sqlite').clerk.as_tool('research')]}
        case 'name':
            other = office.durable('clerk', telling())
            options, problem = {'toolsets': [*options['toolsets'], other.as_tool('other')]}, 'have the same name'
        case 'tool':
            options, problem = {**options, 'external': {'research': print}}, '`external` must not contain it'
        case _:
            pass

    with pytest.raises(UserError, match='has no `/`' if kind == 'slash' else problem):
        office.durable('a/b' if kind == 'slash' else 'manager', telling(), **options)


def test_one_agent_can_be_two_tools(url, inbox):
    office = Office(url, boss=([RESEARCH], [call('other', '2', prompt='x')]))
    toolsets = [office.clerk.as_tool('research'), office.clerk.as_tool('other')]
    model = telling([RESEARCH], [call('other', '2', prompt='x')])
    office.boss = office.durable('boss', model, toolsets=toolsets)

    told = asyncio.run(answered(office, inbox, YES, YES))

    assert [outcome for _, outcome in told.values()] == ['success', 'success']
    assert office.paid == [10, 10]


def test_a_run_whose_agent_is_no_longer_among_the_tools_waits(url, inbox):
    async def main():
        office = Office(url)
        async with working(office.boss):
            await office.boss.start('go', run_id='run')
            [entry] = await soon(inbox)
        await answer(inbox, entry)
        alone = office.durable('boss', telling())
        async with working(alone):
            await (await alone.start('go', run_id='other')).result()
            assert nested(url)[0].status == 'waiting'
            # As a worker that takes up the segment of another, which had the agent.
            alone.store.resume(nested(url)[0].id, 1, at=nested(url)[0].changed_at)
            await alone._run_segment(nested(url)[0].id, 1)

    asyncio.run(main())

    [child] = nested(url)
    assert (child.status, 'no longer among the tools' in child.outcome) == ('failed', True)


@pytest.mark.parametrize('made', [True, False], ids=['after another call', 'as the first call'])
def test_a_plain_agent_inside_a_tool_is_refused_before_its_call(made, url, inbox):
    wiped, noted = [], []
    responses = ([call('note', '8')], [call('wipe', '9')]) if made else ([call('wipe', '9')],)
    inner = Agent(telling(*responses), name='inner')

    @inner.tool_plain(requires_approval=True)
    def wipe() -> str:
        wiped.append(1)
        return 'wiped'

    @inner.tool_plain
    def note() -> str:
        noted.append(1)
        return 'noted'

    async def delegate() -> str:
        return (await inner.run('go')).output

    office = Office(url)
    boss = office.durable('boss', telling([call('delegate', '1')]), tools=[delegate])

    async def main():
        async with working(boss):
            run = await boss.start('go', run_id='run')
            with pytest.raises(DurableRunFailed) as failed:
                await run.result()
            return str(failed.value)

    told = asyncio.run(main())

    assert wiped == []
    assert noted == [1] * made
    assert "`toolsets=[DurableAgent(inner, store=...).as_tool('delegate')]`" in told
    assert "'wipe' needs approval or a result from elsewhere, and did not run" in told
    assert ('had made ' + ("calls that may have had effects: 'note' (8)" if made else 'no other calls')) in told
    assert asyncio.run(inbox.open()) == []


def test_a_call_of_a_plain_agent_that_a_rule_frees_is_refused_too(url):
    """A durable run executes such a call at most once, which it cannot for a run that starts again after a crash."""
    paid = []
    inner = Agent(telling([call('wipe', '9')]), name='inner')

    @inner.tool_plain(requires_approval=True)
    def wipe() -> str:
        paid.append(1)
        return 'wiped'

    async def delegate() -> str:
        return (await inner.run('go')).output

    rules = {'wipe': {'approval': 'none'}}
    boss = Office(url).durable('boss', telling([call('delegate', '1')]), tools=[delegate], rules=rules)

    async def main():
        async with working(boss):
            with pytest.raises(DurableRunFailed, match='did not run'):
                await (await boss.start('go')).result()

    asyncio.run(main())
    assert paid == []


def test_a_plain_agent_inside_a_tool_whose_calls_need_no_approval_runs(url):
    inner = Agent(telling([call('note', '9')]), name='inner')

    @inner.tool_plain
    def note() -> str:
        return 'noted'

    async def delegate() -> str:
        return (await inner.run('go')).output

    boss = Office(url).durable('boss', telling([call('delegate', '1')]), tools=[delegate])

    async def main():
        async with working(boss):
            return json.loads(await (await boss.start('go')).result())

    assert json.loads(asyncio.run(main())['1'][0]) == {'9': ['noted', 'success']}
