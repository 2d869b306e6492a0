from tool_approval.testing import RecordingUI


def test_a_group_is_one_question_with_an_answer_for_each_call(play):
    assert play('approval_groups') == [
        'together:',
        '  1. var/a.log -> yes',
        '  2. var/data.db -> no',
        'together:',
        '  3. home/b.log -> yes',
        '  4. home/c.log -> yes',
        "5 of 6: send_mail(to='ada') -> yes",
        "6 of 6: send_mail(to='eve') -> no",
        'var/a.log is gone',
        'Not this one.',
        'home/b.log is gone',
        'home/c.log is gone',
        'sent to ada',
        'Not this one.',
    ]


def test_a_ui_without_groups_is_asked_about_each_call(load, monkeypatch, capsys):
    example = load('approval_groups')
    person = RecordingUI('No.')
    monkeypatch.setattr(example, 'Terminal', lambda: person)

    example.main()

    assert len(person.requests) == 6
    assert capsys.readouterr().out.splitlines() == ['No.'] * 6
