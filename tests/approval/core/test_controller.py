import asyncio
import hashlib
import json
import subprocess
import sys
import threading
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.core.presentation import NEEDS_A_PERSON
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all, deny_all

from tests.approval.parts import KEY, NOON, ListSink, decide, decide_all, logged, noon, request_for
from tool_approval import (
    ApprovalConfigError,
    ApprovalContext,
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalPresentation,
    AuditError,
    LineageEntry,
    RememberOption,
    StoreError,
    canonical_json,
)

MODES = ('interactive', 'approve_all', 'strict')
SHOWN = ApprovalPresentation(type='text', content='made late')


class Grouping(RecordingUI):
    """Asks about a group at once."""

    def __init__(self, answer=True):
        super().__init__(answer)
        self.groups = []

    def choose_group(self, requests, *, mode):
        self.groups.append([request.args['path'] for request in requests])
        return self.choose(requests[0], mode=mode)


class Broken:
    """A sink that cannot write."""

    def __init__(self, error):
        self.error = error

    def record(self, entry):
        raise self.error


STRICT = (
    'Strict mode: calls that need approval are denied without asking anyone. Use the mode `interactive` to be asked, '
    'or add a rule that allows such calls.'
)


@pytest.mark.parametrize(
    ('mode', 'approved', 'note'),
    [
        ('approve_all', True, None),
        ('auto_approve', True, None),
        ('strict', False, STRICT),
        ('auto_deny', False, STRICT),
    ],
)
def test_mode_other_than_interactive_decides_without_asking(mode, approved, note):
    ui = RecordingUI(not approved)

    decision = decide(ApprovalController(mode, ui=ui, now=noon), request_for())

    assert decision == ApprovalDecision(approved=approved, note=note, decided_by=('mode',), decided_at=NOON)
    assert ui.requests == []


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="unknown mode 'yolo'"):
        ApprovalController('yolo')


@pytest.mark.parametrize('timeout', [0, -1, float('nan')])
def test_timeout_that_is_not_positive_is_refused(timeout):
    with pytest.raises(ValueError, match='positive number of seconds'):
        ApprovalController(timeout=timeout)


@pytest.mark.parametrize(
    ('ui', 'kind'), [(object(), 'a value of type object'), (ScriptedUI, 'the class ScriptedUI'), (print, 'a value of')]
)
def test_ui_without_choose_is_refused_by_the_constructor(ui, kind):
    with pytest.raises(TypeError, match=f'an object with a method `choose.*, not {kind}'):
        ApprovalController(ui=ui)


def test_a_policy_may_be_given_as_a_mapping():
    with pytest.raises(ApprovalConfigError):
        ApprovalController(policy={'delete': {'approval': 'perhaps'}})
    assert decide(ApprovalController(policy={'delete': {'approval': 'none'}}), request_for()).decided_by == ('policy',)


@pytest.mark.parametrize('mode', MODES)
def test_call_pre_approved_by_policy_is_approved_in_every_mode(mode):
    ui = deny_all()
    controller = ApprovalController(mode, ui=ui, policy=ApprovalPolicy({'delete': {'approval': 'none'}}))

    decision = decide(controller, request_for())

    assert (decision.approved, decision.decided_by) == (True, ('policy',))
    assert ui.requests == []


@pytest.mark.parametrize('mode', MODES)
def test_a_block_beats_every_mode_and_a_remembered_approval(mode):
    memory = ApprovalMemory()
    memory.store(request_for(), ApprovalDecision(approved=True, remember='session'))
    ui = approve_all()
    controller = ApprovalController(mode, ui=ui, memory=memory, policy={'del*': {'approval': 'blocked'}})

    decision = decide(controller, request_for())

    assert (decision.approved, decision.decided_by) == (False, ('policy',))
    assert decision.note == "The tool 'delete' is blocked by policy."
    assert ui.requests == []


def test_strict_denies_remembered_calls():
    memory = ApprovalMemory()
    memory.store(request_for(), ApprovalDecision(approved=True, remember='session'))

    assert not decide(ApprovalController('strict', memory=memory), request_for()).approved


def test_call_approved_for_the_session_is_not_asked_again():
    ui = ScriptedUI(['s', True])
    controller = ApprovalController(ui=ui, now=noon)

    decisions = [decide(controller, request_for(path)) for path in ('a', 'a', 'b')]

    ui.assert_done()
    assert [request.args['path'] for request in ui.requests] == ['a', 'b']
    assert decisions[1] == ApprovalDecision(
        approved=True, note="remembered: delete(path='a')", decided_by=('memory',), decided_at=NOON
    )


def test_an_approval_holds_once_unless_it_is_to_be_remembered():
    ui = ScriptedUI([True, True])
    controller = ApprovalController(ui=ui)

    decide(controller, request_for())
    decide(controller, request_for())

    ui.assert_done()


def test_the_approvers_arguments_are_part_of_the_decision():
    controller = ApprovalController(ui=RecordingUI(ApprovalDecision(approved=True, override_args={'path': 'b'})))

    decision = decide(controller, request_for())

    assert (decision.approved, decision.override_args) == (True, {'path': 'b'})


def test_the_approvers_note_is_part_of_the_denial():
    assert decide(ApprovalController(ui=deny_all('not on a Friday')), request_for()).note == 'not on a Friday'


def test_every_request_of_a_response_is_decided_in_its_order():
    ui = RecordingUI(lambda request: request.args['path'] in ('a', 'c'))

    decisions = decide_all(ApprovalController(ui=ui), *(request_for(path) for path in 'abcd'))

    assert [decision.approved for decision in decisions] == [True, False, True, False]


def test_no_requests_get_no_decisions():
    assert decide_all(ApprovalController()) == []


def test_request_carries_its_position_and_the_batch_size():
    class Keyboard(RecordingUI):
        one_at_a_time = True

    ui = Keyboard()
    memory = ApprovalMemory()
    memory.store(request_for('b'), ApprovalDecision(approved=True, remember='session'))

    decide_all(ApprovalController(ui=ui, memory=memory), *(request_for(path) for path in 'abc'))

    assert [(each.metadata['position'], each.metadata['batch_size']) for each in ui.requests] == [(1, 3), (3, 3)]


def test_the_answer_to_one_question_may_spare_the_next_of_the_same_response():
    class Keyboard(ScriptedUI):
        one_at_a_time = True

    ui = Keyboard(['s'])

    decisions = decide_all(ApprovalController(ui=ui), request_for(), request_for())

    ui.assert_done()
    assert [decision.approved for decision in decisions] == [True, True]


def test_questions_of_a_response_are_asked_together():
    both_open = threading.Barrier(2)

    class Inbox(RecordingUI):
        one_at_a_time = False

        def choose(self, request, *, mode):
            both_open.wait(timeout=60)
            return super().choose(request, mode=mode)

    decisions = decide_all(ApprovalController(ui=Inbox()), request_for('a'), request_for('b'))

    assert [decision.approved for decision in decisions] == [True, True]


@pytest.mark.parametrize(
    ('groups_responses', 'groups', 'asked_alone'),
    [(False, [['a', 'c']], ['b', 'd', 'e']), (True, [['a', 'b', 'c', 'd', 'e']], [])],
    ids=['one question for a group', 'one question for all, where the UI wants that'],
)
def test_requests_of_one_group_are_one_question(groups_responses, groups, asked_alone):
    ui = Grouping()
    ui.groups_responses = groups_responses
    group_ids = {'a': 'g', 'b': 'h', 'c': 'g', 'd': None, 'e': None}
    requests = [request_for(path, group_id=group) for path, group in group_ids.items()]

    decisions = decide_all(ApprovalController(ui=ui), *requests)

    assert ui.groups == groups
    assert sorted(request.args['path'] for request in ui.requests) == ['a', *asked_alone]
    assert [decision.approved for decision in decisions] == [True] * 5


def test_requests_of_a_response_share_a_batch_id_but_are_not_a_group():
    ui = Grouping()
    controller = ApprovalController(ui=ui)

    for paths in ('ab', 'cd', 'e'):
        decide_all(controller, *map(request_for, paths))
    decide_all(controller, *(request_for(path, metadata={'batch_id': 'mine'}) for path in 'fg'))

    assert ui.groups == []
    assert {request.group_id for request in ui.requests} == {None}
    ids = {request.args['path']: request.metadata.get('batch_id') for request in ui.requests}
    assert ids['a'] == ids['b'] != ids['c'] == ids['d']
    assert (ids['e'], ids['f'], ids['g']) == (None, 'mine', 'mine')


def test_ui_without_groups_is_asked_one_by_one():
    ui = RecordingUI()

    decide_all(ApprovalController(ui=ui), *(request_for(path, group_id='g') for path in 'ab'))

    assert sorted(request.args['path'] for request in ui.requests) == ['a', 'b']


def test_request_decided_without_asking_is_not_in_the_group():
    ui = Grouping()
    memory = ApprovalMemory()
    memory.store(request_for('b', group_id='g'), ApprovalDecision(approved=True, remember='session'))

    decide_all(ApprovalController(ui=ui, memory=memory), *(request_for(path, group_id='g') for path in 'abc'))

    assert ui.groups == [['a', 'c']]


@pytest.mark.parametrize(
    ('mode', 'made'), [('approve_all', []), ('strict', []), ('interactive', ['a', 'b'])], ids=lambda value: str(value)
)
def test_presentation_is_not_made_for_a_call_that_is_decided_without_a_question(mode, made):
    """As the second call of `a` is, which is remembered."""
    presented = []

    def present(request):
        presented.append(request.args['path'])
        return SHOWN

    controller = ApprovalController(mode, ui=RecordingUI('s'), presenters={'delete': present})

    for path in 'aab':
        decide(controller, request_for(path))

    assert presented == made


async def present_on_the_loop(request):
    return SHOWN


OWN = ApprovalPresentation(type='command', content='rm a')


@pytest.mark.parametrize(
    ('present', 'own', 'shown'),
    [
        (lambda request: SHOWN, None, SHOWN),
        (present_on_the_loop, None, SHOWN),
        (lambda request: present_on_the_loop(1), None, SHOWN),
        (lambda request: None, None, None),
        (lambda request: SHOWN, OWN, OWN),
    ],
    ids=['sync', 'async', 'awaitable', 'nothing to show', 'the tool made its own'],
)
def test_presenter_makes_what_a_tool_has_not_made_itself(present, own, shown):
    ui = approve_all()

    decision = decide(ApprovalController(ui=ui, presenters={'delete': present}), request_for(presentation=own))

    assert decision.approved
    assert [request.presentation for request in ui.requests] == [shown]


def test_configured_description_is_the_one_shown():
    ui = approve_all()
    controller = ApprovalController(ui=ui, policy={'delete': {'approval': 'required', 'description': 'Deletes it'}})

    decide(controller, request_for())

    assert ui.requests[0].description == 'Deletes it'


@pytest.mark.parametrize(
    'request_',
    [
        request_for(float('nan')),
        request_for('\ud800'),
        request_for({1: 'a'}),
        request_for('a', payload={'path': {1, 2}}),
        request_for('a', bound_to={'seen': float('inf')}),
        request_for('a', tool_name='de\ud800lete'),
        request_for('a', remember_options=(RememberOption(kind='k', label='l', payload={'x': float('nan')}),)),
    ],
    ids=['nan', 'surrogate', 'key', 'payload', 'bound to', 'tool name', 'option'],
)
@pytest.mark.parametrize('mode', MODES)
def test_arguments_without_a_canonical_form_are_denied_in_every_mode(mode, request_):
    ui = approve_all()

    decision = decide(ApprovalController(mode, ui=ui, audit=ListSink()), request_)

    assert (decision.approved, decision.decided_by) == (False, ('arguments',))
    assert 'are invalid' in decision.note
    assert ui.requests == []


def test_changed_arguments_without_a_canonical_form_are_denied():
    sink = ListSink()
    ui = RecordingUI(ApprovalDecision(approved=True, override_args={'path': float('nan')}))

    decision = decide(ApprovalController(ui=ui, audit=sink), request_for())

    assert (decision.approved, decision.decided_by) == (False, ('arguments',))
    assert [entry['approved'] for entry in sink.entries] == [False]


def test_changed_arguments_of_what_has_been_blocked_meanwhile_are_denied():
    policy = ApprovalPolicy()
    controller = ApprovalController(policy=policy)

    def choose(request):
        controller.policy = ApprovalPolicy({'delete': {'approval': 'blocked'}})
        return ApprovalDecision(approved=True, override_args={'path': 'b'})

    controller.ui = RecordingUI(choose)

    assert decide(controller, request_for()).decided_by == ('policy',)


def test_remembering_always_without_a_store_is_an_error_and_approves_nothing():
    sink = ListSink()

    with pytest.raises(StoreError, match=r'pass `ApprovalMemory\(store\)`'):
        decide(ApprovalController(ui=RecordingUI('a'), audit=sink), request_for())

    assert sink.entries == []


def test_error_in_one_of_several_questions_is_raised_unchanged():
    controller = ApprovalController(ui=RecordingUI('a'))

    with pytest.raises(StoreError):
        decide_all(controller, request_for('a'), request_for('b'))


def test_approval_for_always_is_kept_in_the_store(tmp_path):
    store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')
    ui = ScriptedUI(['a'])

    decisions = [
        decide(ApprovalController(ui=ui, memory=ApprovalMemory(store)), request_for(run_id=None)) for _ in range(2)
    ]

    ui.assert_done()
    assert [decision.approved for decision in decisions] == [True, True]


def test_a_remembered_approval_of_an_unknown_approver_is_decided_by_memory():
    memory = ApprovalMemory()
    memory.store(request_for(), ApprovalDecision(approved=True, remember='session'))

    assert decide(ApprovalController(memory=memory), request_for()).decided_by == ('memory',)


def test_every_decision_is_written_down_before_it_is_returned_with_what_it_is_bound_to():
    sink = ListSink()
    lineage = (LineageEntry(agent_name='root', run_id='r0', tool_name='research', tool_call_id='c0'),)
    controller = ApprovalController(
        ui=RecordingUI(ApprovalDecision(approved=True, remember='session', decided_by=('ada',))),
        audit=sink,
        key=KEY,
        now=noon,
    )
    request = request_for(
        args={'path': 'a', 'content': 'long'},
        payload={'path': 'a'},
        metadata={'caller': 'helper'},
        tool_call_id='call',
        run_id='run',
        session_id='chat',
        lineage=lineage,
    )

    decide(controller, request)
    decide(controller, request)

    digest, public = controller.digest('delete', {'path': 'a', 'content': 'long'}), _sha256_of({'path': 'a'})
    assert sink.questions == [
        {
            'event': 'question',
            'at': '2026-03-04T12:00:00+00:00',
            'tool_name': 'delete',
            'tool_call_id': 'call',
            'run_id': 'run',
            'session_id': 'chat',
            'caller': 'helper',
            'requester': None,
            'lineage': [lineage[0].model_dump()],
            'digest': digest,
            'payload': {'path': 'a'},
            'public_digest': public,
            'no_public_digest': None,
            'ui': 'RecordingUI',
            'asked': [],
        }
    ]
    assert sink.entries[0] == {
        'event': 'decision',
        'at': '2026-03-04T12:00:00+00:00',
        'tool_name': 'delete',
        'tool_call_id': 'call',
        'run_id': 'run',
        'session_id': 'chat',
        'caller': 'helper',
        'requester': None,
        'lineage': [lineage[0].model_dump()],
        'digest': digest,
        'question_digest': digest,
        'payload': {'path': 'a'},
        'public_digest': public,
        'no_public_digest': None,
        'approved': True,
        'note': None,
        'has_changed_arguments': False,
        'changed_payload': None,
        'remember': 'session',
        'remember_option': 'exact',
        'how': 'person',
        'decided_by': ['ada'],
        'decided_at': '2026-03-04T12:00:00+00:00',
        'remembered_at': None,
        'expires_at': '2026-03-05T12:00:00+00:00',
        'mode': 'interactive',
    }
    assert sink.entries[1] == {
        **sink.entries[0],
        'note': "remembered: delete(path='a')",
        'remember': 'none',
        'remember_option': None,
        'how': 'memory',
        'remembered_at': '2026-03-04T12:00:00+00:00',
    }


def _sha256_of(payload):
    text = json.dumps({'payload': payload, 'tool_name': 'delete'}, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


class Failing:
    """A sink that fails at entries of one kind."""

    def __init__(self, event):
        self._event = event

    def record(self, entry):
        if entry['event'] == self._event:
            raise AuditError('log', 'the disk is full')


def test_a_question_that_cannot_be_logged_is_not_asked():
    ui = RecordingUI(True)

    decision = decide(ApprovalController(ui=ui, audit=Failing('question')), request_for())

    assert (decision.approved, decision.decided_by, ui.requests) == (False, ('audit',), [])


def test_the_log_names_who_is_asked():
    class Asking(RecordingUI):
        def asks(self, request):
            return ['ada', f'group of {request.tool_name}']

    sink = ListSink()

    decide(ApprovalController(ui=Asking(True), audit=sink), request_for())

    assert [(entry['ui'], entry['asked']) for entry in sink.questions] == [('Asking', ['ada', 'group of delete'])]


def test_a_decision_that_cannot_be_written_is_a_denial_and_is_not_remembered(caplog):
    ui = RecordingUI('s')
    controller = ApprovalController(ui=ui, audit=Broken(AuditError('log', 'the disk is full')), now=noon)

    decision = decide(controller, request_for())

    assert decision == ApprovalDecision(
        approved=False,
        note='The decision could not be written to the audit log, so the call was denied.',
        decided_by=('audit',),
        decided_at=NOON,
    )
    assert len(controller.memory) == 0
    assert logged(caplog) == ["A call of 'delete' was denied: audit log 'log': the disk is full"]


@pytest.mark.parametrize(
    ('error', 'told'), [(AuditError('log', 'gone'), "audit log 'log': gone"), (ValueError('hunter22'), 'ValueError')]
)
def test_an_outcome_that_cannot_be_written_is_logged(caplog, error, told):
    ApprovalController(audit=Broken(error)).record_outcome(request_for(), 'executed')

    assert logged(caplog) == [f"The outcome of a call of 'delete' was not written: {told}"]


def test_an_outcome_names_the_call_and_the_kind_of_its_error():
    sink = ListSink()
    controller = ApprovalController(audit=sink, key=KEY, now=noon)

    controller.record_outcome(request_for(tool_call_id='call'), 'failed', error=ValueError('hunter22'))

    assert sink.entries == [
        {
            'event': 'outcome',
            'tool_name': 'delete',
            'tool_call_id': 'call',
            'run_id': None,
            'session_id': None,
            'caller': None,
            'requester': None,
            'lineage': [],
            'at': '2026-03-04T12:00:00+00:00',
            'digest': controller.digest('delete', {'path': 'a'}),
            'public_digest': _sha256_of({'path': 'a'}),
            'no_public_digest': None,
            'outcome': 'failed',
            'error': 'ValueError',
            'started_at': None,
            'took_ms': None,
        }
    ]


def test_without_a_sink_nothing_is_written():
    controller = ApprovalController('approve_all')

    controller.record_outcome(request_for(), 'executed')
    controller.record_unasked(request_for(), note='never')
    controller.record_question(request_for())

    assert decide(controller, request_for()).approved


@pytest.mark.parametrize(('event', 'note'), [('blocked', 'never'), ('unasked', None)])
def test_a_call_that_nobody_is_asked_about_is_logged(event, note):
    sink = ListSink()

    ApprovalController(audit=sink, now=noon).record_unasked(request_for(), note=note)

    [entry] = sink.all
    assert (entry['event'], entry.get('note'), entry['decided_by']) == (event, note, ['policy'])
    assert (entry['at'], entry['payload']) == (NOON.isoformat(), {'path': 'a'})


def test_calls_that_run_unasked_can_be_left_out_of_the_log_and_blocked_ones_cannot():
    sink = ListSink()
    controller = ApprovalController(audit=sink, log_unasked=False)

    controller.record_unasked(request_for())
    controller.record_unasked(request_for(), note='never')

    assert [entry['event'] for entry in sink.entries] == ['blocked']


def test_decision_of_the_policy_that_cannot_be_logged_is_an_error():
    controller = ApprovalController(audit=Broken(AuditError('log', 'gone')))

    with pytest.raises(AuditError):
        controller.record_unasked(request_for(), note='never')
    with pytest.raises(AuditError):
        controller.record_unasked(request_for())


@pytest.mark.parametrize('is_lasting', [True, False])
def test_the_ui_knows_whether_always_can_be_remembered(tmp_path, is_lasting):
    store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json') if is_lasting else None
    ui = approve_all()

    decide(ApprovalController(ui=ui, memory=ApprovalMemory(store)), request_for())

    assert ui.requests[0].metadata['can_remember_always'] is is_lasting


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('ab1'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab'), inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(st.text('ab', max_size=2), JSON, max_size=3)


@given(approved=ARGS, executed=ARGS, seen=ARGS)
def test_an_approval_is_bound_to_just_its_call(approved, executed, seen):
    controller = ApprovalController(key=KEY)
    bound = controller.digest('delete', approved, seen)

    assert controller.is_bound(bound, 'delete', deepcopy(approved), deepcopy(seen))
    is_same = canonical_json(approved) == canonical_json(executed)
    assert controller.is_bound(bound, 'delete', executed, seen) is is_same


def test_nothing_else_has_the_digest_of_an_approval():
    controller = ApprovalController()
    bound = controller.digest('delete', {'path': 'a'}, {'seen': 'x'})

    others = [
        ('remove', {'path': 'a'}, {'seen': 'x'}),
        ('delete', {'path': 'b'}, {'seen': 'x'}),
        ('delete', {'path': 'a', 'force': None}, {'seen': 'x'}),
        ('delete', {'path': 'a'}, {'seen': 'y'}),
        ('delete', {'path': 'a'}, {}),
        ('delete', {'path': 'a'}, None),
        ('delete', {'path': float('nan')}, {'seen': 'x'}),
    ]

    assert not any(controller.is_bound(bound, *other) for other in others)
    assert not controller.is_bound('\ud800', 'delete', {'path': 'a'}, {'seen': 'x'})
    assert not ApprovalController().is_bound(bound, 'delete', {'path': 'a'}, {'seen': 'x'})


def test_the_policy_of_a_controller_is_asked_before_a_request_is_made():
    controller = ApprovalController(policy={'delete': {'approval': 'blocked'}})
    context = ApprovalContext(tool_name='delete', args={})

    assert asyncio.run(controller.policy.judge(context)).is_blocked


def test_unknown_tool_needs_approval_whatever_its_server_claims():
    context = ApprovalContext(
        tool_name='mcp_delete', args={}, metadata={'annotations': {'readOnlyHint': True}, 'approval_policy': 'none'}
    )

    assert asyncio.run(ApprovalController().policy.judge(context)).is_needs_approval


def test_the_core_needs_no_framework():
    script = (
        'import sys, tool_approval, tool_approval.audit, tool_approval.storage, tool_approval.testing\n'
        "print(sorted(name for name in ('pydantic_ai', 'langchain', 'langchain_core', 'yaml') if name in sys.modules))"
    )

    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ('[]\n', '')


def test_triage_shows_what_would_be_asked_and_neither_asks_nor_records():
    ui, sink, memory = deny_all(), ListSink(), ApprovalMemory()
    decide(ApprovalController(ui=RecordingUI('s'), memory=memory), request_for('known'))
    controller = ApprovalController(
        policy={'blocked': {'approval': 'blocked'}, 'free': {'approval': 'none'}},
        ui=ui,
        memory=memory,
        audit=sink,
        presenters={'delete': lambda request: SHOWN},
    )
    requests = [
        request_for('known'),
        request_for('new'),
        request_for(tool_name='blocked'),
        request_for(tool_name='free'),
        request_for(tool_name='write'),
    ]

    shown = asyncio.run(controller.triage(requests))

    assert [each and each.args for each in shown] == [None, {'path': 'new'}, None, None, {'path': 'a'}]
    assert shown[1].presentation == SHOWN
    assert (shown[1].facts.position, shown[1].facts.batch_size) == (2, 5)
    assert shown[1].facts.batch_id == shown[4].facts.batch_id is not None
    assert (ui.requests, sink.entries) == ([], [])


def test_triage_leaves_out_requests_that_cannot_be_shown(caplog):
    def failing(request):
        raise ValueError('secret')

    controller = ApprovalController(ui=approve_all(), presenters={'delete': failing})

    assert asyncio.run(controller.triage([request_for()])) == [None]
    assert 'secret' not in caplog.text
    assert not decide(controller, request_for()).approved


def test_remembered_approval_revoked_while_it_is_logged_no_longer_holds():
    memory = ApprovalMemory()

    class Revokes(ListSink):
        def record(self, entry):
            super().record(entry)
            memory.clear()

    controller = ApprovalController(memory=memory, audit=Revokes())
    memory.store(request_for(), ApprovalDecision(approved=True, remember='session'))

    [decided] = asyncio.run(controller.decide([request_for()]))

    assert decided.decision.approved
    held = controller.still_holds(request_for(), approvers=decided.approvers, remembered=decided.remembered)
    assert held == 'The remembered approval of this call was revoked, so the call was not run.'


def test_an_approval_holds_no_longer_if_the_policy_blocks_the_call():
    controller = ApprovalController(policy={'delete': {'approval': 'blocked'}})

    assert (
        controller.still_holds(request_for(), approvers=(), remembered=None)
        == "The tool 'delete' is blocked by policy."
    )


def test_request_that_cannot_be_shown_is_not_asked_anew(caplog):
    def failing(request):
        raise ValueError('secret')

    ui = approve_all()

    assert asyncio.run(ApprovalController(ui=ui, presenters={'delete': failing}).ask_anew(request_for())) is None
    assert ui.requests == []
    assert 'secret' not in caplog.text


@pytest.mark.parametrize('mode', ['approve_all', 'strict'])
def test_triage_finds_nothing_to_ask_in_a_mode_that_decides(mode):
    assert asyncio.run(ApprovalController(mode).triage([request_for()])) == [None]


def test_lasting_key_replaces_only_a_random_key():
    first, second, keyed = ApprovalController(), ApprovalController(), ApprovalController(key=KEY)
    approved = keyed.digest('delete', {'path': 'a'})

    first.use_key(KEY)
    first.use_key(b'x' * 32)
    keyed.use_key(b'x' * 32)

    assert first.is_bound(approved, 'delete', {'path': 'a'})
    assert keyed.is_bound(approved, 'delete', {'path': 'a'})
    assert not second.is_bound(approved, 'delete', {'path': 'a'})


def test_a_controller_with_another_ui_shares_everything_else():
    asked, other, sink = RecordingUI('s'), deny_all(), ListSink()
    controller = ApprovalController(ui=other, audit=sink, key=KEY)

    assert decide(controller.with_ui(asked), request_for()).approved
    assert decide(controller, request_for()).approved
    assert (len(asked.requests), other.requests, len(sink.entries)) == (1, [], 2)


def test_a_call_that_needs_a_person_is_blocked_by_the_mode_and_covered_by_no_memory():
    memory = ApprovalMemory()
    plain = request_for('push')
    once = plain.model_copy(update={'bound_to': {NEEDS_A_PERSON: True}})
    everything, asking = (
        ApprovalController(mode, memory=memory, ui=deny_all()) for mode in ('approve_all', 'interactive')
    )
    memory.store(once, ApprovalDecision(approved=True, remember='session'))

    [blocked, allowed] = asyncio.run(everything.request_approvals([once, plain]))
    [asked, remembered] = asyncio.run(asking.request_approvals([once, plain]))

    assert (blocked.approved, blocked.decided_by) == (False, ('policy',))
    assert allowed.approved
    assert (asked.approved, remembered.approved) == (False, True)
