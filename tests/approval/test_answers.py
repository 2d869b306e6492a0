"""Which answers a tool allows, a response in the tool's place, and an edit that the tool cannot take."""

import asyncio
import itertools
from typing import Any

import pytest
from pydantic import ValidationError
from tool_approval.audit import JsonlAuditSink, verify
from tool_approval.core.arguments import read_arguments
from tool_approval.core.asking import MOST_EDITS
from tool_approval.core.binding import Binding
from tool_approval.core.calls import Allowed, Call, GateResult, Refused, Responded
from tool_approval.core.gate import Gate
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all

from tests.approval.parts import ListSink, decide, decide_all, request_for, run_tool
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalRequest,
    ApprovalResult,
    FirstOf,
    requires_approval,
)

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)
EDIT = ApprovalDecision(approved=True, override_args={'path': 'b'})
SESSION = ApprovalDecision(approved=True, remember='session')
RESPONSE = ApprovalDecision(approved=False, response='it is gone already')
ANSWERS = {'approve': YES, 'edit': EDIT, 'respond': RESPONSE, 'remember': SESSION, 'deny': NO}
ASKED_FOR = {'delete': {'answers': ['respond']}}


def is_accepted(decision: ApprovalDecision, controller: ApprovalController, request: ApprovalRequest) -> bool:
    settled = decide(controller, request)
    assert settled.note is None or 'does not allow the answer' in settled.note
    return settled.note is None


@pytest.mark.parametrize('given', ANSWERS)
@pytest.mark.parametrize(
    ('answers', 'accepted'),
    [
        (None, {'approve', 'edit', 'remember', 'deny'}),
        ((), {'deny'}),
        (('approve',), {'approve', 'deny'}),
        (('edit',), {'edit', 'deny'}),
        (('respond',), {'respond', 'deny'}),
        (('remember',), {'deny'}),
        (('approve', 'remember'), {'approve', 'remember', 'deny'}),
    ],
)
def test_an_answer_that_is_not_allowed_is_refused_and_a_denial_never_is(given: str, answers: Any, accepted: set[str]):
    controller = ApprovalController(ui=RecordingUI(ANSWERS[given]))

    assert is_accepted(ANSWERS[given], controller, request_for(answers=answers)) is (given in accepted)


def test_a_rule_and_a_tool_must_both_allow_an_answer():
    def accepted(rule: Any, tool: Any) -> set[str]:
        policy = ApprovalPolicy({'del*': {'answers': rule}})
        return {
            name
            for name, decision in ANSWERS.items()
            if is_accepted(
                decision, ApprovalController(policy=policy, ui=RecordingUI(decision)), request_for(answers=tool)
            )
        }

    assert accepted(None, ('respond',)) == {'respond', 'deny'}
    assert accepted(['respond', 'approve'], None) == {'respond', 'approve', 'deny'}
    assert accepted(['respond', 'approve'], ('approve', 'edit')) == {'approve', 'deny'}


def test_the_first_matching_rule_that_names_answers_limits_them():
    policy = ApprovalPolicy(
        {
            'delete': {'approval': 'required'},
            'del*': {'answers': ['approve']},
            '*': {'answers': ['edit'], 'approval': 'required'},
        }
    )

    assert policy.rule_for('delete').answers == ('approve',)
    assert policy.rule_for('other').answers == ('edit',)


@pytest.mark.parametrize('answers', [['maybe'], 'approve', [1], {'approve': True}])
def test_unknown_answers_in_a_rule_are_an_error(answers: Any):
    with pytest.raises(ValueError, match='answers'):
        ApprovalPolicy({'delete': {'answers': answers}})


@pytest.mark.parametrize('answers', [['maybe'], 'approve'])
def test_unknown_answers_of_a_tool_are_an_error(answers: Any):
    with pytest.raises(ValueError, match='use a list of approve, edit, respond, remember, deny'):
        requires_approval(answers=answers)
    with pytest.raises(ValueError, match='unknown answers'):
        ApprovalResult.needs_approval(answers=answers)


@pytest.mark.parametrize('payload', [None, lambda args: args])
def test_a_decorated_function_says_which_answers_it_allows(payload: Any):
    ran: list[str] = []

    @requires_approval(answers={'respond', 'approve'}, payload=payload)
    def delete(path: str) -> str:
        ran.append(path)
        return f'deleted {path}'

    ui = ScriptedUI([RESPONSE, EDIT, True])
    controller = ApprovalController(ui=ui)

    assert run_tool(delete, {'path': 'a'}, controller) == 'it is gone already'
    with pytest.raises(ApprovalDenied, match='does not allow the answer `edit`'):
        run_tool(delete, {'path': 'a'}, controller)
    assert run_tool(delete, {'path': 'a'}, controller) == 'deleted a'
    assert ran == ['a']
    assert ui.requests[0].answers == ('approve', 'respond')


def test_the_checks_of_a_toolset_and_of_its_function_must_both_allow_an_answer():
    class Checked:
        def __init__(self, *answers: Any, **fields: Any):
            self.verdict = ApprovalResult.needs_approval(answers=answers, **fields)

        def needs_approval(self, name: str, args: Any) -> ApprovalResult:
            return self.verdict

    async def answers(*checks: Checked) -> Any:
        call = Call(tool_name='delete', arguments=read_arguments({}), values={}, checks=checks)
        return (await Gate(ApprovalController()).prepare(call)).request.answers

    assert asyncio.run(answers(Checked('approve', 'edit'), Checked('edit', 'respond'))) == ('edit',)
    assert asyncio.run(answers(Checked('approve', payload={}), Checked('edit'))) == ()


def test_an_approval_remembered_before_a_rule_forbade_it_does_not_count():
    memory = ApprovalMemory()
    assert decide(ApprovalController(ui=RecordingUI('s'), memory=memory), request_for()).approved

    for forbidden in ({'answers': ['approve']}, {'answers': ['respond', 'remember']}):
        controller = ApprovalController(policy={'delete': forbidden}, ui=RecordingUI(False), memory=memory)
        assert not decide(controller, request_for()).approved
    assert decide(ApprovalController(ui=RecordingUI(False), memory=memory), request_for()).approved


def test_no_mode_approves_a_call_that_only_a_person_can_answer():
    decision = decide(ApprovalController('approve_all', policy=ASKED_FOR), request_for())

    assert (decision.approved, decision.decided_by) == (False, ('mode',))
    assert decision.note == "Only a person can answer this call of 'delete'."


@pytest.mark.parametrize('fields', [{'approved': True}, {'override_args': {}}, {'remember': 'session'}])
def test_a_response_is_no_approval(fields: Any):
    with pytest.raises(ValidationError, match='takes the place of the call'):
        ApprovalDecision(**{'approved': False, 'response': 'x', **fields})


@pytest.mark.parametrize('fields', [{'approved': True}, {'override_args': {'path': 'b'}}, {'response': {1}}])
def test_a_malformed_response_runs_nothing(fields: Any):
    """A UI that skips validation."""
    controller = ApprovalController(policy=ASKED_FOR, ui=RecordingUI(RESPONSE.model_copy(update=fields)))

    decision = decide(controller, request_for())

    assert (decision.approved, decision.response, decision.decided_by) == (False, None, ('ui',))


@pytest.mark.parametrize('value', ['', 'plain', 0, False, [], {'a': [None, 1.5]}])
def test_a_response_is_the_result_and_the_tool_does_not_run(value: Any):
    ran: list[str] = []

    @requires_approval(answers=['respond'])
    def delete(path: str) -> None:
        ran.append(path)

    ui = RecordingUI(ApprovalDecision(approved=False, response=value))

    assert run_tool(delete, {'path': 'a'}, ApprovalController(ui=ui)) == value
    assert ran == []


def test_a_response_is_a_copy_with_whole_characters():
    kept = ApprovalDecision(approved=False, response=['a'])
    ui = ScriptedUI([kept, ApprovalDecision(approved=False, response='a\ud800b')])
    controller = ApprovalController(policy=ASKED_FOR, ui=ui)

    first, second = decide(controller, request_for()), decide(controller, request_for())
    kept.response.append('changed later')

    assert (first.response, second.response) == (['a'], 'a?b')


def test_no_response_answers_a_whole_group():
    class Together:
        def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            raise AssertionError

        def choose_group(self, requests: Any, *, mode: Any) -> ApprovalDecision:
            return RESPONSE

    controller = ApprovalController(policy=ASKED_FOR, ui=Together())

    decisions = decide_all(controller, request_for('a', group_id='g'), request_for('b', group_id='g'))

    assert [each.response for each in decisions] == [None, None]
    assert all('for a whole group' in str(each.note) for each in decisions)


def test_a_response_is_never_remembered():
    memory, ui = ApprovalMemory(), ScriptedUI([RESPONSE, RESPONSE])
    controller = ApprovalController(policy={'delete': {'answers': ['respond', 'remember', 'approve']}}, ui=ui)

    assert [decide(controller, request_for()).response for _ in range(2)] == ['it is gone already'] * 2
    ui.assert_done()
    assert memory.list_approvals() == []


def test_a_response_at_one_place_ends_the_question_at_the_others():
    class Waits:
        async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            await asyncio.Event().wait()
            raise AssertionError

    controller = ApprovalController(policy=ASKED_FOR, ui=FirstOf(Waits(), RecordingUI(RESPONSE)))

    assert decide(controller, request_for()).response == 'it is gone already'


def call_of(path: Any = 'a', reread: Any = None, **fields: Any) -> Call:
    def read(args: Any) -> Call:
        if not isinstance(args['path'], str):
            raise ValueError(f'path is not a text, but {args["path"]!r}')  # noqa: TRY004 - as adapters report it
        return call_of(args['path'], reread=reread)

    values = {'path': path}
    made: dict[str, Any] = {'tool_name': 'delete', 'arguments': read_arguments(values), 'values': values, **fields}
    return Call(**made, reread=read if reread is None else reread)


def settle(controller: ApprovalController, *calls: Call) -> list[GateResult]:
    async def main() -> list[GateResult]:
        gate = Gate(controller)
        return await gate.decide_all([await gate.prepare(call) for call in calls])

    return asyncio.run(main())


def test_decision_and_outcome_of_a_response_are_logged():
    sink = ListSink()
    said = ApprovalDecision(
        approved=False, response={'token': 'abcd', 'n': 1}, decided_by=('ada',), note='from the wiki'
    )
    controller = ApprovalController(policy=ASKED_FOR, ui=RecordingUI(said), audit=sink)

    [settled] = settle(controller, call_of())

    assert isinstance(settled, Responded)
    assert settled.text == '{"n":1,"token":"abcd"}'
    decision, outcome = sink.entries
    assert (decision['approved'], decision['decided_by'], decision['note']) == (False, ['ada'], 'from the wiki')
    assert decision['response'] == {'token': '[redacted]', 'n': 1}
    assert (outcome['outcome'], outcome['digest']) == ('responded', decision['digest'])
    assert 'response' not in outcome


def test_a_response_does_not_finish_an_approval_in_the_log(tmp_path: Any):
    path = tmp_path / 'audit.jsonl'
    policy, ui = {'delete': {'answers': ['respond', 'approve']}}, ScriptedUI([True, RESPONSE])
    controller = ApprovalController(policy=policy, ui=ui, audit=JsonlAuditSink(path, key=b'k' * 32))

    settle(controller, call_of(tool_call_id='1'))
    settle(controller, call_of(tool_call_id='1'))

    assert verify(path, key=b'k' * 32).unfinished == (2,)


def test_the_binding_of_a_response_lets_no_call_run():
    controller = ApprovalController(policy=ASKED_FOR, ui=RecordingUI(RESPONSE))
    [settled] = settle(controller, call_of())
    assert isinstance(settled, Responded)

    binding = Binding.of(Binding.of_response(settled.response).as_json())

    assert binding.response == 'it is gone already'
    assert not Gate(controller).is_bound(binding, call_of())


def test_a_binding_with_a_digest_and_a_response_lets_no_call_run():
    gate = Gate(ApprovalController(ui=approve_all()))
    [settled] = settle(gate.controller, call_of())
    assert isinstance(settled, Allowed)
    assert settled.binding is not None
    assert gate.is_bound(Binding.of(settled.binding.as_json()), call_of())

    assert not gate.is_bound(Binding.of({**settled.binding.as_json(), 'response': 'x'}), call_of())


def edit(path: Any) -> ApprovalDecision:
    return ApprovalDecision(approved=True, override_args={'path': path})


def test_an_edit_that_the_tool_cannot_take_is_asked_again_with_the_reason():
    sink, ui = ListSink(), ScriptedUI([edit(1), edit(2), edit('b')])

    [settled] = settle(ApprovalController(ui=ui, audit=sink), call_of())

    ui.assert_done()
    assert isinstance(settled, Allowed)
    assert settled.call.values == {'path': 'b'}
    asked = [each.rejected_edit for each in ui.requests]
    assert asked[0] is None
    assert [(each.args, each.problem) for each in asked[1:] if each is not None] == [
        ({'path': 1}, 'path is not a text, but 1'),
        ({'path': 2}, 'path is not a text, but 2'),
    ]
    assert [(entry['approved'], entry['has_changed_arguments']) for entry in sink.decisions()] == [(True, True)]


@pytest.mark.parametrize(('answer', 'kind'), [(True, Allowed), ('no', Refused), (RESPONSE, Responded)])
def test_after_an_edit_that_the_tool_cannot_take_any_answer_counts(answer: Any, kind: type):
    policy = {'delete': {'answers': ['approve', 'edit', 'respond']}}

    [settled] = settle(ApprovalController(policy=policy, ui=ScriptedUI([edit(1), answer])), call_of())

    assert isinstance(settled, kind)


@pytest.mark.parametrize(('is_new', 'count'), [(False, 2), (True, MOST_EDITS)])
def test_a_program_that_gives_edits_for_ever_is_not_asked_for_ever(is_new: bool, count: int):
    numbers = itertools.count()
    sink, ui = ListSink(), RecordingUI(lambda request: edit(next(numbers) if is_new else 1))

    [settled] = settle(ApprovalController(ui=ui, audit=sink), call_of())

    assert isinstance(settled, Refused)
    assert settled.reason.startswith("The approver's arguments are invalid (path is not a text")
    assert len(ui.requests) == count
    assert sink.outcomes() == ['refused']


def test_a_ui_that_cannot_ask_again_leaves_the_edit_refused():
    ui = ScriptedUI([edit(1)])

    [settled] = settle(ApprovalController(ui=ui), call_of())

    ui.assert_done()
    assert isinstance(settled, Refused)
    assert (
        settled.reason == "The approver's arguments are invalid (path is not a text, but 1), so the call was not run."
    )


def test_the_timeout_covers_all_edits_of_a_call():
    class Slow:
        def __init__(self) -> None:
            self.asked = 0

        async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
            self.asked += 1
            if self.asked == 3:
                await asyncio.Event().wait()
            return edit(self.asked)

    ui = Slow()

    [settled] = settle(ApprovalController(ui=ui, timeout=0.2), call_of())

    assert isinstance(settled, Refused)
    assert settled.decision is not None
    assert (ui.asked, settled.decision.decided_by) == (3, ('timeout',))


def test_only_the_call_with_the_edit_is_asked_about_again():
    class Together(RecordingUI):
        def choose_group(self, requests: Any, *, mode: Any) -> list[ApprovalDecision]:
            return [edit(1), YES]

    ui = Together(edit('c'))

    first, second = settle(ApprovalController(ui=ui), *(call_of(each, checks=[Grouped()]) for each in 'ab'))

    assert isinstance(first, Allowed)
    assert isinstance(second, Allowed)
    assert (first.call.values, second.call.values) == ({'path': 'c'}, {'path': 'b'})
    assert [each.args for each in ui.requests] == [{'path': 'a'}]


class Grouped:
    def needs_approval(self, name: str, args: Any) -> ApprovalResult:
        return ApprovalResult.needs_approval(group_id='g')


def test_an_edit_is_read_once():
    read: list[Any] = []

    def reread(args: Any) -> Call:
        read.append(args)
        return call_of(args['path'])

    [settled] = settle(ApprovalController(ui=RecordingUI(edit('b'))), call_of(reread=reread))

    assert isinstance(settled, Allowed)
    assert read == [{'path': 'b'}]


def test_an_edit_without_a_canonical_form_is_refused_and_not_asked_again():
    ui = RecordingUI(edit(float('nan')))

    [settled] = settle(ApprovalController(ui=ui), call_of())

    assert isinstance(settled, Refused)
    assert len(ui.requests) == 1


def test_a_ui_gets_a_copy_of_the_schema():
    schema = {'type': 'object', 'properties': {'path': {'type': 'string'}}}
    ui = RecordingUI(lambda request: request.args_schema['properties'].clear() or True)

    settle(ApprovalController(ui=ui), call_of(args_schema=schema))

    assert ui.requests[0].args_schema == {'type': 'object', 'properties': {}}
    assert schema == {'type': 'object', 'properties': {'path': {'type': 'string'}}}


def test_a_question_about_running_again_offers_no_edit_and_no_response():
    ui = RecordingUI(RESPONSE)
    controller = ApprovalController(policy={'delete': {'answers': ['edit', 'respond']}}, ui=ui)

    assert asyncio.run(controller.ask_anew(request_for())) is None
    assert ui.requests[0].answers == ('approve',)
