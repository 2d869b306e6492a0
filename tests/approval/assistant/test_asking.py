"""The UI of a conversation."""

import asyncio

import pytest
from tool_approval.assistant.asking import ConversationUI
from tool_approval.assistant.calls import Calls
from tool_approval.ui.terminal import TerminalUI

from tests.approval.parts import ListSink
from tool_approval import ApprovalController, ApprovalDecision, ApprovalRequest

from .shown import shown_screen

REQUEST = ApprovalRequest(tool_name='act', tool_call_id='1', description='Act')


class Inner:
    """Writes on the screen while it asks, as a tool that runs beside the question does."""

    def __init__(self, screen, *, stops=False):
        self._screen = screen
        self._stops = stops

    async def choose(self, request, *, mode):
        [decision] = await self.choose_group([request], mode=mode)
        return decision

    async def choose_group(self, requests, *, mode):
        self._screen.write('beside\n')
        self._screen.write_now('Question?\n')
        if self._stops:
            raise KeyboardInterrupt
        return [ApprovalDecision(approved=True)] * len(requests)


class Plain:
    """A UI whose methods are plain functions."""

    def choose(self, request, *, mode):
        return ApprovalDecision(approved=False)


def made(*, stops=False):
    screen, calls = shown_screen(), Calls()
    return ConversationUI(Inner(screen, stops=stops), screen=screen, calls=calls), screen, calls


def test_what_is_written_beside_a_question_comes_after_it():
    ui, screen, calls = made()

    decision = asyncio.run(ui.choose(REQUEST, mode='interactive'))

    assert decision.approved
    assert screen.shown == 'Question?\nbeside\n'
    assert calls.end('1') == 'Act'


def test_groups_are_asked_about_together():
    ui, screen, _ = made()

    decisions = asyncio.run(ui.choose_group([REQUEST, ApprovalRequest(tool_name='act')], mode='interactive'))

    assert [decision.approved for decision in decisions] == [True, True]
    assert screen.shown.count('Question?') == 1


def test_a_ui_of_plain_functions_is_asked_too():
    ui = ConversationUI(Plain(), screen=shown_screen(), calls=Calls())

    assert not asyncio.run(ui.choose(REQUEST, mode='interactive')).approved


def test_only_a_person_is_asked_about_all_of_a_response_together():
    assert ConversationUI(TerminalUI(), screen=shown_screen(), calls=Calls()).groups_responses
    assert not made()[0].groups_responses


@pytest.mark.parametrize('count', [1, 2])
def test_stopping_ends_the_turn_when_the_denial_is_written_down(count):
    ui, screen, _ = made(stops=True)
    sink = ListSink()
    controller = ApprovalController(ui=ui, audit=sink)
    requests = [ApprovalRequest(tool_name='act', args={'n': n}, group_id='g') for n in range(count)]

    async def main():
        turn = asyncio.create_task(controller.request_approvals([*requests, REQUEST]))
        ui.stop = turn.cancel
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(main())

    assert screen.shown == 'Question?\nbeside\n'
    assert [(entry['approved'], entry['note']) for entry in sink.entries] == [
        (False, 'The person stopped the run.')
    ] * count


def test_where_nothing_can_be_stopped_it_is_a_denial():
    controller = ApprovalController(ui=made(stops=True)[0])

    assert not asyncio.run(controller.request_approval(REQUEST)).approved
