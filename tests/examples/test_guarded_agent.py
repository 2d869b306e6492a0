import pytest

pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')

pytestmark = pytest.mark.usefixtures('own_home')


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Give a busy machine more than 20 ms to parse a command: a command that takes longer needs approval."""
    monkeypatch.setattr('tool_approval.tools.shell.grammar.MAX_PARSE_S', 60)


def played(load, tmp_path, capsys):
    example = load('guarded_agent')
    workspace = example.prepare(tmp_path)
    example.run(workspace)
    return workspace, capsys.readouterr().out.splitlines()


def outcome_of(lines, call):
    return lines[next(at for at, line in enumerate(lines) if call in line and not line.startswith('  asked')) + 1]


def test_each_call_is_allowed_asked_about_or_refused_as_the_file_says(load, tmp_path, capsys):
    workspace, lines = played(load, tmp_path, capsys)
    # An OS sandbox holds what the rule for `cat` allows, so the diary needs approval.
    held = ['  asked: Run: cat diary/monday.txt -> yes'] if workspace.backend.name == 'bubblewrap' else []

    asked = [line for line in lines if line.startswith('  asked')]
    assert asked == [
        '  asked: Edit notes:todo.txt -> yes',
        *held,
        '  asked: Run: head -n 1 diary/monday.txt -> yes',
        '  asked: Run: wc -c notes/todo.txt -> no',
    ]
    assert outcome_of(lines, 'read_file') == '  buy milk'
    assert outcome_of(lines, 'edit_file') == '  Replaced notes:todo.txt (9 bytes).'
    assert 'is outside of the directories' in outcome_of(lines, 'write_file')
    assert outcome_of(lines, 'cat notes') == '  buy oats'
    assert outcome_of(lines, 'head -n 1') == '  It rained.'
    assert 'the rule `rm` blocks it' in outcome_of(lines, 'rm notes')
    assert outcome_of(lines, 'wc -c') == '  The approver denied this call, so it was not run: Count for yourself.'
    assert (tmp_path / 'notes' / 'todo.txt').read_text() == 'buy oats\n'
    assert (tmp_path / 'approvals.yaml').read_text() == load('guarded_agent').SETTINGS


def test_example_runs_without_an_os_sandbox(load, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr('tool_approval.os_sandbox.choose.platform_backends', lambda: ())

    workspace, lines = played(load, tmp_path, capsys)

    assert workspace.backend.name == 'unconfined'
    assert outcome_of(lines, 'cat diary') == '  It rained. / Ann called.'


def test_example_runs_as_a_program(play):
    lines = play('guarded_agent')

    assert lines[0].startswith('commands are confined by: ')
    assert lines[-1] == 'That is all.'
