import json
from dataclasses import replace

import pytest
from tool_approval.core.request import RejectedEdit, Review, Votes
from tool_approval.inbox import ApproverRule, InvalidAnswer, NotAnApprover, RequestTooLarge, Row
from tool_approval.inbox.entry import MAX_BYTES, Answer, Content, digest_of, read_entry, write_answer, write_content

from tests.approval.parts import NOON, request_for
from tool_approval import (
    ApprovalDecision,
    ApprovalPresentation,
    LineageEntry,
    NotCanonicalError,
    RememberOption,
)

from .parts import ADA, BOB, NO, YES

OPTION = RememberOption(kind='directory', label='every file in a/', payload={'directory': 'a'})
WHOLE = request_for(
    'ä\x00\u202e',
    group_id='g',
    tool_call_id='c',
    run_id='r',
    session_id='s',
    reason='because',
    remember_options=(OPTION,),
    metadata={'caller': 'agent', 'position': 1, 'can_remember_always': True},
    lineage=(LineageEntry(agent_name=None, run_id='r', tool_name='t', tool_call_id='c'),),
    bound_to={'directory': '/a', 'size': 1.0},
    presentation=ApprovalPresentation.of('diff', '- a\n+ b' * 5000, language='diff', lines=3),
    answers=('approve', 'respond', 'remember'),
    args_schema={'type': 'object', 'properties': {'path': {'type': 'string'}}},
    used={'path': 'a'},
    votes=Votes(needed=2, agreed=('bob',)),
    review=Review(sentence='Ask the user.'),
    rejected_edit=RejectedEdit(args={'path': 1}, problem='path: not a text'),
)


def row_of(content, **fields):
    return Row(**{'id': 'i' * 43, 'owner': 'o', 'content': write_content(content), 'posted_at': NOON, **fields})


def entry_of(request=None, **fields):
    return read_entry(row_of(Content(request=request or request_for(), **fields)))


def answered(state, decision, digest='d'):
    answer = write_answer(Answer(decision=decision, by=ADA, digest=digest))
    return row_of(Content(request=request_for()), state=state, settled_at=NOON, answer=answer)


def test_all_of_a_request_is_kept():
    rule = ApproverRule(users=frozenset({'ada'}), groups=frozenset({'ops', 'dev'}))
    content = Content(request=WHOLE, approvers=(rule,), requester='eve', forbid_self_approval=True, expires_at=NOON)

    entry = read_entry(row_of(content))

    assert entry.content == content
    assert entry.request.presentation.metadata['full_content'] == '- a\n+ b' * 5000
    assert (entry.id, entry.state, entry.posted_at, entry.answer) == ('i' * 43, 'pending', NOON, None)


def test_stored_field_names_are_those_of_version_1():
    content = Content(request=WHOLE, requester='eve', forbid_self_approval=True)

    stored = json.loads(write_content(content))

    assert set(stored) == {'version', 'request', 'approvers', 'requester', 'bars_requester', 'expires_at'}
    assert stored['bars_requester'] is True
    assert Content.model_validate(stored).forbid_self_approval


def test_stored_content_is_printable_ascii():
    text = write_content(Content(request=request_for('a\x00ä\u202e', reason='\ud800')))

    assert text.isascii()
    assert text.isprintable()


def test_half_characters_that_are_shown_are_replaced():
    shown = ApprovalPresentation(type='text', content='\ud800', language='\ud800', metadata={'a': ['\ud800']})
    request = request_for('a', description='x\ud800', reason='y\udfff', presentation=shown)

    entry = entry_of(request)

    assert (entry.request.description, entry.request.reason) == ('x?', 'y?')
    assert entry.request.presentation == ApprovalPresentation(
        type='text', content='?', language='?', metadata={'a': ['?']}
    )


def test_half_characters_of_a_problem_are_replaced_and_a_schema_without_json_is_left_out():
    rejected = RejectedEdit(args={}, problem='x\ud800')

    entry = entry_of(request_for(rejected_edit=rejected, args_schema={'default': float('nan')}))

    assert entry.request.rejected_edit == RejectedEdit(args={}, problem='x?')
    assert entry.request.args_schema is None


def test_only_json_metadata_is_stored():
    loop: list[object] = []
    loop.append(loop)
    metadata = {'caller': 'a', 'context': object(), 'nan': float('nan'), 'loop': loop, 'deep': {'b': [1, None, ('c',)]}}

    entry = entry_of(request_for(metadata=metadata))

    assert entry.request.metadata == {'caller': 'a', 'deep': {'b': [1, None, ['c']]}}


@pytest.mark.parametrize('field', ['args', 'payload', 'bound_to'])
@pytest.mark.parametrize('value', [float('inf'), '\ud800', object(), {1: 2}])
def test_a_call_without_a_canonical_form_is_refused(field, value):
    with pytest.raises(NotCanonicalError):
        write_content(Content(request=request_for(payload={}).model_copy(update={field: {'a': value}})))


def test_request_over_the_size_limit_is_refused():
    with pytest.raises(RequestTooLarge, match=f'has 4194[0-9]* bytes, more than the limit of {MAX_BYTES}; shorten'):
        write_content(Content(request=request_for('x' * MAX_BYTES, payload={})))


def test_digest_covers_all_that_is_stored_and_only_this_request():
    text = write_content(Content(request=WHOLE))
    kept = json.loads(text)
    changed = [{**kept, 'requester': 'x'}]
    changed += [{**kept, 'request': {**kept['request'], name: None}} for name in kept['request']]

    digests = {digest_of('i', text), digest_of('j', text), *(digest_of('i', json.dumps(each)) for each in changed)}

    assert len(digests) == len(changed) + 2
    assert entry_of(WHOLE).digest == digest_of('i' * 43, text)


@pytest.mark.parametrize(
    'row',
    [
        replace(row_of(Content(request=request_for())), content='no JSON'),
        replace(row_of(Content(request=request_for())), content='{"version":2,"request":{"tool_name":"a"}}'),
        replace(row_of(Content(request=request_for())), content='[' * 100_000),
        replace(row_of(Content(request=request_for())), content=b'{}'),
        replace(row_of(Content(request=request_for())), state='approved'),
        replace(row_of(Content(request=request_for())), state='denied'),
        replace(row_of(Content(request=request_for())), state='somehow'),
        answered('approved', NO),
        answered('denied', YES),
        answered('withdrawn', YES),
        answered('expired', NO),
        answered('pending', YES),
    ],
)
def test_a_row_that_does_not_hold_together_is_not_read(row):
    with pytest.raises(ValueError, match=r'.'):
        read_entry(row)


def test_an_answer_is_kept_as_it_was():
    decision = ApprovalDecision(
        approved=True, note='<b>\x00', override_args={'path': 'b', 'size': 1.0}, decided_at=NOON
    )

    entry = read_entry(answered('approved', decision))

    assert entry.answer == Answer(decision=decision, by=ADA, digest='d')
    assert isinstance(entry.answer.decision.override_args['size'], float)


def test_an_endless_answer_is_refused():
    with pytest.raises(InvalidAnswer, match='bytes, more than the limit'):
        write_answer(Answer(decision=ApprovalDecision(approved=False, note='x' * MAX_BYTES), by=ADA, digest='d'))


def test_any_approver_may_answer_if_none_is_listed():
    assert entry_of().check_approver(ADA) is None


def test_only_listed_approvers_may_answer():
    ops = ApproverRule(groups=frozenset({'ops'}))
    entry = entry_of(approvers=(ops,))

    entry.check_approver(BOB)
    with pytest.raises(
        NotAnApprover, match=r"^'ada' may not answer a request for 'delete': only listed approvers may answer$"
    ):
        entry.check_approver(ADA)
    with pytest.raises(NotAnApprover):
        entry_of(approvers=(ops, ApproverRule(users=frozenset({'ada'})))).check_approver(BOB)


def test_self_approval_can_be_forbidden():
    entry_of(requester='ada').check_approver(ADA)
    entry_of(requester='ada', forbid_self_approval=True).check_approver(BOB)
    with pytest.raises(NotAnApprover, match='requesters may not answer their own requests'):
        entry_of(requester='ada', forbid_self_approval=True).check_approver(ADA)


@pytest.mark.parametrize(
    ('decision', 'problem'),
    [
        (ApprovalDecision.model_construct(approved='yes'), 'the decision is malformed'),
        (ApprovalDecision.model_construct(), 'the decision is malformed'),
        (ApprovalDecision(approved=True, override_args={'a': float('nan')}), 'the changed arguments are invalid'),
        (
            ApprovalDecision(approved=True, remember='session', remember_option='all'),
            'does not offer this option for remembering the approval',
        ),
        (ApprovalDecision(approved=True, remember='session'), "the request does not offer `remember='session'`"),
        (ApprovalDecision(approved=True, remember='always'), "the request does not offer `remember='always'`"),
        (
            ApprovalDecision(approved=False, remember='always'),
            'a denial can be remembered for the same call and the session only',
        ),
    ],
)
def test_answer_that_the_request_does_not_offer_is_refused(decision, problem):
    entry = entry_of(request_for(metadata={'can_remember_session': False}))

    with pytest.raises(InvalidAnswer, match=problem):
        entry.check_decision(decision)


def test_an_answer_that_the_tool_does_not_allow_is_refused():
    entry = entry_of(request_for(answers=('respond',)))
    response = ApprovalDecision(approved=False, response=['x', None])

    assert entry.check_decision(response) == response
    assert entry.check_decision(NO) == NO
    for decision, problem in (
        (YES, 'the tool does not allow the answer `approve`'),
        (response.model_copy(update={'response': float('nan')}), 'the response is invalid'),
        (response.model_copy(update={'approved': True}), 'malformed'),
    ):
        with pytest.raises(InvalidAnswer, match=problem):
            entry.check_decision(decision)


def test_answer_that_the_request_offers_is_accepted():
    always = ApprovalDecision(approved=True, remember='always', remember_option='directory', note='a\ud800')

    assert entry_of(WHOLE).check_decision(always) == always.model_copy(update={'note': 'a?'})
    assert entry_of().check_decision(YES) == YES
