"""The seams: whatever has the methods fits."""

import asyncio
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tool_approval import (
    ApprovalAware,
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRequest,
    RememberedApproval,
    requires_approval,
)

REQUEST = ApprovalRequest(tool_name='write', args={'path': 'a', 'mode': 'w'}, run_id='run')


class Anything:
    """No base class, no registration."""

    def __init__(self):
        self.asked = []

    def choose(self, request, *, mode):
        self.asked.append((request.tool_name, mode))
        return ApprovalDecision(approved=True, decided_by='ada')


class AnythingAsync(Anything):
    async def choose(self, request, *, mode):
        return super().choose(request, mode=mode)


@pytest.mark.parametrize('ui', [Anything(), AnythingAsync()], ids=['sync', 'async'])
def test_any_object_with_choose_is_a_ui(ui):
    decision = asyncio.run(ApprovalController(ui=ui).request_approval(REQUEST))

    assert (decision.approved, decision.decided_by) == (True, 'ada')
    assert ui.asked == [('write', 'interactive')]


def test_memory_finds_the_same_call_in_any_order_of_its_arguments():
    memory = ApprovalMemory()
    memory.store(REQUEST, ApprovalDecision(approved=True, remember='session'))

    again = ApprovalRequest(tool_name='write', args={'mode': 'w', 'path': 'a'}, run_id='run')
    other = ApprovalRequest(tool_name='write', args={'mode': 'w', 'path': 'b'}, run_id='run')

    assert memory.lookup(again) is not None
    assert memory.lookup(other) is None


def test_approval_for_one_call_is_not_remembered():
    memory = ApprovalMemory()

    memory.store(REQUEST, ApprovalDecision(approved=True, remember='none'))

    assert memory.lookup(REQUEST) is None
    assert len(memory) == 0


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
