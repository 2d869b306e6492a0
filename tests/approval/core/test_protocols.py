"""Any object with the methods of a protocol implements it."""

import asyncio
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from tool_approval.testing import approve_all

from tests.approval.parts import ListSink
from tool_approval import (
    ApprovalAware,
    ApprovalController,
    ApprovalDecision,
    ApprovalRequest,
    RememberedApproval,
    requires_approval,
)


def test_tool_with_check_approval_is_approval_aware():
    class Tool:
        def check_approval(self, ctx):
            return None

    @requires_approval()
    def function() -> None: ...

    assert isinstance(Tool(), ApprovalAware)
    assert isinstance(function, ApprovalAware)
    assert not isinstance(print, ApprovalAware)


def test_a_remembered_approval_survives_being_written_and_read():
    approval = RememberedApproval(
        id='a' * 64, tool_name='write', kind='exact', label='write(a)', approved_at=datetime(2026, 1, 2, tzinfo=UTC)
    )

    assert RememberedApproval.model_validate_json(approval.model_dump_json()) == approval


@pytest.mark.parametrize('fields', [{'approved_at': datetime(2026, 1, 2)}, {'approved': True}])
def test_a_remembered_approval_of_another_shape_is_refused(fields):
    whole = {
        'id': 'a',
        'tool_name': 'b',
        'kind': 'exact',
        'label': 'c',
        'approved_at': datetime(2026, 1, 2, tzinfo=UTC),
    }

    with pytest.raises(ValidationError):
        RememberedApproval.model_validate({**whole, **fields})


def test_a_member_of_a_ui_that_fails_answers_no_and_does_not_end_the_run(caplog):
    class UI:
        async def choose(self, request, *, mode):
            return ApprovalDecision(approved=True, remember='session')

        def may_approve(self, request, approvers):
            raise ValueError('hunter22')

        def asks(self, request):
            raise ValueError('hunter22')

    sink = ListSink()
    controller = ApprovalController(ui=UI(), audit=sink)
    request = ApprovalRequest(tool_name='delete', args={'path': 'a'})

    assert asyncio.run(controller.request_approval(request)).approved
    assert controller.removed(request, ('ada',)) is not None
    assert sink.all[0]['asked'] == []
    assert 'may_approve failed with ValueError at' in caplog.text
    assert 'hunter22' not in caplog.text


def test_a_sink_that_fails_denies_the_call():
    class Sink:
        def record(self, entry):
            raise KeyError('hunter22')

    controller = ApprovalController(ui=approve_all(), audit=Sink())

    decision = asyncio.run(controller.request_approval(ApprovalRequest(tool_name='delete', args={'path': 'a'})))

    assert (decision.approved, decision.decided_by) == (False, ('audit',))
