"""Calls that are counted against the bounds of a remembered approval, in LangChain."""

from tool_approval.testing import RecordingUI

from tests.approval.parts import ListSink
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory

from .scripted import call, scripted

CALLS = [[call('read', str(number), path='a')] for number in range(4)]


def bounded(request):
    kinds = [option.kind for option in request.remember_options]
    return ApprovalDecision(approved=True, remember='session', remember_option=kinds[0])


class OthersAreFaster(ApprovalMemory):
    """Another process takes a use right before each call of this one."""

    def take(self, approval_id, request):
        super().take(approval_id, request)
        super().take(approval_id, request)


def test_uses_are_counted(run, files):
    ui = RecordingUI(bounded)
    controller = ApprovalController(ui=ui, policy={'read': {'remember': [{'uses': 3}]}})

    run(scripted(*CALLS, 'done'), files.tools(), controller, caller='clerk')

    assert len(files.ran) == 4
    assert len(ui.requests) == 2


def test_a_call_for_which_nothing_is_left_does_not_run(run, files):
    log = ListSink()
    controller = ApprovalController(
        ui=RecordingUI(bounded), policy={'read': {'remember': [{'uses': 2}]}}, memory=OthersAreFaster(), audit=log
    )

    told = run(scripted(*CALLS[:2], 'done'), files.tools(), controller, caller='clerk')

    assert len(files.ran) == 1
    assert 'is used up' in told[1][1]
    assert log.outcomes() == ['executed', 'refused']
