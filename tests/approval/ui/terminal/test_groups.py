import pytest
from inline_snapshot import snapshot
from tool_approval.ui.terminal.render import group_keys, render_group

from tool_approval import ApprovalDecision, ApprovalPresentation, ApprovalRequest

from .person import ask

FILES = [
    ApprovalRequest(
        tool_name='delete',
        args={'path': f'{name}.txt'},
        group_id='g',
        metadata={'position': number, 'batch_size': 3},
    )
    for number, name in enumerate('abc', start=1)
]
LONG = FILES[0].model_copy(
    update={'presentation': ApprovalPresentation.of('text', ''.join(f'line {n}\n' for n in range(300)))}
)
ALL = '3 requests: '
ONE = '╰─ '


def test_a_group_is_shown_whole_above_the_question() -> None:
    drawn = render_group(FILES, width=80, height=24, color=False, ascii_only=False)

    assert drawn == snapshot("""\
╭─ delete                                                         request 1 of 3
│ ┊ path: "a.txt"
╰─
╭─ delete                                                         request 2 of 3
│ ┊ path: "b.txt"
╰─
╭─ delete                                                         request 3 of 3
│ ┊ path: "c.txt"
╰─
3 requests: A approve all   N deny all   o one by one   ? more \
""")


@pytest.mark.parametrize(
    ('width', 'question'),
    [(50, '3 requests: A all   N none   o each   ? more '), (44, '3 requests: A/N/o/? ')],
)
def test_where_there_is_less_room_the_keys_say_less(width: int, question: str) -> None:
    drawn = render_group(FILES, width=width, height=24, color=False, ascii_only=False)

    assert drawn.splitlines()[-1] == question


def test_the_list_the_keys_and_the_question_fit_into_a_small_terminal() -> None:
    drawn = render_group(FILES * 9, width=40, height=12, color=False, ascii_only=True)

    assert drawn.isascii()
    assert '\n'.join(drawn.splitlines()[-10:]) == snapshot("""\
| : path: "c.txt"
+-

27 requests, all shown above:
  1  delete: path='a.txt'
  2  delete: path='b.txt'
  3  delete: path='c.txt'
  4  delete: path='a.txt'
  and 23 more
27 requests: A/N/o/? \
""")


def test_all_are_approved_by_a_key_that_is_pressed_twice() -> None:
    decisions, person = ask(*FILES, steps=[(ALL, 'A'), ('Approve all 3? Press A once more', 'A')])

    assert decisions == [ApprovalDecision(approved=True, decided_by=('ada',))] * 3
    assert person.text.splitlines()[-1] == snapshot('✓ ada approved all 3: delete')


def test_the_second_press_can_be_held_back() -> None:
    decisions, _ = ask(
        *FILES, steps=[(ALL, 'A'), ('Approve all 3? Press A', 'y'), ('Approve all 3? Press A', '\x1b'), (ALL, 'N')]
    )

    assert decisions == [ApprovalDecision(approved=False, decided_by=('ada',))] * 3


def test_one_by_one_each_has_an_answer_of_its_own() -> None:
    decisions, _ = ask(*FILES, steps=[(ALL, 'o'), (ONE, 'y'), (ONE, 'n'), (ONE, 's')])

    assert [(decision.approved, decision.remember) for decision in decisions] == [
        (True, 'none'),
        (False, 'none'),
        (True, 'session'),
    ]


@pytest.mark.parametrize('key', ['y', 'a', 'n', 's', 'AA'])
def test_no_key_of_a_single_question_answers_for_all(key: str) -> None:
    _, person = ask(*FILES, steps=[(ALL, key), (ALL, 'N')])

    assert b'ignored' in person.sent


@pytest.mark.parametrize('key', ['q', '\x03'])
def test_the_run_is_stopped(key: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(*FILES, steps=[(ALL, key)])


def test_group_with_a_cut_request_cannot_be_approved_together() -> None:
    requests = [LONG, *FILES[1:]]

    decisions, person = ask(*requests, steps=[(ALL, 'A'), (ALL, 'o'), (ONE, 'y'), (ONE, 'y'), (ONE, 'n')])

    assert group_keys(requests) == ['N', 'o', '?', 'q']
    assert [decision.approved for decision in decisions] == [True, True, False]
    assert b'decide one by one' in person.sent


def test_a_group_is_not_drawn_where_rows_would_lose_their_frame() -> None:
    drawn = render_group(FILES, width=23, height=24, color=False, ascii_only=False)

    assert drawn.startswith('Too narrow to ask.')
    assert 'pprove' not in drawn


def test_a_key_of_the_list_answers_nothing_where_all_were_chosen_and_it_says_why() -> None:
    again = 'Approve all 3? Press A once more'

    decisions, person = ask(*FILES, steps=[(ALL, 'A'), (again, 'o'), (again, '\x1b'), (ALL, 'x'), (ALL, 'N')])

    assert not any(decision.approved for decision in decisions)
    assert b'That key is ignored here. Press a key named in the question; Esc goes back.' in person.sent
    assert b'That key is ignored. Press one of the keys below.' in person.sent
