import pytest
from tool_approval.core.entries import decision_entry, outcome_entry

from tests.approval.parts import NOON, request_for
from tool_approval import ApprovalDecision

SECRET = request_for(args={'path': 'a.txt', 'word': 'hunter22'}, payload={'path': 'a.txt'})


def entry_of(request, **decision):
    return decision_entry(
        request,
        ApprovalDecision(**{'approved': True, 'decided_at': NOON, **decision}),
        digest='d',
        at=NOON,
        mode='interactive',
        how='person',
    )


def test_an_excluded_argument_is_written_nowhere():
    request = request_for(
        args={'path': 'a.txt', 'word': 'hunter22', 'command': 'echo hunter22'},
        payload={'path': 'a.txt', 'command': 'echo hunter22'},
    )

    entry = entry_of(request, note='it is hunter22')

    assert entry['payload'] == {'path': 'a.txt', 'command': 'echo [redacted]'}
    assert entry['note'] == 'it is [redacted]'


def test_an_excluded_argument_is_not_written_when_the_approver_changes_it():
    entry = entry_of(SECRET, note='swordfish for hunter22', override_args={'path': 'a.txt', 'word': 'swordfish'})

    assert entry['note'] == '[redacted] for [redacted]'
    assert entry['has_changed_arguments'] is True


def test_changed_arguments_are_logged_as_far_as_the_payload_goes():
    entry = entry_of(SECRET, override_args={'path': 'hunter22 swordfish', 'word': 'swordfish'})

    assert entry['changed_payload'] == {'path': '[redacted] [redacted]'}
    assert entry_of(SECRET)['changed_payload'] is None


MASKED = request_for(
    args={'card': 4111_2222_3333_4444, 'to': {'name': 'ada', 'iban': 'DE01', 'codes': [12345]}, 'amount': 50},
    payload={'card': '**** 4444', 'to': {'name': 'ada', 'iban': 'DE..', 'codes': []}, 'amount': 50, 'kind': 'card'},
)


def test_a_value_that_the_payload_masks_stays_masked():
    args = {'card': 5500_6666_7777_8888, 'to': {'name': 'bob', 'iban': 'FR02', 'codes': [67890]}, 'amount': 70}

    entry = entry_of(MASKED, override_args=args)

    assert entry['changed_payload'] == {
        'card': '[redacted]',
        'to': {'name': 'bob', 'iban': '[redacted]', 'codes': '[redacted]'},
        'amount': 70,
    }
    assert entry['public_digest'] is None
    assert entry['no_public_digest'] == 'the payload masks arguments that the approver changed'


def test_parts_that_the_payload_does_not_have_stay_out():
    request = request_for(args={'to': {'name': 'ada', 'iban': 'DE01'}}, payload={'to': {'name': 'ada'}})

    entry = entry_of(request, override_args={'to': {'name': 'bob', 'iban': 'FR02', 'code': 5}, 'more': 1})

    assert entry['changed_payload'] == {'to': {'name': 'bob'}}


def test_an_argument_that_only_the_payload_had_is_masked():
    request = request_for(args={'to': 'ada'}, payload={'to': 'ada', 'card': '**** 4444'})

    entry = entry_of(request, override_args={'to': 'ada', 'card': 5500_6666_7777_8888})

    assert entry['changed_payload'] == {'to': 'ada', 'card': '[redacted]'}


def test_caller_is_logged_if_it_is_a_name():
    assert entry_of(request_for(metadata={'caller': 'helper'}))['caller'] == 'helper'
    assert entry_of(request_for(metadata={'caller': {'no': 'name'}}))['caller'] is None


def test_shapes_of_tokens_are_written_nowhere():
    token = 'ghp_' + 'a1B2' * 9

    entry = entry_of(request_for(token), note=f'use {token}')

    assert token not in str(entry)


def test_half_characters_of_a_reason_are_replaced():
    assert entry_of(request_for(), approved=False, note='no caf\udce9')['note'] == 'no caf?'


def test_a_payload_that_cannot_be_written_is_left_out():
    assert entry_of(request_for(float('nan')))['payload'] is None


@pytest.mark.parametrize(
    'decision',
    [{'approved': False, 'remember': 'always'}, {'override_args': {}}, {'remember': 'none'}],
    ids=['denied', 'changed', 'once'],
)
def test_log_does_not_claim_to_remember_what_is_not_remembered(decision):
    entry = entry_of(request_for(), **{'remember': 'session', **decision})

    assert (entry['remember'], entry['remember_option']) == ('none', None)


def test_a_decision_may_be_undated():
    assert entry_of(request_for(), decided_at=None)['decided_at'] is None


def test_only_the_type_of_an_error_is_logged():
    entry = outcome_entry(SECRET, 'failed', digest=None, at=NOON, error=ValueError('hunter22'))

    assert (entry['error'], entry['digest']) == ('ValueError', None)
    assert outcome_entry(SECRET, 'executed', digest='d', at=NOON)['error'] is None
