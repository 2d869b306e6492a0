import asyncio
import copy
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel
from tool_approval.answering import answer_options
from tool_approval.core.arguments import TYPES, read_arguments
from tool_approval.core.memory import DENIED_BEFORE
from tool_approval.display import facts
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI

from tests.approval.parts import NOON, ListSink, decide, noon, request_for, run_tool
from tests.tables import table
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    Bounds,
    LineageEntry,
    NotCanonicalError,
    RememberOption,
    StoreError,
    requires_approval,
)

SESSION = ApprovalDecision(approved=True, remember='session', decided_by=('ada',), decided_at=NOON)
ALWAYS = SESSION.model_copy(update={'remember': 'always'})
DENIED_FOR_THE_SESSION = ApprovalDecision(approved=False, remember='session', decided_by=('ada',), decided_at=NOON)
ROOT = LineageEntry(agent_name='root', run_id='run 1', tool_name='research', tool_call_id='call 1')


def remembering(*requests, **options):
    memory = ApprovalMemory(**options)
    for request in requests:
        memory.store(request, SESSION)
    return memory


@pytest.fixture
def store(tmp_path):
    return FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')


@pytest.fixture
def memory(store):
    """What is approved for the session is `a`, and what is always approved is `b`."""
    memory = ApprovalMemory(store)
    memory.store(request_for('a'), SESSION)
    memory.store(request_for('b'), ALWAYS)
    return memory


def test_an_identical_request_is_approved_from_memory():
    memory = remembering(request_for({'b': 1, 'a': [2]}))

    found = memory.lookup(request_for({'a': [2], 'b': 1}))

    assert found == ApprovalDecision(
        approved=True, note="remembered: delete(path={'b': 1, 'a': [2]})", decided_by=('ada',), decided_at=NOON
    )


@pytest.mark.parametrize('path', ['b', 1, True, None, ['a'], {'a': 'a'}])
def test_another_payload_is_not_approved_from_memory(path):
    memory = remembering(request_for('a'))

    assert memory.lookup(request_for(path)) is None


def test_numbers_that_are_spelt_differently_are_different_payloads():
    memory = remembering(request_for(1))

    assert [memory.lookup(request_for(path)) for path in (1.0, True, '1')] == [None] * 3


def test_approval_for_one_call_is_not_remembered():
    memory = ApprovalMemory()

    memory.store(request_for(), ApprovalDecision(approved=True))

    assert memory.lookup(request_for()) is None
    assert len(memory) == 0


@given(remember=st.sampled_from(['none', 'always']), note=st.none() | st.text())
def test_a_denial_is_not_remembered_for_always(remember, note):
    memory = ApprovalMemory()

    memory.store(request_for(), ApprovalDecision(approved=False, remember=remember, note=note))

    assert memory.lookup(request_for()) is None
    assert memory.list_approvals() == []


def test_a_denied_call_is_asked_about_again_unless_the_denial_is_remembered():
    left = [False, False, DENIED_FOR_THE_SESSION]
    ui = RecordingUI(lambda request: left.pop(0))
    log = ListSink()
    controller = ApprovalController(ui=ui, audit=log)

    decisions = [decide(controller, request_for()) for _ in range(5)]

    assert not any(decision.approved for decision in decisions)
    assert len(ui.requests) == 3
    assert [entry['how'] for entry in log.decisions()] == ['person'] * 3 + ['memory'] * 2
    assert log.decisions()[2]['remember'] == 'session'
    assert decisions[4].note == DENIED_BEFORE


def test_the_note_of_a_remembered_denial_is_read_each_time():
    memory = ApprovalMemory()
    memory.store(request_for(), DENIED_FOR_THE_SESSION.model_copy(update={'note': 'Ask Eve \udc80.'}))

    found = memory.lookup(request_for())

    assert found is not None
    assert found.note == f'{DENIED_BEFORE} The note was: Ask Eve ?.'


def test_a_remembered_denial_is_for_the_same_call_in_the_same_session():
    memory = ApprovalMemory()
    memory.store(request_for('a', session_id='s'), DENIED_FOR_THE_SESSION)

    found = memory.lookup(request_for('a', session_id='s'))
    assert found is not None
    assert (found.approved, found.decided_by) == (False, ('ada',))
    assert memory.lookup(request_for('b', session_id='s')) is None
    assert memory.lookup(request_for('a', session_id='t')) is None


def test_a_remembered_denial_goes_before_every_approval(store):
    wide = RememberOption(kind='folder', label='every file in notes/', payload={'folder': 'notes'})
    request = request_for('notes/a', remember_options=(wide,))
    memory = ApprovalMemory(store)
    for decision in (SESSION, ALWAYS, SESSION.model_copy(update={'remember_option': 'folder'})):
        memory.store(request, decision)

    memory.store(request, DENIED_FOR_THE_SESSION)

    found = memory.lookup(request)
    assert found is not None
    assert not found.approved
    other = memory.lookup(request_for('notes/b', remember_options=(wide,)))
    assert other is not None
    assert other.approved


def test_a_remembered_denial_approves_nothing_before_the_call_runs():
    memory = ApprovalMemory()
    memory.store(request_for(), DENIED_FOR_THE_SESSION)
    [listed] = memory.list_approvals()

    assert listed.is_denial
    assert not memory.holds(listed.id)


def test_a_remembered_denial_can_be_revoked():
    memory = ApprovalMemory()
    memory.store(request_for(), DENIED_FOR_THE_SESSION)
    [listed] = memory.list_approvals()

    assert memory.revoke(listed.id)
    assert memory.lookup(request_for()) is None


def test_a_remembered_denial_outlasts_the_rights_of_its_approver():
    memory = ApprovalMemory(is_allowed=lambda approver: False)
    memory.store(request_for(), DENIED_FOR_THE_SESSION)

    found = memory.lookup(request_for())

    assert found is not None
    assert not found.approved


def test_a_denial_cannot_be_remembered_with_bounds():
    request = request_for(remember_options=(RememberOption(kind='b', label='b', payload={}, bounds=Bounds(uses=2)),))

    with pytest.raises(ValueError, match='does not offer to remember the decision'):
        ApprovalMemory().store(request, DENIED_FOR_THE_SESSION.model_copy(update={'remember_option': 'b'}))


def test_a_denial_is_not_remembered_where_nothing_may_be_remembered():
    ui = RecordingUI(DENIED_FOR_THE_SESSION)
    controller = ApprovalController(ui=ui)

    for _ in range(2):
        assert not decide(controller, request_for(answers=('approve',))).approved

    assert len(ui.requests) == 2


def test_an_approval_of_changed_arguments_is_not_remembered():
    memory = ApprovalMemory()

    memory.store(request_for(), SESSION.model_copy(update={'override_args': {'path': 'b'}}))

    assert len(memory) == 0


def test_a_coarser_payload_approves_more():
    memory = remembering(request_for('a', payload={'folder': 'notes'}))

    assert memory.lookup(request_for('b', payload={'folder': 'notes'})) is not None
    assert memory.lookup(request_for('b')) is None


def test_a_wider_option_approves_what_it_covers_and_nothing_of_another_kind():
    folder = RememberOption(kind='folder', label='every file in notes/', payload={'folder': 'notes'})
    program = RememberOption(kind='program', label='every delete', payload={'folder': 'notes'})
    memory = ApprovalMemory()

    memory.store(
        request_for('notes/a', remember_options=(folder,)), SESSION.model_copy(update={'remember_option': 'folder'})
    )

    found = memory.lookup(request_for('notes/b', remember_options=(folder,)))
    assert found is not None
    assert (found.note, found.remember_option) == ('remembered: every file in notes/', 'folder')
    assert memory.lookup(request_for('notes/b', remember_options=(program,))) is None
    assert memory.lookup(request_for('notes/b')) is None


def test_a_wide_option_never_meets_an_exact_payload():
    option = RememberOption(kind='folder', label='every file', payload={'path': 'a'})
    memory = ApprovalMemory()

    memory.store(request_for('x', remember_options=(option,)), SESSION.model_copy(update={'remember_option': 'folder'}))

    assert memory.lookup(request_for('a')) is None


def test_an_option_that_calls_itself_exact_is_not_offered():
    option = RememberOption.model_construct(kind='exact', label='all', payload={'path': 'b'})
    memory = remembering(request_for('a', remember_options=(option,)))

    assert memory.lookup(request_for('a')) is not None
    assert memory.lookup(request_for('b')) is None


def test_remember_option_that_the_request_does_not_offer_is_refused():
    with pytest.raises(ValueError, match="does not offer to remember the decision as 'folder'"):
        ApprovalMemory().store(request_for(), SESSION.model_copy(update={'remember_option': 'folder'}))


@pytest.mark.parametrize(
    'other',
    [
        {'tool_name': 'read'},
        {'session_id': 'bob'},
        {'metadata': {'caller': 'root', 'toolset_id': 'disk'}},
        {'metadata': {'caller': 'someone else'}},
        {'metadata': {}},
        {'lineage': (ROOT,)},
    ],
)
def test_approval_holds_only_for_its_tool_session_toolset_and_agent(other):
    known = {'session_id': 'ada', 'run_id': 'run 1', 'metadata': {'caller': 'root'}}
    memory = remembering(request_for(**known))

    assert memory.lookup(request_for(**known)) is not None
    assert memory.lookup(request_for(**{**known, **other})) is None


def test_a_conversation_goes_on_over_several_runs():
    memory = remembering(request_for(session_id='chat', run_id='run 1', metadata={'caller': 'root'}))

    assert memory.lookup(request_for(session_id='chat', run_id='run 2', metadata={'caller': 'root'})) is not None


def test_without_a_session_id_the_outermost_run_is_the_session():
    asked = {'metadata': {'caller': 'child'}, 'lineage': (ROOT,)}
    memory = remembering(request_for(run_id='run 2', **asked))

    assert memory.lookup(request_for(run_id='run 3', **asked)) is not None
    elsewhere = ROOT.model_copy(update={'run_id': 'run 9'})
    assert memory.lookup(request_for(run_id='run 2', **{**asked, 'lineage': (elsewhere,)})) is None


def test_agents_that_share_are_those_below_one_outermost_agent():
    memory = remembering(
        request_for(session_id='chat', run_id='run 1', metadata={'caller': 'root'}), shares_with_nested=True
    )

    nested = request_for(session_id='chat', run_id='run 2', metadata={'caller': 'child'}, lineage=(ROOT,))
    assert memory.lookup(nested) is not None
    assert memory.lookup(request_for(session_id='chat', run_id='run 3', metadata={'caller': 'other'})) is None


def test_approval_for_a_nested_agent_holds_for_agents_it_shares_with():
    nested = request_for(session_id='chat', run_id='run 2', metadata={'caller': 'child'}, lineage=(ROOT,))
    memory = remembering(nested, shares_with_nested=True)

    assert memory.lookup(request_for(session_id='chat', run_id='run 1', metadata={'caller': 'root'})) is not None


def test_unnamed_outermost_agent_shares_only_with_its_own_runs():
    unnamed = ROOT.model_copy(update={'agent_name': None})
    memory = remembering(request_for(session_id='chat', run_id='run 1'), shares_with_nested=True)

    assert memory.lookup(request_for(session_id='chat', run_id='run 2', lineage=(unnamed,))) is not None
    assert memory.lookup(request_for(session_id='chat', run_id='run 3')) is None


def test_approval_for_always_needs_a_store():
    with pytest.raises(StoreError, match=r"needs a memory with a store; pass .*remember='\.'"):
        ApprovalMemory().store(request_for(), ALWAYS)


def test_approval_for_always_is_found_by_the_next_process(store, tmp_path):
    ApprovalMemory(store).store(request_for(session_id='monday'), ALWAYS)
    [kept] = store.list_all()
    assert kept.project == store.scope['project']

    memory = ApprovalMemory(FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json'))

    found = memory.lookup(request_for(session_id='tuesday'))
    assert found is not None
    assert found.decided_by == ('ada',)
    assert len(memory) == 0


def test_approval_for_always_covers_one_project_and_one_tool_definition(store, tmp_path):
    asked = {'metadata': {'caller': 'root', 'tool_digest': 'version 1'}}
    same = ApprovalMemory(store)
    same.store(request_for(**asked), ALWAYS)

    elsewhere = ApprovalMemory(FileApprovalStore(tmp_path / 'other', tmp_path / 'state' / 'approvals.json'))

    assert same.lookup(request_for(**asked)) is not None
    assert elsewhere.lookup(request_for(**asked)) is None
    assert same.lookup(request_for(metadata={'caller': 'root', 'tool_digest': 'version 2'})) is None


def test_approvals_of_a_revoked_approver_no_longer_hold(store):
    allowed = {'ada'}
    memory = ApprovalMemory(store, is_allowed=lambda approver: approver in allowed)
    memory.store(request_for('a'), SESSION)
    memory.store(request_for('b'), ALWAYS)
    assert memory.lookup(request_for('a')) is not None

    allowed.clear()

    assert memory.lookup(request_for('a')) is None
    assert memory.lookup(request_for('b')) is None


def test_list_approvals_names_what_is_remembered_and_len_counts_the_session(memory):
    listed = memory.list_approvals()

    assert [(each.tool_name, each.kind, each.label, each.approved_by, each.approved_at) for each in listed] == [
        ('delete', 'exact', "delete(path='a')", ('ada',), NOON),
        ('delete', 'exact', "delete(path='b')", ('ada',), NOON),
    ]
    assert len(memory) == 1


def test_a_grant_is_listed_revoked_and_void_without_its_approver():
    allowed = {'ada'}
    memory = ApprovalMemory(is_allowed=lambda approver: approver in allowed)
    lacks = request_for(run_id='run', metadata={'missing_capabilities': ['net', 'disk']})
    others = [
        lacks.model_copy(update={'run_id': 'other'}),
        lacks.model_copy(update={'run_id': None}),
        lacks.model_copy(update={'tool_name': 'other'}),
        lacks.model_copy(update={'metadata': {**lacks.metadata, 'toolset_id': 'other'}}),
        lacks.model_copy(update={'metadata': {**lacks.metadata, 'caller': 'other'}}),
    ]
    for request in (lacks, others[1]):
        memory.grant(request, ('ada',))

    assert memory.granted(lacks) == {'net', 'disk'}
    assert [memory.granted(request) for request in others] == [frozenset()] * 5
    assert {(each.kind, each.label, each.approved_by) for each in memory.list_approvals()} == {
        ('capability', 'capability net, for one run', ('ada',)),
        ('capability', 'capability disk, for one run', ('ada',)),
    }
    memory.revoke(memory.list_approvals()[0].id)
    assert memory.granted(lacks) == {'disk'}
    allowed.clear()
    assert memory.granted(lacks) == frozenset()


def test_a_revoked_approval_is_asked_about_again(memory):
    revoked = [memory.revoke(each.id) for each in memory.list_approvals()]

    assert revoked == [True, True]
    assert memory.list_approvals() == []
    assert memory.revoke('0' * 64) is False
    assert ApprovalMemory().revoke('0' * 64) is False


def test_clearing_forgets_the_session_and_keeps_approvals_for_always(memory):
    memory.clear()

    assert memory.lookup(request_for('a')) is None
    assert memory.lookup(request_for('b')) is not None


def test_an_approval_is_dated_when_its_decision_is_not():
    memory = ApprovalMemory(now=noon)

    memory.store(request_for(), ApprovalDecision(approved=True, remember='session'))

    assert [each.approved_at for each in memory.list_approvals()] == [NOON]


def test_a_label_shows_no_excluded_argument_and_no_half_character():
    option = RememberOption(kind='folder', label='with hunter22 in \udce9/', payload={'folder': 'x'})
    request = request_for(args={'path': 'a', 'word': 'hunter22'}, payload={'path': 'a'}, remember_options=(option,))
    memory = ApprovalMemory()

    memory.store(request, SESSION.model_copy(update={'remember_option': 'folder'}))

    assert [each.label for each in memory.list_approvals()] == ['with [redacted] in ?/']


def test_ids_reveal_nothing_without_the_key():
    one, other = remembering(request_for()), remembering(request_for())
    same = remembering(request_for(), key=b'x' * 16), remembering(request_for(), key=b'x' * 16)

    assert one.list_approvals()[0].id != other.list_approvals()[0].id
    assert same[0].list_approvals()[0].id == same[1].list_approvals()[0].id


def test_a_payload_without_a_canonical_form_is_refused():
    with pytest.raises(NotCanonicalError, match='not finite'):
        ApprovalMemory().lookup(request_for(float('nan')))


def test_controllers_share_no_memory_unless_they_are_given_one():
    shared = ApprovalMemory()
    first = ApprovalController(ui=RecordingUI('s'))
    denies = [ApprovalController(), ApprovalController(memory=shared)]

    approved = asyncio.run(first.request_approval(request_for()))

    assert approved.approved
    assert [decide(controller, request_for()).approved for controller in denies] == [False, False]
    assert decide(ApprovalController(ui=RecordingUI('s'), memory=shared), request_for()).approved
    assert decide(denies[1], request_for()).approved


def test_an_approval_of_hidden_arguments_is_neither_remembered_nor_found():
    memory = remembering(request_for())
    hiding = request_for().model_copy(update={'hides_arguments': True})

    assert memory.lookup(hiding) is None
    memory.clear()
    memory.store(hiding, SESSION)
    assert len(memory) == 0


def test_hidden_arguments_are_granted_capabilities_for_their_own_call():
    memory = ApprovalMemory()
    lacks = request_for(run_id='run', metadata={'missing_capabilities': ['net']})
    hiding = lacks.model_copy(update={'hides_arguments': True})

    memory.grant(hiding, ('ada',))
    assert memory.granted(lacks) == frozenset()
    memory.grant(lacks, ('ada',))
    assert memory.granted(lacks) == {'net'}
    assert memory.granted(hiding) == frozenset()
    assert dict(facts(hiding))['grants'] == 'net, for this call'


NESTED = {'metadata': {'caller': 'worker'}, 'run_id': 'run 2', 'lineage': (ROOT,)}
UNNAMED_ROOT = (ROOT.model_copy(update={'agent_name': None}),)


@table(
    'fields, spans',
    [
        ({}, ('session', 'always')),  # no agent is known, in no run
        ({'metadata': {'caller': 'a'}, 'run_id': 'run 1'}, ('session', 'always')),
        ({'run_id': 'run 1'}, ('session',)),  # the session is the run
        ({'run_id': 'run 1', 'session_id': 'chat'}, ()),
        ({'run_id': 'run 1', 'session_id': 'run 1'}, ('session',)),
        (NESTED, ('session', 'always')),
        ({**NESTED, 'metadata': {}}, ()),  # the session is the outer run
        ({**NESTED, 'lineage': UNNAMED_ROOT}, ('session',)),
        ({**NESTED, 'lineage': UNNAMED_ROOT, 'session_id': 'chat'}, ()),
    ],
)
def test_remembering_is_offered_only_for_as_long_as_the_approval_is_found_again(store, fields, spans):
    ui = RecordingUI()
    controller = ApprovalController(ui=ui, memory=ApprovalMemory(store))

    decide(controller, request_for(**fields))

    assert answer_options(ui.requests[0]).spans == spans


def test_agents_that_share_with_an_unnamed_nested_agent_are_known_by_the_outermost(store):
    memory = ApprovalMemory(store, shares_with_nested=True)

    assert memory.can_keep(request_for(**{**NESTED, 'metadata': {}}), 'always')
    assert not memory.can_keep(request_for(**{**NESTED, 'lineage': UNNAMED_ROOT}), 'always')


class Archive(BaseModel):
    item: str


class Delete(BaseModel):
    item: Decimal


class Same(Archive):
    pass


@dataclass
class Nested:
    parts: list[Any]


class Root(RootModel[Any]):
    pass


def asked_again(first, second, name='op'):
    """How often a person is asked about two calls, if the first is approved for the session."""
    ui = RecordingUI('s')
    controller = ApprovalController(ui=ui)
    ran = []

    @requires_approval()
    def act(**args):
        ran.append(args)

    for value in (first, second):
        run_tool(act, {name: value}, controller)
    assert ran == [{name: first}, {name: second}]
    return len(ui.requests) == 2


@table(
    'first, second',
    [
        (Archive(item='1'), Delete(item=Decimal(1))),
        (Archive(item='1'), Same(item='1')),
        (Archive(item='1'), {'item': '1'}),
        (Nested([Decimal(1)]), Nested(['1'])),
        ([Archive(item='1')], [Delete(item=Decimal(1))]),
        ({'a': date(2026, 1, 1)}, {'a': '2026-01-01'}),
        (Root(Decimal(1)), Root('1')),
        ({Decimal(1)}, {'1'}),
        ((1,), [1]),
    ],
)
def test_a_call_of_another_type_is_not_approved_from_memory(first, second):
    assert asked_again(first, second)
    assert not asked_again(first, copy.deepcopy(first))


def test_types_count_only_for_the_arguments_that_identify_the_call():
    ui = RecordingUI('s')
    controller = ApprovalController(ui=ui)

    @requires_approval(payload=lambda args: {'place': 'a'})
    def placed(op):
        pass

    @requires_approval(exclude_keys={'op'})
    def partly(op, path):
        pass

    for op in (Archive(item='1'), Delete(item=Decimal(1))):
        run_tool(placed, {'op': op}, controller)
        run_tool(partly, {'op': op, 'path': 'a'}, controller)

    assert len(ui.requests) == 2


def test_a_tool_cannot_declare_the_types_of_other_arguments():
    controller = ApprovalController()
    arguments = read_arguments({'op': Delete(item=Decimal(1))})

    bound_to = controller.bound_to(arguments, {TYPES: {'op': []}, 'own': 1})

    assert bound_to == {'own': 1, TYPES: dict(arguments.types)}
    assert [path for path, _ in arguments.types['op']] == [[], ['item']]
    assert read_arguments({'op': Delete(item=Decimal(1))}, {'op': {'item': 1}}).types == arguments.types
    assert read_arguments({'op': {'item': '1'}}).types == {}
