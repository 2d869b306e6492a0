"""Promises of `pydantic-ai-blocking-approval`, kept by the compatible toolset."""

import asyncio

import pytest
import yaml
from pydantic import ValidationError
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from tool_approval.compat.blocking_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalRequest,
    ApprovalResult,
    ApprovalScope,
    ApprovalToolset,
)
from tool_approval.core.presentation import NEEDS_A_PERSON

from tests.loop.scripted import call, scripted
from tests.tables import table
from tool_approval import ApprovalConfigError, ApprovalPolicy, requires_approval

from .wrapped import NO, SESSION, YES, Asked, Files, Judging, run, wrapped

WRITE = [call('write', 'w', path='a')]
READ = [call('read', 'r', path='a')]
AGAIN, OTHER = [call('write', 'w2', path='a')], [call('write', 'w3', path='b')]
REQUEST = ApprovalRequest(tool_name='write', tool_args={'path': 'a'}, description='Write a')


def marked(function):
    function._requires_approval = True
    return function


NONE, REQUIRED, ONCE = {'approval': 'none'}, {'approval': 'required'}, {'approval': 'once_per_session'}
PRE_APPROVED = {'pre_approved': True}
ASKS = ApprovalResult.needs_approval()
WRITES, READS = "write(path='a')", "read(path='a')"
"""How the calls are described by default."""


@table(
    ('reason', 'toolset_says', 'options', 'questions'),
    [
        (
            'each tool follows its entry',
            None,
            {'tool_configs': {'write': REQUIRED, 'read': NONE}},
            ['Tool call: write'],
        ),
        (
            'an entry may describe the call',
            None,
            {'tool_configs': {'write': {**REQUIRED, 'description': 'Change the disk'}, 'read': NONE}},
            ['Change the disk'],
        ),
        ('a tool without an entry is asked about', None, {'tool_configs': {'write': NONE}}, [READS]),
        ('unless the default is none', None, {'default': 'none'}, []),
        ('the toolset may say that no tool is asked about', False, {}, []),
        ('or that all are', True, {}, [WRITES, READS]),
        ('with a description', {'description': 'Touch a'}, {}, ['Touch a', 'Touch a']),
        ('an entry overrides what the toolset says', True, {'tool_configs': {'write': NONE}}, [READS]),
        ('and its description', {'description': 'Touch a'}, {'tool_configs': {'write': NONE}}, ['Touch a']),
        ('and its result', ASKS, {'tool_configs': {'write': NONE}}, [READS]),
        ('the older configuration pre-approves', None, {'config': {'read': PRE_APPROVED}}, [WRITES]),
        ('but not where the toolset decides', ASKS, {'config': {'write': PRE_APPROVED}}, [WRITES, READS]),
    ],
)
def test_configuration_toolset_and_default_decide_what_is_asked(reason, toolset_says, options, questions):
    asked, files = Asked(), Files()
    inner = files.toolset() if toolset_says is None else Judging(files, toolset_says)

    told = run(wrapped(inner, asked, **options), [*WRITE, *READ])

    assert asked.descriptions == questions
    assert told == ['wrote a', 'contents of a']


@pytest.mark.parametrize('entry', [{'approval': 'requried'}, {'aproval': 'none'}, 'none', {'approval': 1}])
def test_invalid_entry_in_tool_configs_is_an_error(entry):
    with pytest.raises(ApprovalConfigError, match='read'):
        wrapped(Files().toolset(), Asked(), tool_configs={'read': entry})


def test_required_approval_asks_even_if_the_toolset_pre_approves():
    files, asked = Files(), Asked(NO)
    toolset = wrapped(Judging(files, False), asked, tool_configs={'write': REQUIRED})

    with pytest.raises(ApprovalDenied):
        run(toolset, WRITE)

    assert asked.names == ['write']
    assert files.ran == []


@marked
def send() -> str:
    return 'sent'


@pytest.mark.parametrize('tool_configs', [{}, {'write': {}}, {'write': None}, {'write': {'approval': None}}])
def test_tool_without_a_setting_follows_its_decorator_then_the_default(tool_configs):
    asked = Asked()
    inner = FunctionToolset([Files().write, send])
    toolset = wrapped(inner, asked, tool_configs={**tool_configs, 'send': {}}, default='none')

    told = run(toolset, [*WRITE, call('send', 's')])

    assert asked.descriptions == ['Tool call: send']
    assert told == ['wrote a', 'sent']


def test_marked_function_does_not_run_when_denied():
    asked = Asked(NO)

    @marked
    def send() -> str:
        raise AssertionError('it ran')

    with pytest.raises(ApprovalDenied):
        run(wrapped(FunctionToolset([send]), asked, default='none'), [call('send', 's')])

    assert asked.names == ['send']


def test_function_decorated_with_requires_approval_asks_with_its_description():
    asked = Asked()

    @requires_approval(description=lambda args: f'Mail {args["to"]}', exclude_keys=['body'])
    def send(to: str, body: str) -> str:
        return f'sent to {to}'

    told = run(wrapped(FunctionToolset([send]), asked, default='none'), [call('send', 's', to='Ada', body='hush')])

    assert asked.descriptions == ['Mail Ada']
    assert told == ['sent to Ada']


def test_approval_none_does_not_override_a_block():
    files, asked = Files(), Asked()
    inner = Judging(files, ApprovalResult.blocked('frozen'))

    with pytest.raises(ApprovalBlocked, match='frozen'):
        run(wrapped(inner, asked, tool_configs={'write': NONE}), WRITE)

    assert files.ran == []


def test_pre_approved_warns_and_runs_its_tools_without_asking():
    asked = Asked()

    with pytest.warns(DeprecationWarning, match=r'next major version.*tool_configs') as warned:
        toolset = ApprovalToolset(Files().toolset(), asked, pre_approved=['read'])
    told = run(toolset, [*WRITE, *READ])

    assert warned[0].filename == __file__
    assert asked.names == ['write']
    assert told == ['wrote a', 'contents of a']


@pytest.mark.parametrize('entry', [REQUIRED, {}])
def test_entry_in_tool_configs_overrides_pre_approved(entry):
    asked = Asked()
    tool_configs = {'read': entry}

    with pytest.warns(DeprecationWarning):
        toolset = wrapped(Files().toolset(), asked, pre_approved=['read'], tool_configs=tool_configs)
    run(toolset, READ)

    assert asked.names == ['read']
    assert tool_configs == {'read': entry}


def test_once_per_session_asks_once_for_the_same_arguments():
    asked = Asked()

    run(wrapped(Files().toolset(), asked, tool_configs={'write': ONCE}), WRITE, AGAIN, OTHER)

    assert [request.tool_args for request in asked.requests] == [{'path': 'a'}, {'path': 'b'}]


def test_once_per_session_asks_again_after_a_denial():
    asked = Asked(NO, YES)
    toolset = wrapped(Files().toolset(), asked, tool_configs={'write': ONCE})

    with pytest.raises(ApprovalDenied):
        run(toolset, WRITE)
    run(toolset, WRITE)

    assert asked.names == ['write', 'write']


@pytest.mark.parametrize('approval', ['deny', 'blocked'])
def test_deny_raises_without_asking(approval):
    files, asked = Files(), Asked()
    toolset = wrapped(files.toolset(), asked, tool_configs={'write': {'approval': approval}})

    with pytest.raises(PermissionError, match='write'):
        run(toolset, WRITE)

    assert asked.requests == []
    assert files.ran == []


@pytest.mark.parametrize('approval', ['required', 'none', 'blocked'])
def test_approval_words_mean_the_same_in_tool_configs_and_in_the_policy(approval):
    tools = {'write': {'approval': approval}}
    asked = Asked(NO)

    try:
        run(wrapped(Files().toolset(), asked, tool_configs=tools), WRITE)
        here = 'none'
    except ApprovalBlocked:
        here = 'blocked'
    except ApprovalDenied:
        here = 'required'

    assert here == ApprovalPolicy(tools).rule_for('write').approval


def test_custom_tools_of_a_yaml_file_work_as_tool_configs():
    document = yaml.safe_load(
        """
        custom_tools:
          calculate_stats:
            approval: required
          send_notification:
            approval: none
          format_output: {}
        """
    )
    asked = Asked()

    def calculate_stats() -> str:
        return 'calculated'

    @marked
    def send_notification() -> str:
        return 'sent'

    def format_output() -> str:
        return 'formatted'

    inner = FunctionToolset([calculate_stats, send_notification, format_output])
    toolset = wrapped(inner, asked, tool_configs=document['custom_tools'], default='none')

    run(toolset, [call('calculate_stats', '1'), call('send_notification', '2'), call('format_output', '3')])

    assert asked.names == ['calculate_stats']


def test_wrapper_takes_its_arguments_by_position_or_by_name():
    config = {'read': PRE_APPROVED}
    askeds = [Asked(SESSION) for _ in range(4)]
    toolsets = [
        ApprovalToolset(Files().toolset(), askeds[0], ApprovalMemory(), config),
        ApprovalToolset(inner=Files().toolset(), approval_callback=askeds[1], memory=ApprovalMemory(), config=config),
        ApprovalToolset(Files().toolset(), askeds[2], None, config),
        ApprovalToolset(Files().toolset(), askeds[3], config=config),
    ]

    for toolset in toolsets:
        run(toolset, [*WRITE, *READ], AGAIN)

    assert [asked.names for asked in askeds] == [['write']] * 4


def test_mapping_as_third_argument_is_the_config_and_nothing_is_remembered():
    asked = Asked(SESSION)
    toolset = ApprovalToolset(Files().toolset(), asked, {'read': PRE_APPROVED})

    run(toolset, [*WRITE, *READ], AGAIN)

    assert asked.names == ['write', 'write']


@pytest.mark.parametrize('config', [None, {}, {'write': {}}, {'write': {'pre_approved': False}}])
def test_tool_that_is_not_pre_approved_asks(config):
    asked = Asked(NO)

    with pytest.raises(PermissionError):
        run(wrapped(Files().toolset(), asked, config=config), WRITE)

    assert asked.names == ['write']


def test_result_is_blocked_pre_approved_or_needs_approval_and_frozen():
    blocked, pre_approved = ApprovalResult.blocked('frozen'), ApprovalResult.pre_approved()
    needs_approval = ApprovalResult.needs_approval()

    three = (blocked, pre_approved, needs_approval)
    assert [result.is_blocked for result in three] == [True, False, False]
    assert [result.is_pre_approved for result in three] == [False, True, False]
    assert [result.is_needs_approval for result in three] == [False, False, True]
    assert (blocked.block_reason, pre_approved.block_reason) == ('frozen', None)
    assert ApprovalResult('blocked', 'frozen') == blocked
    assert {blocked: 1}[ApprovalResult(status='blocked', block_reason='frozen')] == 1
    with pytest.raises(AttributeError):
        blocked.status = 'pre_approved'


@pytest.mark.parametrize('arguments', [('blocked',), ('pre_approved', 'why'), ('needs_approval', 'why'), ('approved',)])
def test_contradictory_result_is_an_error(arguments):
    with pytest.raises(ValueError, match=r'reason|status'):
        ApprovalResult(*arguments)


def test_blocked_call_raises_its_reason_and_calls_neither_callback_nor_tool():
    files, asked = Files(), Asked()

    with pytest.raises(PermissionError, match='outside') as raised:
        run(wrapped(Judging(files, ApprovalResult.blocked('outside')), asked), WRITE)

    assert isinstance(raised.value, ApprovalBlocked)
    assert (raised.value.tool_name, raised.value.reason) == ('write', 'outside')
    assert asked.requests == []
    assert files.ran == []


def test_denied_call_raises_and_does_not_run_the_tool():
    files = Files()

    with pytest.raises(PermissionError, match='not today') as raised:
        run(wrapped(files.toolset(), Asked(NO)), WRITE)

    assert isinstance(raised.value, ApprovalDenied)
    assert (raised.value.tool_name, raised.value.decision) == ('write', NO)
    assert files.ran == []


def test_needs_approval_gets_the_name_the_arguments_and_the_context_with_its_deps():
    inner = Judging(Files(), ApprovalResult.pre_approved())

    run(wrapped(inner, Asked()), WRITE, deps='Ada')

    ((name, args, ctx),) = inner.judged
    assert (name, args) == ('write', {'path': 'a'})
    assert isinstance(ctx, RunContext)
    assert ctx.deps == 'Ada'


def test_toolset_describes_the_request_and_the_whole_call_is_the_default():
    class Worded(Judging):
        def get_approval_description(self, name, tool_args, ctx):
            return f'{ctx.deps} would {name} {tool_args["path"]}'

    worded, plain = Asked(), Asked()
    long = 'x' * 500

    run(wrapped(Worded(Files(), ApprovalResult.needs_approval()), worded), WRITE, deps='Ada')
    run(wrapped(Files().toolset(), plain), [call('write', 'w', path=long)])

    assert worded.descriptions == ['Ada would write a']
    assert plain.descriptions == [f"write(path='{long}')"]


def test_request_has_tool_name_arguments_and_description():
    asked = Asked()

    run(wrapped(Files().toolset(), asked), WRITE)

    assert asked.requests == [
        ApprovalRequest(tool_name='write', tool_args={'path': 'a'}, description="write(path='a')")
    ]


def test_decision_has_approved_note_and_remember():
    assert ApprovalDecision(approved=True).model_dump() == {'approved': True, 'note': None, 'remember': 'none'}
    assert ApprovalDecision(approved=False, note='no', remember='session').note == 'no'


@pytest.mark.parametrize('fields', [{'approved': 'yes'}, {'approved': 1}, {'approved': True, 'remember': 'always'}])
def test_decision_with_invalid_fields_is_an_error(fields):
    with pytest.raises(ValidationError):
        ApprovalDecision(**fields)


def test_memory_finds_an_approval_for_the_same_tool_and_arguments():
    memory = ApprovalMemory()

    memory.store('write', {'path': 'a', 'mode': 1}, SESSION)

    assert memory.lookup('write', {'mode': 1, 'path': 'a'}) == SESSION
    assert memory.lookup('read', {'mode': 1, 'path': 'a'}) is None
    assert memory.lookup('write', {'mode': '1', 'path': 'a'}) is None
    assert memory.list_approvals() == [('write', {'path': 'a', 'mode': 1}, SESSION)]
    assert len(memory) == 1
    memory.clear()
    assert len(memory) == 0


@pytest.mark.parametrize('decision', [YES, NO, ApprovalDecision(approved=False, remember='session')])
def test_memory_keeps_only_approvals_for_the_session(decision):
    memory = ApprovalMemory()

    memory.store('write', {}, decision)

    assert memory.lookup('write', {}) is None


@pytest.mark.parametrize('value', [object(), float('nan'), '\ud800'])
def test_memory_does_not_keep_arguments_without_a_json_form(value):
    memory = ApprovalMemory()

    memory.store('write', {'value': value}, SESSION)

    assert memory.lookup('write', {'value': value}) is None
    assert len(memory) == 0


def test_call_approved_for_the_session_is_not_asked_again_but_other_arguments_are():
    asked = Asked(SESSION)
    toolset = wrapped(Files().toolset(), asked)

    run(toolset, WRITE, AGAIN, OTHER)
    run(toolset, WRITE)

    assert [request.tool_args['path'] for request in asked.requests] == ['a', 'b']


def test_empty_memory_passed_in_is_used():
    memory, first, second = ApprovalMemory(), Asked(SESSION), Asked(NO)

    run(wrapped(Files().toolset(), first, memory), WRITE)
    run(wrapped(Files().toolset(), second, memory), WRITE)

    assert len(memory) == 1
    assert second.requests == []


def test_controller_provides_a_callback_and_a_memory():
    asked = Asked(SESSION)
    controller = ApprovalController(mode='interactive', approval_callback=asked)
    toolset = ApprovalToolset(
        inner=Files().toolset(), approval_callback=controller.approval_callback, memory=controller.memory
    )

    run(toolset, WRITE, AGAIN)

    assert controller.approval_callback is asked
    assert asked.names == ['write']
    assert controller.is_session_approved(asked.requests[0])


def test_unknown_mode_of_a_controller_is_an_error():
    with pytest.raises(ValueError, match='approve_all'):
        ApprovalController('yolo')


def test_interactive_controller_without_a_callback_fails_when_asked():
    controller = ApprovalController()

    with pytest.raises(RuntimeError, match='approval_callback'):
        _ = controller.approval_callback
    with pytest.raises(NotImplementedError, match='approval_callback'):
        controller.request_approval_sync(REQUEST)


@pytest.mark.parametrize('mode', ['approve_all', 'auto_approve'])
def test_approve_all_approves_without_asking(mode):
    asked = Asked(NO)
    controller = ApprovalController(mode, asked)

    told = run(ApprovalToolset(Files().toolset(), controller.approval_callback, controller.memory), WRITE)

    assert told == ['wrote a']
    assert asked.requests == []


def test_strict_denies_without_asking():
    files, asked = Files(), Asked(YES)
    controller = ApprovalController('strict', asked)

    with pytest.raises(PermissionError, match='Strict mode'):
        run(ApprovalToolset(files.toolset(), controller.approval_callback, controller.memory), WRITE)

    assert files.ran == []
    assert asked.requests == []


def test_strict_runs_pre_approved_tools():
    controller = ApprovalController('strict')
    toolset = ApprovalToolset(
        Files().toolset(), controller.approval_callback, controller.memory, {'read': {'pre_approved': True}}
    )

    assert run(toolset, READ) == ['contents of a']


def test_synchronous_callback_blocks_the_event_loop():
    files = Files()

    async def main():
        asked_on = []

        def ask(request: ApprovalRequest) -> ApprovalDecision:
            asked_on.append(asyncio.get_running_loop())  # raises in any other thread
            return YES

        agent = Agent(scripted(WRITE, 'done'), toolsets=[ApprovalToolset(files.toolset(), ask)])
        result = await agent.run('Go.')
        return asked_on == [asyncio.get_running_loop()], result.all_messages()

    on_the_loop, messages = asyncio.run(main())

    assert on_the_loop
    assert files.ran == ['write a']
    assert len({message.run_id for message in messages}) == 1


def test_async_callback_does_not_block_the_event_loop():
    async def main():
        asked, decided = asyncio.Event(), asyncio.Event()

        async def elsewhere(request: ApprovalRequest) -> ApprovalDecision:
            asked.set()
            await decided.wait()
            return YES

        agent = Agent(scripted(WRITE, 'done'), toolsets=[ApprovalToolset(Files().toolset(), elsewhere)])
        running = asyncio.create_task(agent.run('Go.'))
        await asked.wait()
        decided.set()
        return (await running).output

    assert asyncio.run(main()) == 'done'


def test_model_sees_the_result_of_an_approved_call_before_it_plans_the_next():
    commands: list[str] = []

    def shell(command: str) -> str:
        commands.append(command)
        return 'python 4711' if command == 'ss -ltnp sport = 8080' else ''

    def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, UserPromptPart):
            return ModelResponse([call('shell', 'look', command='ss -ltnp sport = 8080')])
        assert isinstance(last, ToolReturnPart)
        if last.tool_call_id == 'look':
            process_id = str(last.content).split()[1]
            return ModelResponse([call('shell', 'stop', command=f'kill {process_id}')])
        return ModelResponse([TextPart('Port 8080 is free.')])

    asked = Asked()
    agent = Agent(FunctionModel(plan), toolsets=[wrapped(FunctionToolset([shell]), asked)])

    result = agent.run_sync('Free port 8080.')

    assert result.output == 'Port 8080 is free.'
    assert [request.tool_args['command'] for request in asked.requests] == ['ss -ltnp sport = 8080', 'kill 4711']
    assert commands == ['ss -ltnp sport = 8080', 'kill 4711']
    prompts = [
        part
        for message in result.all_messages()
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    assert len(prompts) == 1


def test_denying_the_second_call_leaves_the_first_one_done():
    files = Files()

    with pytest.raises(ApprovalDenied):
        run(wrapped(files.toolset(), Asked(YES, NO)), READ, WRITE)

    assert files.ran == ['read a']


def test_answer_s_at_the_prompt_remembers_for_the_session(monkeypatch):
    prompts: list[str] = []
    typed = iter('sn')

    def type_next(prompt: str) -> str:
        prompts.append(prompt)
        return next(typed)

    monkeypatch.setattr('builtins.input', type_next)

    def ask(request: ApprovalRequest) -> ApprovalDecision:
        answer = input(f'{request.description} [y/n/s] ')
        return ApprovalDecision(approved=answer in ('y', 's'), remember='session' if answer == 's' else 'none')

    toolset = ApprovalToolset(Files().toolset(), ask)

    run(toolset, WRITE, AGAIN)
    with pytest.raises(PermissionError):
        run(toolset, READ)

    assert prompts == ["write(path='a') [y/n/s] ", "read(path='a') [y/n/s] "]


def test_scope_is_another_spelling_of_remember():
    once = ApprovalDecision(approved=True, scope=ApprovalScope.ONCE)
    session = ApprovalDecision(approved=True, scope=ApprovalScope.SESSION)

    assert (once, session) == (YES, SESSION)
    assert (once.scope, session.scope) == (ApprovalScope.ONCE, ApprovalScope.SESSION)
    assert ApprovalDecision(approved=True, scope='session', remember='session') == SESSION


@pytest.mark.parametrize('fields', [{'scope': 'session', 'remember': 'none'}, {'scope': 'forever'}])
def test_invalid_scope_is_an_error(fields):
    with pytest.raises(ValidationError):
        ApprovalDecision(approved=True, **fields)


def test_controller_decides_by_mode_then_memory_then_callback():
    asked = Asked(YES, SESSION)
    controller = ApprovalController(approval_callback=asked)

    decisions = [controller.request_approval_sync(REQUEST) for _ in range(3)]

    assert decisions == [YES, SESSION, SESSION]
    assert len(asked.requests) == 2
    controller.mode = 'strict'
    assert not controller.request_approval_sync(REQUEST).approved


def test_session_approvals_are_added_found_and_cleared():
    controller = ApprovalController('strict')
    reordered = {'b': [2.5, True], 'a': {'y': None, 'x': 1}}
    request = REQUEST.model_copy(update={'tool_args': {'a': {'x': 1, 'y': None}, 'b': [2.5, True]}})

    controller.add_session_approval(request)

    assert controller.is_session_approved(request.model_copy(update={'tool_args': reordered}))
    assert not controller.is_session_approved(REQUEST)
    assert controller.session_approvals == {('write', '{"a":{"x":1,"y":null},"b":[2.5,true]}')}
    controller.clear_session_approvals()
    assert not controller.is_session_approved(request)


def test_controller_refuses_an_async_callback():
    async def later(request: ApprovalRequest) -> ApprovalDecision:
        raise AssertionError('it was awaited')

    with pytest.raises(TypeError, match='ApprovalDecision'):
        ApprovalController(approval_callback=later).request_approval_sync(REQUEST)


def test_a_call_that_needs_the_whole_question_is_blocked():
    asked, files = Asked(YES), Files()
    inner = Judging(files, ApprovalResult.needs_approval(bound_to={NEEDS_A_PERSON: True}))

    with pytest.raises(ApprovalBlocked, match='only a prompt that shows the whole request'):
        run(wrapped(inner, asked), WRITE)

    assert (asked.requests, files.ran) == ([], [])
