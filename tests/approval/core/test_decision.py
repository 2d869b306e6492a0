"""Decisions and modes: only a real boolean approves."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError
from tool_approval.core.decision import read_mode

from tool_approval import ApprovalController, ApprovalDecision

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ('name', 'mode'),
    [
        ('interactive', 'interactive'),
        ('approve_all', 'approve_all'),
        ('strict', 'strict'),
        ('auto_approve', 'approve_all'),
        ('auto_deny', 'strict'),
    ],
)
def test_modes_have_two_spellings(name, mode):
    assert read_mode(name) == mode
    assert ApprovalController(mode=name).mode == mode


@pytest.mark.parametrize('name', ['', 'Interactive', 'yes', 'auto', None])
def test_unknown_mode_is_an_error_that_names_the_valid_ones(name):
    with pytest.raises(ValueError, match=r'unknown mode .*; use one of interactive, approve_all, strict'):
        read_mode(name)


def test_decision_has_only_its_approval_by_default():
    decision = ApprovalDecision(approved=True)

    assert decision.model_dump() == {
        'approved': True,
        'note': None,
        'override_args': None,
        'remember': 'none',
        'remember_option': 'exact',
        'decided_by': (),
        'decided_at': None,
        'response': None,
        'reviewer_would': None,
    }


def test_full_decision_round_trips_through_json():
    decision = ApprovalDecision(
        approved=True,
        note='but carefully',
        override_args={'path': 'b'},
        remember='session',
        remember_option='directory',
        decided_by=('ada',),
        decided_at=AT,
    )

    assert ApprovalDecision.model_validate_json(decision.model_dump_json()) == decision


@pytest.mark.parametrize('approved', ['yes', 'true', 1, 1.0, 'y', None, [], object()])
def test_only_a_real_boolean_approves(approved):
    with pytest.raises(ValidationError, match='must be True or False'):
        ApprovalDecision(approved=approved)


@pytest.mark.parametrize(
    'fields', [{'remember': 'forever'}, {'scope': 'session'}, {'override_args': ['b']}, {'note': 1}]
)
def test_a_decision_with_an_unknown_value_or_field_is_refused(fields):
    with pytest.raises(ValidationError):
        ApprovalDecision(approved=True, **fields)


@pytest.mark.parametrize('remember', ['none', 'session', 'always'])
def test_approval_lasts_once_for_the_session_or_always(remember):
    assert ApprovalDecision(approved=True, remember=remember).remember == remember


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValidationError, match='timezone'):
        ApprovalDecision(approved=True, decided_at=datetime(2026, 1, 2))


def test_a_time_of_any_zone_is_kept():
    there = AT.astimezone(timezone(timedelta(hours=5)))

    assert ApprovalDecision(approved=True, decided_at=there).decided_at == AT


def test_a_denial_cannot_be_turned_into_an_approval():
    decision = ApprovalDecision(approved=False)

    with pytest.raises(ValidationError):
        decision.approved = True
