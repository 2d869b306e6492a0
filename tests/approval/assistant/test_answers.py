"""Answers that were prepared."""

import pytest
from tool_approval.assistant.asking import PreparedAnswers

from tool_approval import ApprovalRequest

from .shown import shown_screen

REQUEST = ApprovalRequest(tool_name='delete', args={'path': 'a'})


def answered(answers):
    screen = shown_screen()
    ui = PreparedAnswers(iter(answers), screen)
    return ui.choose(REQUEST, mode='interactive'), screen.shown


@pytest.mark.parametrize(('answer', 'remember'), [('y', 'none'), ('s', 'session')])
def test_y_and_s_approve(answer, remember):
    decision, shown = answered([answer])

    assert decision.approved
    assert decision.remember == remember
    assert shown.endswith(f'? more {answer}\n')


@pytest.mark.parametrize('answer', ['n', 'a', 'yes', '', '\x1b[A', 'Y'])
def test_every_other_answer_denies(answer):
    decision, shown = answered([answer])

    assert not decision.approved
    assert shown.endswith('? more n\n')


def test_s_denies_if_the_question_does_not_offer_the_session():
    screen = shown_screen()
    request = ApprovalRequest(tool_name='send', args={'text': 'x' * 20_000})

    decision = PreparedAnswers(iter('s'), screen).choose(request, mode='interactive')

    assert '[s]' not in screen.shown
    assert not decision.approved
    assert screen.shown.endswith('? more n\n')


def test_the_end_of_the_answers_denies_and_says_so():
    decision, shown = answered([])

    assert not decision.approved
    assert '(no answers left: denied)' in shown


def test_each_of_a_group_takes_an_answer():
    ui = PreparedAnswers(iter('yn'), shown_screen())

    decisions = ui.choose_group([REQUEST, REQUEST, REQUEST], mode='interactive')

    assert [decision.approved for decision in decisions] == [True, False, False]


@pytest.mark.parametrize('columns', [1, 10, 22])
def test_in_a_narrow_window_the_question_is_shown_before_it_is_answered(columns):
    screen = shown_screen()
    screen.given_columns = columns

    decision = PreparedAnswers(iter('y'), screen).choose(REQUEST, mode='interactive')

    assert decision.approved
    assert 'path: "a"' in screen.shown
    assert 'Too narrow' not in screen.shown
