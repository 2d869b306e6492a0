"""Each request offers certain answers, and each answer means one decision, in every UI."""

import pytest
from tool_approval.answering import (
    LABELS,
    NotOffered,
    UnreadableArguments,
    answer_decision,
    answer_options,
    bounded_options,
    decision_on,
    draft_of,
    editable,
    is_changed,
    may_approve_together,
    outcome_words,
    parse_arguments,
    place_in_response,
    with_arguments,
)
from tool_approval.core.offers import with_offers
from tool_approval.core.request import RejectedEdit
from tool_approval.display import KEYS

from tool_approval import ApprovalDecision, ApprovalPresentation, ApprovalRequest, Offer, RememberOption

NOTES = RememberOption(kind='folder', label='notes/', payload={'path': 'notes'})
PLAIN = ApprovalRequest(tool_name='write', args={'path': 'notes/a'})
WIDE = PLAIN.model_copy(update={'remember_options': (NOTES,)})
LASTING = PLAIN.model_copy(update={'metadata': {'can_remember_always': True}})
LONG = PLAIN.model_copy(update={'presentation': ApprovalPresentation(type='text', content='line\n' * 10_000)})
UNNAMED = PLAIN.model_copy(update={'metadata': {'can_remember_session': False}})
HIDING = ApprovalRequest(tool_name='send', args={'to': 'bob', 'token': 'x'}, payload={'to': 'bob'})


@pytest.mark.parametrize(
    ('request_', 'kinds', 'choices'),
    [
        (PLAIN, ('approve', 'session', 'deny', 'deny_session', 'note', 'edit'), ['exact']),
        (WIDE, ('approve', 'session', 'deny', 'deny_session', 'note', 'edit'), ['exact', 'folder']),
        (LASTING, ('approve', 'session', 'always', 'deny', 'deny_session', 'note', 'edit'), ['exact']),
        (LONG, ('approve', 'deny', 'note', 'edit'), []),
        (ApprovalRequest(tool_name='stop', args={}), ('approve', 'session', 'deny', 'deny_session', 'note'), ['exact']),
        (PLAIN.changed(answers=('respond',)), ('deny', 'note', 'respond'), []),
        (PLAIN.changed(answers=('approve', 'edit')), ('approve', 'deny', 'note', 'edit'), []),
        (PLAIN.changed(answers=('remember',)), ('deny', 'deny_session', 'note'), []),
        (UNNAMED, ('approve', 'deny', 'note', 'edit'), []),
    ],
)
def test_answer_options_follow_from_the_request_and_its_display(request_, kinds, choices):
    options = answer_options(request_)

    assert options.answers == kinds
    assert [kind for kind, _ in options.remember_options] == choices
    assert set(kinds) <= set(LABELS)


def test_a_denial_for_the_session_says_what_it_covers():
    every_note = RememberOption(kind='all', label='every write of notes/a', payload=PLAIN.args)

    assert answer_options(WIDE).denial_covers == 'exactly this call'
    assert answer_options(PLAIN.changed(payload={'path': 'notes'})).denial_covers == "every write with path: 'notes'"
    assert answer_options(PLAIN.changed(remember_options=(every_note,))).denial_covers == 'every write of notes/a'
    assert answer_options(LONG).denial_covers is None


def test_ui_that_shows_less_offers_less():
    assert answer_options(PLAIN, is_whole=False).spans == ()
    assert answer_options(LONG, is_whole=True).spans == ('session',)
    with pytest.raises(NotOffered, match="does not offer `remember='session'`"):
        decision_on(PLAIN, approved=True, remember='session', is_whole=False)


@pytest.mark.parametrize(
    ('position', 'size', 'place'),
    [
        (2, 3, (2, 3)),
        (1, 1, None),
        (0, 3, None),
        (4, 3, None),
        (2, None, None),
        (None, 3, None),
        ('2', 3, None),
        (True, 3, None),
        (1, 1_000_000, None),
    ],
)
def test_place_in_a_response_is_shown_if_it_is_valid_and_not_the_only_one(position, size, place):
    placed = PLAIN.model_copy(update={'metadata': {'position': position, 'batch_size': size}})

    assert place_in_response(placed) == place


def test_several_are_approved_together_only_if_all_of_each_is_shown():
    assert may_approve_together([PLAIN, WIDE])
    assert not may_approve_together([PLAIN, LONG])


@pytest.mark.parametrize(
    ('request_', 'said', 'decision'),
    [
        (PLAIN, {'approved': True, 'note': ''}, {'approved': True}),
        (PLAIN, {'approved': False, 'note': 'No.'}, {'approved': False, 'note': 'No.'}),
        (PLAIN, {'approved': True, 'remember': 'session'}, {'approved': True, 'remember': 'session'}),
        (
            WIDE,
            {'approved': True, 'remember': 'session', 'remember_option': 'folder'},
            {'approved': True, 'remember': 'session', 'remember_option': 'folder'},
        ),
        (LONG, {'approved': True}, {'approved': True}),
        (
            WIDE,
            {'approved': False, 'note': 'No.', 'remember': 'session'},
            {'approved': False, 'note': 'No.', 'remember': 'session'},
        ),
        (
            HIDING,
            {'approved': True, 'override_args': {'to': 'eve'}},
            {'approved': True, 'override_args': {'to': 'eve', 'token': 'x'}},
        ),
    ],
)
def test_a_decision_is_what_was_answered(request_, said, decision):
    assert decision_on(request_, **said) == ApprovalDecision(**decision)


@pytest.mark.parametrize(
    ('request_', 'said', 'problem'),
    [
        (LONG, {'approved': False, 'remember': 'session'}, "does not offer `remember='session'` for the denial"),
        (LASTING, {'approved': False, 'remember': 'always'}, "does not offer `remember='always'` for the denial"),
        (
            PLAIN.changed(answers=('approve',)),
            {'approved': False, 'remember': 'session'},
            "does not offer `remember='session'` for the denial",
        ),
        (
            WIDE,
            {'approved': False, 'remember': 'session', 'remember_option': 'folder'},
            'does not offer this option for remembering the denial',
        ),
        (
            PLAIN.changed(answers=('respond', 'remember')),
            {'approved': False, 'response': 'x', 'remember': 'session'},
            'only a denial, or an approval of unchanged',
        ),
        (
            PLAIN,
            {'approved': True, 'override_args': {'path': 'b'}, 'remember': 'session'},
            'only a denial, or an approval of unchanged arguments',
        ),
        (PLAIN, {'approved': True, 'remember': 'always'}, "the request does not offer `remember='always'`"),
        (LONG, {'approved': True, 'remember': 'session'}, "the request does not offer `remember='session'`"),
        (
            PLAIN,
            {'approved': True, 'remember': 'session', 'remember_option': 'folder'},
            'does not offer this option for remembering the approval',
        ),
        (PLAIN, {'approved': False, 'override_args': {'path': 'b'}}, 'a denial cannot change arguments'),
        (HIDING, {'approved': True, 'override_args': {'to': 'eve', 'token': 'y'}}, 'not shown cannot be changed'),
    ],
)
def test_an_answer_that_is_not_offered_is_refused(request_, said, problem):
    with pytest.raises(NotOffered, match=problem) as refused:
        decision_on(request_, **said)

    assert refused.value.problem == str(refused.value)


def test_a_changed_call_is_asked_about_anew_with_nothing_of_what_its_tool_said():
    request = HIDING.model_copy(
        update={
            'reason': 'It is external.',
            'described_by': 'the policy',
            'presentation': ApprovalPresentation(type='text', content='to bob'),
            'remember_options': (NOTES,),
        }
    )

    asked = with_arguments(request, {'to': 'eve'})

    assert (asked.args, asked.payload) == ({'to': 'eve', 'token': 'x'}, {'to': 'eve'})
    assert asked.description == "send(to='eve')"
    assert asked.reason == 'before your change: It is external.'
    assert (asked.described_by, asked.presentation, asked.remember_options) == (None, None, ())
    assert with_arguments(PLAIN, {}).reason is None


def test_arguments_that_are_not_shown_are_not_edited():
    assert editable(HIDING) == {'to': 'bob'}
    assert not is_changed(HIDING, {'to': 'bob'})
    assert is_changed(HIDING, {'to': 'eve'})


def test_edited_arguments_are_read_as_those_of_a_call():
    assert parse_arguments('{"path": "b"}') == {'path': 'b'}


@pytest.mark.parametrize('text', ['[]', '{"a": 1, "a": 2}', '{"a": NaN}', '{'])
def test_a_text_without_arguments_is_refused(text):
    with pytest.raises(UnreadableArguments):
        parse_arguments(text)


@pytest.mark.parametrize(
    ('state', 'decision', 'words'),
    [
        ('pending', None, ('', '')),
        ('expired', None, ('Expired', ': no approver answered in time')),
        ('withdrawn', None, ('Withdrawn', ': the run no longer waits for an answer')),
        ('denied', ApprovalDecision(approved=False), ('Denied', '')),
        ('approved', ApprovalDecision(approved=True, remember='session'), ('Approved', ' for this session')),
        ('approved', ApprovalDecision(approved=True, remember='always'), ('Approved', ', always')),
        ('approved', ApprovalDecision(approved=True, override_args={}), ('Approved', ' with changed arguments')),
    ],
)
def test_each_outcome_has_its_words(state, decision, words):
    assert outcome_words(state, decision) == words


@pytest.mark.parametrize(
    ('key', 'kind'), [('y', 'approve'), ('n', 'deny'), ('d', 'note'), ('s', 'session'), ('e', 'edit')]
)
def test_the_keys_of_the_terminal_have_the_same_words(key, kind):
    assert KEYS[key] == LABELS[kind].lower()


def test_a_decision_that_the_tool_does_not_allow_is_not_made():
    asked = PLAIN.changed(answers=('respond',))

    assert decision_on(asked, approved=False, response={'a': 1}).response == {'a': 1}
    with pytest.raises(NotOffered, match='the tool does not allow the answer `approve`'):
        decision_on(asked, approved=True)
    with pytest.raises(NotOffered, match='the tool does not allow the answer `edit`'):
        decision_on(asked, approved=True, override_args={'path': 'b'})
    with pytest.raises(NotOffered, match='the tool does not allow the answer `respond`'):
        decision_on(PLAIN, approved=False, response='x')
    with pytest.raises(NotOffered, match='an approval cannot have a response'):
        decision_on(asked, approved=True, response='x')


def test_requests_that_may_not_be_approved_are_not_approved_together():
    assert may_approve_together([PLAIN, PLAIN])
    assert not may_approve_together([PLAIN, PLAIN.changed(answers=('respond',))])


def test_an_edit_goes_on_from_the_one_that_was_not_accepted_without_hidden_arguments():
    rejected = RejectedEdit(args={'to': 'eve', 'token': 'x'}, problem='unknown')

    assert draft_of(HIDING) == {'to': 'bob'}
    assert draft_of(HIDING.changed(rejected_edit=rejected)) == {'to': 'eve'}


def test_a_changed_request_can_be_approved_where_edits_are_allowed_and_shows_no_earlier_problem():
    rejected = RejectedEdit(args={'path': 1}, problem='not a text')

    changed = with_arguments(PLAIN.changed(answers=('edit', 'remember'), rejected_edit=rejected), {'path': 'b'})

    assert changed.answers == ('approve', 'edit', 'deny')
    assert changed.rejected_edit is None


def test_an_approval_of_changed_arguments_is_a_decision_on_the_original_request():
    changed = with_arguments(PLAIN, {'path': 'b'})

    with pytest.raises(NotOffered, match='in a decision on the original request'):
        decision_on(changed, approved=True)
    assert not decision_on(changed, approved=False).approved
    assert decision_on(PLAIN, approved=True, override_args={'path': 'b'}).override_args == {'path': 'b'}
    assert changed.facts == PLAIN.facts
    assert answer_options(changed).spans == ()


def test_a_response_is_named_as_the_outcome():
    assert outcome_words('denied', ApprovalDecision(approved=False, response='x')) == (
        'Answered',
        ' in place of the tool',
    )


@pytest.mark.parametrize(
    ('answer', 'told'),
    [
        ('approve', (True, None, 'none')),
        ('session', (True, None, 'session')),
        ('always', (True, None, 'always')),
        ('deny', (False, None, 'none')),
        ('deny_session', (False, None, 'session')),
    ],
)
def test_a_pressed_button_becomes_its_decision(answer, told):
    request = ApprovalRequest(tool_name='t', metadata={'can_remember_session': True, 'can_remember_always': True})

    decision = answer_decision(request, answer, text=' ')

    assert (decision.approved, decision.note, decision.remember) == told


def test_a_form_becomes_a_note_or_a_result():
    request = ApprovalRequest(tool_name='t', answers=('respond',))

    assert answer_decision(request, 'note', text=' no ').note == 'no'
    assert answer_decision(request, 'respond', text=' blue ').response == 'blue'
    for text in (None, ' '):
        with pytest.raises(NotOffered, match='empty'):
            answer_decision(request, 'respond', text=text)
    with pytest.raises(NotOffered):
        answer_decision(request, 'approve')


def test_bounded_approvals_have_the_texts_of_their_buttons():
    request = with_offers(ApprovalRequest(tool_name='t', args={'to': 'Ada'}), [Offer(uses=10)])

    [(kind, text, covers)] = bounded_options(request)

    assert kind == request.remember_options[0].kind
    assert text.startswith('Approve ')
    assert '10' in text
    assert covers
    assert bounded_options(ApprovalRequest(tool_name='t')) == []
