"""Any object with the methods of a protocol implements it."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tool_approval import (
    ApprovalAware,
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
