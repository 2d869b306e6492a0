"""`@requires_approval` leaves the function as it is, and makes its calls ask for approval."""

import asyncio
import inspect
import sys

import pytest
from tool_approval.testing import RecordingUI

from tool_approval import (
    ApprovalContext,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalRefused,
    execute_tool,
    requires_approval,
)

ARGS = {'to': 'ada', 'subject': 'hello', 'body': 'hunter2'}


def requested(function, args=ARGS, name='mail'):
    return function.check_approval(ApprovalContext(tool_name=name, args=args))


def mail(to: str, subject: str, body: str) -> str:
    """Send a mail."""
    return f'sent to {to}'


def test_decorator_returns_the_same_callable_function():
    decorated = requires_approval()(mail)

    assert decorated is mail
    assert decorated('ada', 'hello', body='hunter2') == 'sent to ada'
    assert inspect.getdoc(decorated) == 'Send a mail.'
    assert list(inspect.signature(decorated).parameters) == ['to', 'subject', 'body']


CALL = "mail(to='ada', subject='hello', body='hunter2')"


@pytest.mark.parametrize(
    ('options', 'description', 'payload'),
    [
        ({}, CALL, ARGS),
        ({'description': 'Send a mail'}, 'Send a mail', ARGS),
        (
            {'description': lambda args: f'Mail to {args["to"]}', 'exclude_keys': {'body'}},
            'Mail to ada',
            {'to': 'ada', 'subject': 'hello'},
        ),
        (
            {'payload': lambda args: {'domain': args['to'], 'body': 'kept'}, 'exclude_keys': {'body'}},
            "mail(domain='ada')",
            {'domain': 'ada', 'body': 'kept'},
        ),
        ({'payload': lambda args: {}, 'description': lambda args: 'Send'}, 'Send', {}),
    ],
    ids=['by default', 'a text', 'made from the arguments', 'own payload overrides excluded keys', 'both'],
)
def test_description_and_payload_of_a_request(options, description, payload):
    request = requested(requires_approval(**options)(lambda **args: None))

    assert request.args == ARGS
    assert request.description == description
    assert request.payload == payload


@pytest.mark.parametrize('exclude_keys', [{'body'}, ['body'], ('body',), 'body', iter(['body'])])
def test_automatic_description_shows_no_excluded_value(exclude_keys):
    function = requires_approval(exclude_keys=exclude_keys)(lambda **args: None)

    requests = [requested(function), requested(function)]

    for request in requests:
        assert request.description == "mail(to='ada', subject='hello')"
        assert request.payload == {'to': 'ada', 'subject': 'hello'}
        assert request.args == ARGS


def test_later_change_of_the_collection_does_not_change_the_excluded_keys():
    exclude_keys = {'body'}
    function = requires_approval(exclude_keys=exclude_keys)(lambda **args: None)

    exclude_keys.clear()

    assert 'hunter2' not in requested(function).description


@pytest.mark.parametrize(
    ('exclude_keys', 'shown'),
    [
        ((), "mail(to='ada', body='hunter2')"),
        ({'body'}, "mail(to='ada')"),
        ({'subject'}, "mail(to='ada', body='hunter2')"),
    ],
)
def test_description_of_an_own_payload_leaves_out_excluded_keys(exclude_keys, shown):
    decorate = requires_approval(
        payload=lambda args: {'to': args['to'], 'body': args['body']}, exclude_keys=exclude_keys
    )

    assert requested(decorate(lambda **args: None)).description == shown


def test_a_description_or_payload_function_cannot_change_the_arguments():
    def careless(args):
        args['to'] = 'eve'
        return args

    decorate = requires_approval(description=lambda args: careless(args)['to'], payload=careless)
    context = ApprovalContext(tool_name='mail', args=ARGS)

    request = decorate(lambda **args: None).check_approval(context)

    assert context.args == ARGS
    assert request.args == ARGS
    assert request.payload['to'] == 'eve'


def test_request_has_the_name_the_model_uses():
    request = requested(requires_approval()(mail), name='send_mail')

    assert request.tool_name == 'send_mail'
    assert request.description.startswith('send_mail(')


@pytest.mark.parametrize(
    ('tool', 'args', 'excluded', 'payload'),
    [
        ('write_file', {'path': 'a', 'content': 'x' * 9000}, {'content'}, {'path': 'a'}),
        ('run', {'command': 'ls', 'output': 'x'}, {'output'}, {'command': 'ls'}),
        ('post', {'method': 'POST', 'url': 'u', 'body': '{}'}, {'body'}, {'method': 'POST', 'url': 'u'}),
        ('query', {'operation': 'DELETE', 'table': 't', 'rows': [1]}, {'rows'}, {'operation': 'DELETE', 'table': 't'}),
    ],
)
def test_bulky_values_stay_out_of_payload_and_description(tool, args, excluded, payload):
    request = requested(requires_approval(exclude_keys=excluded)(lambda **args: None), args, tool)

    assert request.payload == payload
    assert not any(repr(args[key]) in request.description for key in excluded)


class Mailbox:
    @requires_approval(exclude_keys={'body'})
    def mail(self, to, body):
        return f'{type(self).__name__} sent to {to}'

    @staticmethod
    @requires_approval(exclude_keys={'body'})
    def static_mail(to, body):
        return f'sent to {to}'

    @classmethod
    @requires_approval(exclude_keys={'body'})
    def class_mail(cls, to, body):
        return f'{cls.__name__} sent to {to}'


@requires_approval(exclude_keys={'body'})
async def async_mail(to, body):
    return f'sent to {to}'


@requires_approval(exclude_keys={'body'})
def plain_mail(to, body):
    return f'sent to {to}'


@pytest.mark.parametrize(
    'function',
    [plain_mail, async_mail, Mailbox().mail, Mailbox.static_mail, Mailbox().class_mail],
    ids=lambda f: f.__name__,
)
def test_functions_of_every_kind_ask_and_run(function):
    ui = RecordingUI()
    controller = ApprovalController(ui=ui)

    result = asyncio.run(execute_tool(function, 'mail', {'to': 'ada', 'body': 'hunter2'}, controller))

    assert result.endswith('sent to ada')
    assert [request.description for request in ui.requests] == ["mail(to='ada')"]


@pytest.mark.parametrize('function', [plain_mail, async_mail, Mailbox().mail], ids=lambda f: f.__name__)
def test_functions_of_every_kind_do_not_run_when_denied(function):
    controller = ApprovalController(mode='strict')

    with pytest.raises(ApprovalDenied, match='Strict mode: calls that need approval'):
        asyncio.run(execute_tool(function, 'mail', {'to': 'ada', 'body': 'hunter2'}, controller))


@pytest.mark.parametrize('kind', [staticmethod, classmethod])
def test_a_decorator_that_would_never_be_asked_is_an_error(kind):
    with pytest.raises(TypeError, match='below `@staticmethod`'):
        requires_approval()(kind(lambda *args: None))


def test_one_decorator_may_mark_several_functions():
    decorate = requires_approval(description='Careful')

    marked = [decorate(lambda: 1), decorate(lambda: 2)]

    assert [function() for function in marked] == [1, 2]
    assert [requested(function).description for function in marked] == ['Careful', 'Careful']


def test_decorated_function_is_usable_without_any_approval():
    @requires_approval()
    def double(number):
        return number * 2

    assert double(4) == 8
    assert list(map(double, [1, 2])) == [2, 4]


def test_pydantic_ai_is_not_imported_if_it_is_absent(monkeypatch):
    monkeypatch.delitem(sys.modules, 'pydantic_ai', raising=False)
    monkeypatch.setattr(
        'tool_approval.core.tool_checks.import_module', lambda name: pytest.fail(f'{name} was imported')
    )

    assert requested(requires_approval()(lambda **args: None)) is not None


@pytest.mark.parametrize('options', [{}, {'payload': lambda args: {'to': args['to']}}, {'exclude_keys': ['body']}])
def test_an_approver_may_approve_every_call_where_the_tool_offers_it(options):
    every = ApprovalDecision(approved=True, remember='session', remember_option='tool')
    ui = RecordingUI(every)
    controller = ApprovalController(ui=ui)
    offering = requires_approval(any_arguments=True, **options)(lambda to, body='': f'to {to}')

    for to in ('ada', 'bob'):
        metadata = {'session_id': 's'}
        assert asyncio.run(execute_tool(offering, 'mail', {'to': to, 'body': 'b'}, controller, metadata)) == f'to {to}'
    assert asyncio.run(execute_tool(offering, 'letter', {'to': 'eve'}, controller, metadata)) == 'to eve'

    assert [(request.tool_name, request.args['to']) for request in ui.requests] == [('mail', 'ada'), ('letter', 'eve')]
    [option] = ui.requests[0].remember_options
    assert option.label == 'every call of `mail`, whatever the arguments'


def test_no_tool_offers_every_call_by_itself():
    every = ApprovalDecision(approved=True, remember='session', remember_option='tool')

    with pytest.raises(ApprovalRefused):
        asyncio.run(
            execute_tool(
                requires_approval()(lambda **args: 'sent'),
                'mail',
                ARGS,
                ApprovalController(ui=RecordingUI(every)),
                {'session_id': 's'},
            )
        )
