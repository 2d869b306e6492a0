import pytest
from tool_approval.testing import RecordingUI


def test_policy_decorator_and_own_logic_each_decide_which_calls_ask(load, capsys):
    assert load('approval_policy').main() == 0
    assert capsys.readouterr().out.splitlines() == [
        'asked: Pay 90 euros to ada -> yes',
        'asked: Pay 90 euros to bob -> no',
        'asked: Write to ada -> yes',
        'read_orders: ada ordered a mug',
        "delete_account: The tool 'delete_account' is blocked by policy.",
        'refund: bob got 5 euros',
        'refund: ada got 90 euros',
        'refund: The approver denied this call, so it was not run: Only Ada has complained.',
        'refund: Sums above 1000 euros are paid by the bank.',
        'write_letter: a letter to ada is on its way',
        'note_down: noted',
    ]


def test_policy_file_overrides_the_checks_of_the_tools_except_their_blocks(run, tmp_path):
    policy = tmp_path / 'policy.yaml'
    policy.write_text('tools:\n  "*": {approval: none}\n')

    program = run('approval_policy', str(policy))

    assert program.returncode == 0, program.stderr
    assert 'asked' not in program.stdout
    assert 'refund: bob got 90 euros' in program.stdout
    assert 'refund: Sums above 1000 euros are paid by the bank.' in program.stdout


@pytest.mark.parametrize(
    ('text', 'line', 'problem'),
    [
        ('tools:\n  refund: {aproval: none}\n', 2, 'did you mean `approval`?'),
        ('tools:\n  refund:\n    approval: nobody\n', 3, 'unknown value `nobody`'),
    ],
)
def test_mistake_in_the_policy_is_reported_with_its_line_and_nothing_runs(run, tmp_path, text, line, problem):
    policy = tmp_path / 'policy.yaml'
    policy.write_text(text)

    program = run('approval_policy', str(policy))

    assert program.returncode == 2
    assert program.stdout.startswith(f'{policy}:{line}: ')
    assert problem in program.stdout
    assert len(program.stdout.splitlines()) == 1


def test_arguments_that_the_decorator_excludes_are_not_in_the_payload(load, monkeypatch):
    example = load('approval_policy')
    clerk = RecordingUI(False)
    monkeypatch.setattr(example, 'Clerk', lambda: clerk)

    example.run(example.ApprovalPolicy.from_yaml(example.POLICY))

    [letter] = [request for request in clerk.requests if request.tool_name == 'write_letter']
    assert dict(letter.payload) == {'customer': 'ada'}
