"""What the wrapper keeps of the toolset inside it, and what it makes of whatever that toolset says."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace
from unittest.mock import MagicMock

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool
from tool_approval.compat.blocking_approval import (
    ApprovalBlocked,
    ApprovalDenied,
    ApprovalError,
    ApprovalMemory,
    ApprovalResult,
    ApprovalToolset,
    SupportsApprovalDescription,
    SupportsNeedsApproval,
    needs_approval_from_config,
)
from tool_approval.core.errors import ApprovalRefused, AuditError

from tests.approval.parts import ListSink
from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController as Controller
from tool_approval import ApprovalDenied as CoreDenied
from tool_approval import ApprovalResult as Verdict
from tool_approval import execute_tool

from .wrapped import NO, SESSION, YES, Asked, Files, Judging, run, wrapped

WRITE = [call('write', 'w', path='a')]


def judging(function):
    """A toolset whose `needs_approval` is `function`."""
    inner = Files().toolset()
    inner.needs_approval = function
    return inner


def predicates(status):
    """A result of some other package, such as the published one."""
    return SimpleNamespace(
        is_blocked=status == 'blocked',
        is_needs_approval=status == 'needs_approval',
        is_pre_approved=status == 'pre_approved',
        block_reason='frozen' if status == 'blocked' else None,
    )


class Living(AbstractToolset[object]):
    """A toolset that writes down what happens to it, and makes another one for each run."""

    def __init__(self, events, made_for='all'):
        self.events = events
        self.made_for = made_for

    @property
    def id(self):
        return 'living'

    async def for_run(self, ctx):
        return Living(self.events, made_for='run')

    async def for_run_step(self, ctx):
        return Living(self.events, made_for='step') if ctx.run_step > 1 else self

    async def __aenter__(self):
        self.events.append(f'enter {self.made_for}')
        return self

    async def __aexit__(self, *args):
        self.events.append(f'exit {self.made_for}')

    async def get_instructions(self, ctx):
        return f'Made for the {self.made_for}.'

    async def get_tools(self, ctx):
        definition = ToolDefinition(name='live', description='Lives.', parameters_json_schema={'type': 'object'})
        validator = TypeAdapter(dict[str, object]).validator
        return {'live': ToolsetTool(toolset=self, tool_def=definition, max_retries=3, args_validator=validator)}

    async def call_tool(self, name, tool_args, ctx, tool):
        self.events.append(f'call {self.made_for}')
        return 'alive'


def test_the_whole_life_of_the_inner_toolset_passes_through():
    events, asked = [], Asked()
    agent = Agent(scripted([call('live', '1')], [call('live', '2')], 'done'), toolsets=[wrapped(Living(events), asked)])

    result = agent.run_sync('Go.')

    assert [event for event in events if event.startswith('call')] == ['call run', 'call step']
    assert events[0] == 'enter run'
    assert events[-1] == 'exit run'
    assert [message.instructions for message in result.all_messages() if message.kind == 'request'] == [
        'Made for the run.',
        'Made for the step.',
        'Made for the step.',
    ]
    assert asked.names == ['live', 'live']


def test_a_test_of_a_toolset_may_call_a_tool_without_a_run():
    asked = Asked()

    result = asyncio.run(wrapped(Living([]), asked).call_tool('live', {}, ctx=None, tool=None))

    assert (result, asked.names) == ('alive', ['live'])


def test_the_copies_for_runs_share_memory_and_config():
    asked = Asked(SESSION)
    toolset = wrapped(Living([]), asked)

    run(toolset, [call('live', '1')])
    run(toolset, [call('live', '1')])
    toolset.config['live'] = {'pre_approved': True}
    run(toolset, [call('live', '2', other=True)])

    assert asked.names == ['live']


def test_definitions_id_and_other_attributes_are_the_inner_toolsets():
    inner = Files().toolset(id='files', max_retries=7)
    toolset = wrapped(inner, Asked())

    @toolset.tool_plain
    def added() -> str:
        return 'added'

    assert toolset.id == 'files'
    assert toolset.max_retries == 7
    assert set(inner.tools) == {'write', 'read', 'added'}
    with pytest.raises(AttributeError, match='missing'):
        _ = toolset.missing


def test_the_visitors_of_the_host_reach_the_inner_toolset():
    inner, other, leaves, asked = Files().toolset(), Files().toolset(), [], Asked(NO)
    toolset = wrapped(inner, asked)

    toolset.apply(leaves.append)
    replaced = toolset.visit_and_replace(lambda leaf: other)
    unchanged = toolset.visit_and_replace(lambda leaf: leaf)

    assert leaves == [inner]
    assert isinstance(replaced, ApprovalToolset)
    assert replaced.wrapped is other
    assert unchanged is toolset
    with pytest.raises(ApprovalDenied):
        run(replaced, WRITE)


def test_wrappers_that_ask_different_people_are_different():
    inner = Files().toolset()
    one, other = wrapped(inner, Asked(YES)), wrapped(inner, Asked(NO))

    assert one != other
    assert len({one, other, one}) == 2


@pytest.mark.parametrize(
    'check',
    [
        lambda name, args: name == 'write' and args == {'path': 'a'},
        lambda name, args, ctx: ctx.deps == 'Ada',
        lambda name, args, ctx, config: config == {'write': {'mine': 1}},
        lambda name, args, ctx, *, config: config == {'write': {'mine': 1}},
        lambda *args: len(args) == 4,
    ],
)
def test_needs_approval_is_called_with_as_much_as_it_takes(check):
    asked = Asked()
    toolset = wrapped(judging(check), asked, config={'write': {'mine': 1}})

    run(toolset, WRITE, deps='Ada')

    assert asked.names == ['write']


def test_a_toolset_with_two_checks_runs_nothing_because_only_one_was_asked():
    ran = []

    class Two(FunctionToolset):
        def needs_approval(self, name, args):
            return False

        def check_approval(self, ctx):
            raise PermissionError('not here')

    def delete(path: str) -> None:
        ran.append(path)

    toolset = wrapped(Two([delete]), Asked())
    agent = Agent(scripted([call('delete', '1', path='a')], 'done'), toolsets=[toolset])

    with pytest.raises(UserError, match='nothing guards it'):
        agent.run_sync('go')

    assert ran == []


def test_a_needs_approval_that_takes_something_else_is_an_error():
    inner = judging(lambda name: False)

    with pytest.raises(TypeError, match='name, tool_args, ctx'):
        run(wrapped(inner, Asked()), WRITE)


def test_an_async_needs_approval_is_awaited():
    async def check(name, args, ctx, config):
        await asyncio.sleep(0)
        return ApprovalResult.blocked('frozen')

    with pytest.raises(ApprovalBlocked, match='frozen'):
        run(wrapped(judging(check), Asked()), WRITE)


@pytest.mark.parametrize('make', [predicates, lambda status: Verdict(status=status, reason='frozen')])
def test_results_of_other_packages_are_read_by_their_predicates(make):
    pre_approved, needs_approval = Asked(NO), Asked(YES)

    run(wrapped(judging(lambda *args: make('pre_approved')), pre_approved), WRITE)
    run(wrapped(judging(lambda *args: make('needs_approval')), needs_approval), WRITE)
    with pytest.raises(ApprovalBlocked, match='frozen'):
        run(wrapped(judging(lambda *args: make('blocked')), Asked()), WRITE)

    assert pre_approved.requests == []
    assert needs_approval.names == ['write']


def test_a_block_without_a_reason_is_a_block():
    said = SimpleNamespace(is_blocked=True, is_needs_approval=False, is_pre_approved=False)

    with pytest.raises(ApprovalBlocked, match='no reason'):
        run(wrapped(judging(lambda *args: said), Asked()), WRITE)


@pytest.mark.parametrize(
    'said',
    [
        None,
        'pre_approved',
        1,
        {},
        {'description': 1},
        SimpleNamespace(is_pre_approved=True),
        SimpleNamespace(is_blocked=0, is_needs_approval=0, is_pre_approved=1),
        SimpleNamespace(is_blocked=True, is_needs_approval=False, is_pre_approved=True),
    ],
)
def test_unreadable_needs_approval_result_raises_and_the_tool_does_not_run(said):
    files, asked = Files(), Asked()

    with pytest.raises(TypeError, match='needs_approval'):
        run(wrapped(Judging(files, said), asked), WRITE)

    assert asked.requests == []
    assert files.ran == []


@pytest.mark.parametrize('tool_configs', [None, {'write': {'approval': 'none'}}])
@pytest.mark.parametrize('failure', [ValueError('broken'), PermissionError('no'), asyncio.CancelledError()])
def test_a_failure_of_needs_approval_leaves_the_run_and_the_tool_does_not_run(failure, tool_configs):
    files = Files()

    def check(name, args, ctx):
        raise failure

    inner = files.toolset()
    inner.needs_approval = check
    toolset = wrapped(inner, Asked(), config={'write': {'pre_approved': True}}, tool_configs=tool_configs)

    with pytest.raises(type(failure)):
        run(toolset, WRITE)

    assert files.ran == []


def test_needs_approval_may_send_the_model_back():
    def check(name, args, ctx):
        if args['path'] == 'a':
            raise ModelRetry('b is the better path')
        return False

    told = run(wrapped(judging(check), Asked()), WRITE, [call('write', 'w2', path='b')])

    assert told == ['b is the better path', 'wrote b']


@pytest.mark.parametrize('answer', [None, True, 'y', {'approved': True}, SimpleNamespace(approved=True)])
def test_answer_other_than_a_decision_raises_and_the_tool_does_not_run(answer):
    files = Files()

    with pytest.raises(TypeError, match='ApprovalDecision'):
        run(wrapped(files.toolset(), Asked(answer)), WRITE)

    assert files.ran == []


def test_a_callback_that_fails_leaves_the_run_and_the_tool_does_not_run():
    files = Files()

    def broken(request):
        raise EOFError

    with pytest.raises(EOFError):
        run(ApprovalToolset(files.toolset(), broken), WRITE)

    assert files.ran == []


CTX = SimpleNamespace(run_id='r', tool_call_id='1')


@dataclass
class Place:
    path: str


class PlaceModel(BaseModel):
    path: str


@pytest.mark.parametrize('args', [Place('a'), PlaceModel(path='a'), MappingProxyType({'path': 'a'}), {'path': 'a'}])
def test_arguments_are_shown_by_name_whatever_the_toolset_makes_of_them(args):
    asked, received = Asked(), []

    class Own(Living):
        async def call_tool(self, name, tool_args, ctx, tool):
            received.append(tool_args)

    asyncio.run(wrapped(Own([]), asked).call_tool('live', args, CTX, None))

    assert asked.requests[0].tool_args == {'path': 'a'}
    assert received[0] is args


def test_arguments_that_cannot_be_shown_are_an_error():
    events = []

    with pytest.raises(TypeError, match='int'):
        asyncio.run(wrapped(Living(events), Asked()).call_tool('live', 1, None, None))

    assert events == []


def test_marks_are_found_within_the_hosts_wrappers():
    asked = Asked()

    def send() -> str:
        return 'sent'

    send._requires_approval = True
    inner = CombinedToolset([FunctionToolset([send]).prefixed('mail'), Files().toolset()])

    run(wrapped(inner, asked, default='none'), [call('mail_send', 's'), *WRITE])

    assert asked.names == ['mail_send']


def test_a_test_double_of_a_tool_is_asked_about_and_run():
    asked, inner = Asked(), MagicMock(spec=AbstractToolset)
    inner.call_tool.return_value = 'written'

    told = asyncio.run(wrapped(inner, asked).call_tool('write', {'path': 'a'}, MagicMock(spec=RunContext), MagicMock()))

    assert asked.names == ['write']
    assert told == 'written'


def test_a_function_with_logic_of_its_own_pre_approves_and_blocks():
    asked = Asked()

    def send(to: str) -> str:
        return f'sent to {to}'

    def check_approval(context):
        if context.args['to'] == 'Mallory':
            raise PermissionError('not to Mallory')

    send.check_approval = check_approval
    toolset = wrapped(FunctionToolset([send]), asked)

    told = run(toolset, [call('send', 's', to='Ada')])
    with pytest.raises(ApprovalBlocked, match='Mallory'):
        run(toolset, [call('send', 's', to='Mallory')])

    assert told == ['sent to Ada']
    assert asked.requests == []


def test_required_in_tool_configs_overrules_a_function_that_pre_approves():
    asked = Asked()

    def send() -> str:
        return 'sent'

    send.check_approval = lambda context: None
    toolset = wrapped(FunctionToolset([send]), asked, tool_configs={'send': {'approval': 'required'}})

    run(toolset, [call('send', 's')])

    assert asked.names == ['send']


def test_custom_memory_is_used():
    class Remembering:
        def __init__(self):
            self.stored = []

        def lookup(self, tool_name, args):
            return YES if args == {'path': 'known'} else NO

        def store(self, tool_name, args, decision):
            self.stored.append((tool_name, args, decision))

    memory, asked = Remembering(), Asked()

    run(wrapped(Files().toolset(), asked, memory), [call('write', 'k', path='known')], WRITE)

    assert asked.names == ['write']
    assert memory.stored == [('write', {'path': 'a'}, YES)]


def test_once_per_session_remembers_nothing_in_a_wrapper_without_memory():
    asked = Asked()
    tool_configs = {'write': {'approval': 'once_per_session'}}

    run(wrapped(Files().toolset(), asked, {}, tool_configs=tool_configs), WRITE, [call('write', 'w2', path='a')])

    assert asked.names == ['write', 'write']


@pytest.mark.parametrize(
    ('args', 'options', 'error'),
    [
        (({}, {}), {}, TypeError),
        (({},), {'config': {}}, TypeError),
        ((['read'],), {}, TypeError),
        ((), {'default': 'blocked'}, ValueError),
    ],
)
def test_contradictory_wrapper_arguments_are_an_error(args, options, error):
    with pytest.raises(error, match=r'twice|third|default'):
        wrapped(Files().toolset(), Asked(), *args, **options)


def test_the_errors_are_those_of_tool_approval():
    denied, blocked = ApprovalDenied('write', NO), ApprovalBlocked('write', None)

    assert ApprovalError is ApprovalRefused
    assert isinstance(denied, CoreDenied)
    assert isinstance(denied, PermissionError)
    assert str(denied) == "Denied 'write': not today"
    assert str(blocked) == "Blocked 'write': no reason was given"


def test_a_result_is_a_verdict_of_tool_approval():
    def send() -> str:
        raise AssertionError('it ran')

    send.needs_approval = lambda name, args: ApprovalResult.blocked('frozen')

    with pytest.raises(PermissionError, match='frozen'):
        asyncio.run(execute_tool(send, 'send', {}, Controller('approve_all')))


def test_a_result_keeps_what_a_verdict_may_hold_and_can_be_changed():
    result = ApprovalResult.needs_approval('Mail Ada', reason='it is Ada')

    assert isinstance(result, ApprovalResult)
    assert (result.description, result.reason, result.block_reason) == ('Mail Ada', 'it is Ada', None)
    assert replace(result, description='Mail her').description == 'Mail her'


def test_the_protocols_know_a_toolset_that_judges_and_words():
    class Worded(Judging):
        def get_approval_description(self, name, tool_args, ctx):
            return name

    worded = Worded(Files(), False)

    assert isinstance(worded, SupportsNeedsApproval)
    assert isinstance(worded, SupportsApprovalDescription)
    assert not isinstance(Files().toolset(), SupportsNeedsApproval | SupportsApprovalDescription)


@pytest.mark.parametrize('config', [None, {}, {'read': None}, {'read': {}}, {'read': {'pre_approved': False}}])
def test_tool_missing_from_the_config_is_asked_about(config):
    assert needs_approval_from_config('read', config).is_needs_approval


def test_a_config_pre_approves_the_tool_it_names():
    config: Mapping[str, Mapping[str, object]] = MappingProxyType({'read': MappingProxyType({'pre_approved': True})})

    assert needs_approval_from_config('read', config).is_pre_approved
    assert needs_approval_from_config('write', config).is_needs_approval


class Spec(BaseModel):
    host: str
    command: str = Field(default='true', exclude=True)


def test_hidden_arguments_are_asked_about_each_time():
    ran = []

    def act(spec: Spec, more: int = 0) -> str:
        ran.append(spec.command)
        return 'ok'

    asked = Asked(SESSION)
    specs = [{'host': 'h'}, {'host': 'h', 'command': 'EVIL'}, {'host': 'h', 'command': 'EVIL'}, {'host': 'h'}]
    calls = [[call('act', str(number), spec=spec)] for number, spec in enumerate(specs)]
    toolset = ApprovalToolset(FunctionToolset([act]), asked, ApprovalMemory())
    Agent(scripted(*calls, 'done'), toolsets=[toolset]).run_sync('go')

    assert [request.tool_args['spec'].command for request in asked.requests] == ['true', 'EVIL', 'EVIL', 'true']
    assert ran == ['true', 'EVIL', 'EVIL', 'true']


def test_iterables_reach_the_tool_or_are_refused():
    ran = []

    def act(names: Iterable[int], more: int = 0) -> str:
        ran.append(list(names))
        return 'ok'

    asked = Asked(SESSION)

    def go(names):
        toolset = ApprovalToolset(FunctionToolset([act]), asked, ApprovalMemory())
        Agent(scripted([call('act', '1', names=names)], 'done'), toolsets=[toolset]).run_sync('go')

    go([1, 2])
    with pytest.raises(ApprovalBlocked, match='are invalid'):
        go(['x'])

    assert asked.requests[0].tool_args['names'] == [1, 2]
    assert ran == [[1, 2]]


def test_a_callback_that_changes_what_it_was_shown_runs_nothing():
    ran = []

    def save(names: list[str]) -> None:
        ran.append(names)

    def ask(request):
        request.tool_args['names'].append('b')
        return SESSION

    memory = ApprovalMemory()

    with pytest.raises(ApprovalBlocked, match='changed'):
        run(ApprovalToolset(FunctionToolset([save]), ask, memory), [call('save', 's', names=['a'])])
    assert ran == []
    assert memory.list_approvals() == []


def test_a_call_that_is_blocked_while_the_callback_is_asked_does_not_run():
    files = Files()
    judging = Judging(files, True)

    def ask(request):
        judging.said = Verdict.blocked('frozen')
        return YES

    with pytest.raises(ApprovalBlocked, match='frozen'):
        run(ApprovalToolset(judging, ask), WRITE)
    assert files.ran == []


def test_a_log_says_what_was_decided_and_how_calls_ended():
    sink, files = ListSink(), Files()
    toolset = wrapped(files.toolset(), Asked(SESSION), tool_configs={'read': {'approval': 'none'}}, log=sink)

    run(toolset, WRITE, [call('write', 'w2', path='a'), call('read', 'r', path='a')])

    told = [(entry['tool_name'], entry['approved'], entry['decided_by']) for entry in sink.decisions()]
    assert told == [('write', True, ['ui']), ('write', True, ['memory'])]
    assert sink.outcomes() == ['executed', 'executed']
    assert [(entry['event'], entry['tool_name']) for entry in sink.unasked] == [
        ('unasked', 'read'),
        ('outcome', 'read'),
    ]
    assert {entry['run_id'] for entry in sink.entries} != {None}


@pytest.mark.parametrize(
    ('answer', 'configs', 'expected', 'error'),
    [
        (NO, {}, ('decision', ['ui'], 'not today'), ApprovalDenied),
        (
            YES,
            {'write': {'approval': 'blocked'}},
            ('blocked', ['policy'], 'the tool is blocked by `tool_configs`'),
            ApprovalBlocked,
        ),
    ],
)
def test_a_log_says_what_was_refused(answer, configs, expected, error):
    sink = ListSink()

    with pytest.raises(error):
        run(wrapped(Files().toolset(), Asked(answer), tool_configs=configs, log=sink), WRITE)

    [entry] = sink.entries
    assert (entry['event'], entry['decided_by'], entry['note']) == expected


def test_a_log_says_that_a_tool_failed():
    def write(path: str) -> None:
        raise OSError('full')

    sink = ListSink()

    with pytest.raises(OSError, match='full'):
        run(ApprovalToolset(FunctionToolset([write]), Asked(), log=sink), WRITE)

    assert sink.outcomes() == ['failed']


def test_a_call_whose_decision_cannot_be_logged_does_not_run():
    class Full:
        def record(self, entry):
            raise AuditError('log', 'the disk is full')

    files = Files()

    with pytest.raises(AuditError):
        run(wrapped(files.toolset(), Asked(), log=Full()), WRITE)
    assert files.ran == []


def test_a_log_is_a_path_or_a_sink():
    with pytest.raises(TypeError, match='`log` must be a path'):
        wrapped(Files().toolset(), Asked(), log=1)
