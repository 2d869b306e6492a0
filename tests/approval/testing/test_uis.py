import pytest
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all, deny_all

from tests.approval.parts import decide, decide_all, request_for
from tool_approval import ApprovalController, ApprovalDecision


def answered(answer):
    return ScriptedUI([answer]).choose(request_for(), mode='interactive')


@pytest.mark.parametrize(
    ('answer', 'decision'),
    [
        (True, ApprovalDecision(approved=True)),
        ('y', ApprovalDecision(approved=True)),
        ('s', ApprovalDecision(approved=True, remember='session')),
        ('a', ApprovalDecision(approved=True, remember='always')),
        (False, ApprovalDecision(approved=False)),
        ('n', ApprovalDecision(approved=False)),
        ('not today', ApprovalDecision(approved=False, note='not today')),
        (ApprovalDecision(approved=True, note='as it is'), ApprovalDecision(approved=True, note='as it is')),
        (lambda request: 'not ' + request.args['path'], ApprovalDecision(approved=False, note='not a')),
        (lambda request: True, ApprovalDecision(approved=True)),
    ],
)
def test_an_answer_of_a_script_means_a_decision(answer, decision):
    assert answered(answer) == decision


@pytest.mark.parametrize('answer', [EOFError('end'), EOFError])
def test_an_error_in_a_script_is_raised(answer):
    with pytest.raises(EOFError):
        answered(answer)


def test_a_script_is_answered_in_its_order_and_keeps_what_was_asked():
    ui = ScriptedUI([True, 'no'])

    decisions = [decide(ApprovalController(ui=ui), request_for(path)).approved for path in 'ab']

    assert decisions == [True, False]
    assert [request.args['path'] for request in ui.requests] == ['a', 'b']
    ui.assert_done()


def test_question_beyond_the_prepared_answers_is_denied_and_reported():
    ui = ScriptedUI([])

    decision = decide(ApprovalController(ui=ui), request_for())

    assert decision.note == 'The approval prompt failed (AssertionError), so the call was denied.'
    with pytest.raises(AssertionError, match=r'0 answers .* 1 questions were asked; the last was .delete\('):
        ui.assert_done()


def test_unused_prepared_answer_is_reported():
    with pytest.raises(AssertionError, match=r'1 answers were prepared, but 0 questions were asked$'):
        ScriptedUI([True]).assert_done()


def test_a_script_has_one_answer_for_each_of_many_concurrent_questions():
    ui = ScriptedUI([True] * 30)

    decisions = decide_all(ApprovalController(ui=ui), *(request_for(number) for number in range(30)))

    ui.assert_done()
    assert all(decision.approved for decision in decisions)


@pytest.mark.parametrize(
    ('ui', 'approved', 'note'),
    [
        (approve_all(), True, None),
        (deny_all(), False, 'denied by the test'),
        (deny_all('never'), False, 'never'),
        (RecordingUI('s'), True, None),
    ],
)
def test_a_ui_may_give_the_same_answer_to_everything(ui, approved, note):
    decisions = decide_all(ApprovalController(ui=ui), request_for('a'), request_for('b'))

    assert [(decision.approved, decision.note) for decision in decisions] == [(approved, note)] * 2
    assert sorted(request.args['path'] for request in ui.requests) == ['a', 'b']
