import logging

import pytest
from pydantic_ai.messages import ToolCallPart


def test_only_explicitly_allowed_calls_run(run):
    program = run('fail_closed')

    assert program.returncode == 0
    assert program.stdout.splitlines() == [
        'pay: paid 20 EUR',
        'pay: Denied by policy.',
        'pay: Denied by policy.',
        'close_account: Denied by policy.',
        'send_fax: Not available here.',
        'Really done: 20 EUR',
    ]
    assert program.stderr.startswith('log: no decision about pay\n')
    assert "KeyError: 'XAU'" in program.stderr


async def not_awaited(call: ToolCallPart) -> bool:
    return True


def failing(call: ToolCallPart) -> bool:
    raise RuntimeError('the policy server is down')


@pytest.mark.parametrize(
    ('allows', 'done'),
    [
        pytest.param(lambda call: True, ['20 EUR', '900 EUR', '1 XAU', 'closed'], id='true'),
        pytest.param(lambda call: False, [], id='false'),
        pytest.param(lambda call: None, [], id='nothing'),
        pytest.param(lambda call: 'no', [], id='text'),
        pytest.param(lambda call: 1, [], id='one'),
        pytest.param(failing, [], id='exception'),
    ],
)
def test_only_true_approves(load, caplog, allows, done):
    example = load('fail_closed')
    really_done = []

    with caplog.at_level(logging.CRITICAL):
        handler = example.fail_closed(allows)
        example.agent.run_sync('Settle everything.', deps=really_done, deferred_tool_handler=handler)

    assert sorted(really_done) == sorted(done)


@pytest.mark.filterwarnings('ignore:coroutine .* was never awaited:RuntimeWarning')
def test_coroutine_that_is_never_awaited_denies(load):
    example = load('fail_closed')
    really_done = []

    handler = example.fail_closed(not_awaited)
    example.agent.run_sync('Settle everything.', deps=really_done, deferred_tool_handler=handler)

    assert really_done == []
