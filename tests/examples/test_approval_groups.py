from tool_approval.core.calls import denied_because
from tool_approval.testing import RecordingUI


def test_a_ui_without_groups_is_asked_about_each_call(load, monkeypatch, capsys):
    example = load('approval_groups')
    person = RecordingUI('No.')
    monkeypatch.setattr(example, 'Terminal', lambda: person)

    example.main()

    assert len(person.requests) == 6
    assert capsys.readouterr().out.splitlines() == [denied_because('No.')] * 6
