"""What an approval is tied to, and what is refused where nothing can be told."""

from dataclasses import fields
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.arguments import as_json, read_arguments
from tool_approval.core.binding import Binding
from tool_approval.core.calls import Call
from tool_approval.core.gate import Gate
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.guard import UNBOUND
from tool_approval.integrations.pydantic_ai.results import refuse, with_notice
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import ScriptedUI, approve_all

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalRequest, NotCanonicalError

from .agents import Log


def bound(controller: ApprovalController, **args: Any) -> Binding:
    return Gate(controller).bind(ApprovalRequest(tool_name='delete', args=args), by_policy=False)


def is_approved(controller: ApprovalController, binding: Binding, tool_name: str, args: dict[str, Any]) -> bool:
    call = Call(tool_name=tool_name, arguments=read_arguments(args), values=args)
    return Gate(controller).is_bound(Binding.of(binding.as_json()), call)


def test_an_approval_is_of_its_tool_its_arguments_and_its_controller():
    controller = ApprovalController()
    binding = bound(controller, path='a')

    assert is_approved(controller, binding, 'delete', {'path': 'a'})
    assert not is_approved(controller, binding, 'remove', {'path': 'a'})
    assert not is_approved(controller, binding, 'delete', {'path': 'b'})
    assert not is_approved(controller, binding, 'delete', {'path': 'a', 'force': True})
    assert not is_approved(ApprovalController(), binding, 'delete', {'path': 'a'})


def test_a_lasting_key_lets_another_process_take_an_approval_up():
    key = b'k' * 32

    assert is_approved(
        ApprovalController(key=key), bound(ApprovalController(key=key), path='a'), 'delete', {'path': 'a'}
    )


def test_a_mapping_inside_of_a_single_parameter_is_no_unpacked_model():
    controller = ApprovalController()
    binding = bound(controller, path='a')

    assert not is_approved(controller, binding, 'delete', {'options': {'path': 'a'}})


@pytest.mark.parametrize(
    'forged', [{}, {'digest': 1, 'bound_to': {}}, {'digest': 'ä', 'bound_to': {}}, {'digest': 'a', 'bound_to': None}]
)
def test_a_malformed_binding_approves_nothing(forged: Any):
    call = Call(tool_name='delete', arguments=read_arguments({}), values={})

    assert not Gate(ApprovalController()).is_bound(Binding.of(forged), call)
    assert Binding.of(forged).by_policy


def test_arguments_that_have_no_json_form_are_not_what_was_approved():
    circular: dict[str, Any] = {}
    circular['itself'] = circular
    for args in ({'x': object()}, circular, {'x': b'\xff'}, {'x': float('inf')}):
        with pytest.raises(NotCanonicalError):
            as_json(args)


def test_a_call_without_its_binding_does_not_run():
    """As when another layer replaces what the handler told the tool."""
    agent = Agent(scripted([call('delete', '1')], 'done'))
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    log = Log()

    class Forgetful(Approvals):
        async def __call__(self, ctx: Any, requests: Any) -> Any:
            results = await super().__call__(ctx, requests)
            results.metadata.clear()
            return results

    handler = Forgetful(ApprovalController(ui=approve_all(), audit=log), default='none')

    result = agent.run_sync('go', deferred_tool_handler=handler)

    assert returns(result.all_messages())['1'] == (UNBOUND, 'failed')
    assert log.told == [('decision', True, '1'), ('blocked', None, '1')]


def test_a_tool_that_refuses_itself_has_failed_and_says_nothing_of_changed_arguments():
    agent = Agent(scripted([call('delete', '1', path='a')], 'done'))

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        refuse('not this one')

    log = Log()
    ui = ScriptedUI([ApprovalDecision(approved=True, override_args={'path': 'b'})])
    result = agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui, audit=log), default='none'))

    assert returns(result.all_messages())['1'] == ('not this one', 'failed')
    assert log.told == [('decision', True, '1'), ('outcome', 'failed', '1')]


def test_the_notice_keeps_the_rest_of_a_tool_return():
    class Own(ToolReturn[Any]):
        pass

    given = Own({'n': 1}, content='more', metadata={'kept': True}, tools=['revealed'])

    told = with_notice(given, 'It ran with a.')

    changed = {each.name for each in fields(given) if getattr(told, each.name) != getattr(given, each.name)}
    assert (type(told), changed, told.return_value['n']) == (Own, {'return_value'}, 1)


def test_a_tool_without_a_valid_schema_is_not_called_elsewhere():
    broken = ExternalToolset([ToolDefinition(name='ask', parameters_json_schema={'type': 'no such type'})])
    agent = Agent(scripted([call('ask', '1')], 'done'), toolsets=[broken])

    result = agent.run_sync(
        'go', deferred_tool_handler=Approvals(ApprovalController(), external={'ask': print}, default='none')
    )

    assert returns(result.all_messages())['1'] == (
        "The arguments of 'ask' are invalid (the schema of the tool is invalid), so the call was not run.",
        'failed',
    )


def test_approval_for_always_ends_when_the_definition_of_the_tool_changes(tmp_path: Any):
    """A tool of the same name with another description or schema is another tool."""

    def remember(description: str, answers: list[Any]) -> list[str]:
        ui = ScriptedUI(answers)
        store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')
        agent = Agent(scripted([call('delete', '1', path='a')], 'done'), name='janitor')
        ran: list[str] = []
        agent.tool_plain(name='delete', requires_approval=True, description=description)(_delete(ran))
        controller = ApprovalController(ui=ui, memory=ApprovalMemory(store))
        agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))
        ui.assert_done()
        return ran

    (tmp_path / 'project').mkdir()

    assert remember('Delete a file.', ['a']) == ['a']
    assert remember('Delete a file.', []) == ['a']
    assert remember('Delete everything.', ['n']) == []


def _delete(ran: list[str]) -> Any:
    def delete(path: str) -> str:
        ran.append(path)
        return 'deleted'

    return delete


def test_a_tool_whose_schema_has_no_json_form_is_known_by_no_definition():
    from tool_approval.integrations.pydantic_ai.requests import tool_facts

    definition = ToolDefinition(name='odd', parameters_json_schema={'default': float('nan')})
    tool = SimpleNamespace(tool_def=definition, toolset=SimpleNamespace(id=None))
    ctx: Any = SimpleNamespace(tool_manager=SimpleNamespace(tools={'odd': tool}))

    assert tool_facts(ctx, 'odd') == {'tool_digest': None}


class Archive(BaseModel):
    item: str


class Delete(BaseModel):
    item: Decimal


OPS = (('1', '1'), ('2', '1'), ('3', 1))


def test_approval_for_the_session_covers_only_the_type_that_was_approved():
    """The model gives text for the one and a number for the other, and both have the same JSON form."""
    ran: list[Any] = []
    agent = Agent(scripted(*([call('act', each, op={'item': item})] for each, item in OPS), 'done'), name='janitor')

    @agent.tool_plain(requires_approval=True)
    def act(op: Archive | Delete, memo: str = '') -> str:
        ran.append(op)
        return 'done'

    ui = ScriptedUI(['s', 'n'])
    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    ui.assert_done()
    assert [request.args['op'] for request in ui.requests] == [{'item': '1'}] * 2
    assert ran == [Archive(item='1')] * 2
