"""Every shape of a tool's own logic, and what happens when it fails."""

import asyncio
import functools
import logging
import re
from types import SimpleNamespace

import pytest
from tool_approval.core.tool_checks import ask_check, from_request, has_check

from tests.tables import table
from tool_approval import (
    ApprovalBlocked,
    ApprovalContext,
    ApprovalPresentation,
    ApprovalRequest,
    ApprovalResult,
    RememberOption,
    requires_approval,
)

pytestmark = pytest.mark.anyio

CONTEXT = ApprovalContext(tool_name='write', args={'path': 'hunter2'}, metadata={'run_id': 'run'})
CONFIG = {'write': {'approval': 'required'}}
DEPS = SimpleNamespace(deps=SimpleNamespace(user='ada'))


def said_by(tool, context=CONTEXT):
    return asyncio.run(ask_check(tool, context, framework_context=DEPS, config=CONFIG))


def sync_and_async(**logic):
    """A tool with this logic, and one with the same logic in coroutine functions."""

    def in_coroutine(function):
        @functools.wraps(function)
        async def call(*args, **kwargs):
            await asyncio.sleep(0)
            return function(*args, **kwargs)

        return call

    later = {name: in_coroutine(function) for name, function in logic.items()}
    return SimpleNamespace(**logic), SimpleNamespace(**later)


each_form = pytest.mark.parametrize('form', [0, 1], ids=['sync', 'async'])


def raising(error):
    def logic(*args):
        raise error

    return logic


@pytest.mark.parametrize('tool', [object(), print, lambda path: path, SimpleNamespace(check_approval=None)])
def test_bare_tool_has_no_verdict(tool):
    assert said_by(tool) is None


OPTION = RememberOption(kind='directory', label='every file in notes/', payload={'directory': 'notes'})
REQUEST = ApprovalRequest(
    tool_name='write',
    args={'path': 'a'},
    description='Write to a',
    payload={'path': 'a'},
    presentation=ApprovalPresentation(type='text', content='a'),
    group_id='group',
    reason='outside',
    remember_options=(OPTION,),
    bound_to={'cwd': 'notes'},
)
ASKED = ApprovalResult.needs_approval(
    description='Write to a',
    payload={'path': 'a'},
    presentation=ApprovalPresentation(type='text', content='a'),
    group_id='group',
    reason='outside',
    remember_options=(OPTION,),
    bound_to={'cwd': 'notes'},
)


@each_form
@pytest.mark.parametrize(
    ('said', 'verdict'),
    [
        (None, ApprovalResult.pre_approved()),
        (REQUEST, ASKED),
        (ApprovalResult.blocked('never'), ApprovalResult.blocked('never')),
    ],
)
def test_check_approval_lets_the_tool_run_or_asks(said, verdict, form):
    tool = sync_and_async(check_approval=lambda ctx: said)[form]

    assert said_by(tool) == verdict


@each_form
def test_check_approval_receives_the_call(form):
    told = []

    said_by(sync_and_async(check_approval=told.append)[form])

    assert told == [CONTEXT]


@each_form
@pytest.mark.parametrize('member', ['check_approval', 'needs_approval'])
@pytest.mark.parametrize(
    ('error', 'reason'),
    [
        (PermissionError('outside of the sandbox'), 'outside of the sandbox'),
        (PermissionError(), "'write' is not permitted."),
        (ApprovalBlocked('write', 'never'), "Blocked 'write': never"),
    ],
)
def test_permission_error_in_check_approval_blocks_with_its_reason(member, error, reason, form):
    tool = sync_and_async(**{member: raising(error)})[form]

    assert said_by(tool) == ApprovalResult.blocked(reason)


@each_form
@pytest.mark.parametrize(
    ('said', 'verdict'),
    [
        (ApprovalResult.blocked('never'), ApprovalResult.blocked('never')),
        (ASKED, ASKED),
        (True, ApprovalResult.needs_approval()),
        (False, ApprovalResult.pre_approved()),
        ({'description': 'Write'}, ApprovalResult.needs_approval(description='Write')),
    ],
)
def test_needs_approval_may_return_a_verdict_a_bool_or_a_description(said, verdict, form):
    tool = sync_and_async(needs_approval=lambda name, args: said)[form]

    assert said_by(tool) == verdict


class Toolset:
    def __init__(self, say):
        self.say = say

    def needs_approval(self, name, args, ctx):
        return self.say(name, args, ctx)


def deprecated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


ARGS = {'path': 'hunter2'}


@table(
    ('make_logic', 'passed'),
    [
        (lambda say: lambda: say(), ()),
        (lambda say: lambda name, args: say(name, args), ('write', ARGS)),
        (lambda say: lambda name, args, ctx: say(name, args, ctx), ('write', ARGS, DEPS)),
        (lambda say: lambda name, args, ctx=None: say(name, args, ctx), ('write', ARGS, DEPS)),
        (lambda say: lambda name, args, context, /: say(name, args, context), ('write', ARGS, DEPS)),
        (lambda say: lambda name, args, ctx, config: say(name, args, ctx, config), ('write', ARGS, DEPS, CONFIG)),
        (lambda say: lambda name, args, config: say(name, args, config), ('write', ARGS, CONFIG)),
        (lambda say: lambda name, args, config, ctx: say(name, args, config, ctx), ('write', ARGS, CONFIG, DEPS)),
        (lambda say: lambda name, args, *, config, ctx: say(name, args, config, ctx), ('write', ARGS, CONFIG, DEPS)),
        (lambda say: lambda name, args, *, verbose=1: say(name, args, verbose), ('write', ARGS, 1)),
        (lambda say: lambda name, args, ctx, config, verbose=1: say(name, verbose), ('write', 1)),
        (lambda say: lambda name, args, **more: say(name, args, more), ('write', ARGS, {})),
        (lambda say: lambda *args: say(*args), ('write', ARGS, DEPS, CONFIG)),
        (lambda say: Toolset(say).needs_approval, ('write', ARGS, DEPS)),
        (lambda say: deprecated(lambda name, args: say(name, args)), ('write', ARGS)),
        (
            lambda say: functools.partial(lambda more, name, args: say(more, name, args), 'more'),
            ('more', 'write', ARGS),
        ),
    ],
)
def test_needs_approval_gets_as_many_arguments_as_it_accepts(make_logic, passed):
    said = []

    def say(*args):
        said.append(args)
        return False

    verdict = said_by(SimpleNamespace(needs_approval=make_logic(say)))

    assert verdict == ApprovalResult.pre_approved()
    assert said == [passed]


def test_without_a_configuration_an_empty_one_is_passed():
    said = []

    asyncio.run(ask_check(SimpleNamespace(needs_approval=lambda *args: said.append(args) or False), CONTEXT))

    assert said == [('write', ARGS, None, {})]


def test_needs_approval_is_given_a_copy_of_the_arguments():
    def needs_approval(name, args):
        args['path'] = 'harmless'
        return True

    context = ApprovalContext(tool_name='write', args={'path': 'a'})
    said_by(SimpleNamespace(needs_approval=needs_approval), context)

    assert context.args == {'path': 'a'}


@each_form
def test_tool_may_describe_the_call(form):
    tool = sync_and_async(
        needs_approval=lambda name, args, ctx: True,
        get_approval_description=lambda name, args, ctx: f'{ctx.deps.user} writes {args["path"]}',
    )[form]

    assert said_by(tool) == ApprovalResult.needs_approval(description='ada writes hunter2')


@pytest.mark.parametrize(
    'said',
    [False, ApprovalResult.blocked('never'), {'description': 'its own'}, ASKED],
    ids=['no', 'block', 'dict', 'own'],
)
def test_call_is_described_only_when_needed(said):
    described = []

    def get_approval_description(name, args):
        described.append(name)
        return 'another'

    tool = SimpleNamespace(needs_approval=lambda name, args: said, get_approval_description=get_approval_description)
    verdict = said_by(tool)

    assert described == []
    assert verdict is not None
    assert verdict.description != 'another'


@pytest.mark.parametrize('mark', ['_requires_approval', 'needs_approval', 'check_approval'])
@pytest.mark.parametrize('value', [True, 1, {'description': 'x'}])
def test_mark_that_is_not_a_function_asks(mark, value):
    assert said_by(SimpleNamespace(**{mark: value})) == ApprovalResult.needs_approval()


@pytest.mark.parametrize('mark', ['_requires_approval', 'needs_approval', 'check_approval'])
@pytest.mark.parametrize('value', [False, None])
def test_false_mark_has_no_verdict(mark, value):
    assert said_by(SimpleNamespace(**{mark: value})) is None


REQUEST = ApprovalRequest(tool_name='write', args={}, description='by check_approval')
ASKED, BLOCKED = ApprovalResult.needs_approval(description='by needs_approval'), ApprovalResult.blocked('never')


@pytest.mark.parametrize(
    ('check', 'needs', 'expected'),
    [
        (None, True, ApprovalResult.needs_approval()),
        (None, False, ApprovalResult.pre_approved()),
        (None, None, ApprovalResult.pre_approved()),
        (None, BLOCKED, BLOCKED),
        (REQUEST, BLOCKED, BLOCKED),
        (BLOCKED, ASKED, BLOCKED),
        (REQUEST, False, from_request(REQUEST)),
        (REQUEST, ASKED, from_request(REQUEST)),
    ],
)
def test_of_two_checks_the_stricter_verdict_applies(check, needs, expected):
    tool = SimpleNamespace(check_approval=lambda ctx: check, needs_approval=lambda name, args: needs)

    assert said_by(tool) == expected


class Deleting:
    @requires_approval()
    def __call__(self, path):
        raise AssertionError('not called')


@pytest.mark.parametrize(
    'tool',
    [
        functools.partial(requires_approval()(lambda path: None), 'a'),
        functools.partial(functools.partial(requires_approval()(lambda path: None)), 'a'),
        Deleting(),
    ],
)
def test_the_check_of_a_function_inside_of_a_callable_is_found(tool):
    assert has_check(tool)
    assert said_by(tool).is_needs_approval


@table('form', [0, 1])
@table('member', ['check_approval', 'needs_approval'])
@table(
    'said',
    [
        'yes',
        1,
        0,
        [],
        {},
        {'description': 1},
        {'description': 'a', 'payload': {}},
        {'descripton': 'a'},
        object(),
    ],  # without an address
)
def test_verdict_of_an_unknown_type_blocks(member, said, form):
    tool = sync_and_async(**{member: lambda *args: said})[form]

    verdict = said_by(tool)

    assert verdict is not None
    assert verdict.is_blocked
    assert verdict.reason == "The approval check of 'write' failed (TypeError), so the call was not run."


def test_needs_approval_without_a_verdict_leaves_the_decision_to_others():
    assert said_by(SimpleNamespace(needs_approval=lambda name, args: None)) is None


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError('hunter2')


class Explosive:
    @property
    def check_approval(self):
        raise LookupError('hunter2')


class ExplosiveMark:
    def __getattr__(self, name):
        raise LookupError('hunter2') if name == '_requires_approval' else AttributeError(name)


def asks_and_describes_nothing(name, args):
    return b'hunter2'


@pytest.mark.parametrize(
    ('tool', 'kind'),
    [
        *(
            (SimpleNamespace(**{member: raising(error)}), type(error).__name__)
            for member in ('check_approval', 'needs_approval')
            for error in (
                ValueError('hunter2'),
                KeyError('hunter2'),
                AssertionError('hunter2'),
                StopIteration('hunter2'),
                RecursionError('hunter2'),
                MemoryError('hunter2'),
                ExceptionGroup('hunter2', [ValueError('hunter2')]),
                FileNotFoundError(2, 'hunter2'),
                PermissionError(13, 'Permission denied', '/home/hunter2'),
                Unprintable(),
            )
        ),
        (SimpleNamespace(needs_approval=lambda name, args, *, secret: True), 'TypeError'),
        (SimpleNamespace(needs_approval=dict.fromkeys), 'TypeError'),
        (SimpleNamespace(check_approval=lambda: None), 'TypeError'),
        (
            SimpleNamespace(needs_approval=lambda *a: True, get_approval_description=raising(OSError('hunter2'))),
            'OSError',
        ),
        (
            SimpleNamespace(needs_approval=lambda *a: True, get_approval_description=asks_and_describes_nothing),
            'TypeError',
        ),
        (Explosive(), 'LookupError'),
        (ExplosiveMark(), 'LookupError'),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_logic_that_fails_blocks_and_its_error_text_is_not_shown(tool, kind, caplog):
    with caplog.at_level(logging.DEBUG):
        verdict = said_by(tool)

    assert verdict == ApprovalResult.blocked(f"The approval check of 'write' failed ({kind}), so the call was not run.")
    assert 'hunter2' not in caplog.text
    [record] = [record for record in caplog.records if record.name == 'tool_approval']
    told = rf"The approval check of tool 'write' failed with {kind} at \S+\.py:\d+"
    assert re.fullmatch(told, record.getMessage())
    assert record.exc_info is None


@each_form
@pytest.mark.parametrize('error', [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
async def test_exceptions_that_end_the_program_or_the_task_pass(error, form):
    tool = sync_and_async(check_approval=raising(error()))[form]

    coroutine = ask_check(tool, CONTEXT)
    with pytest.raises(error):
        await coroutine


async def test_cancelling_a_slow_check_passes():
    is_asked = asyncio.Event()

    async def check_approval(ctx):
        is_asked.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(ask_check(SimpleNamespace(check_approval=check_approval), CONTEXT))
    await is_asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
