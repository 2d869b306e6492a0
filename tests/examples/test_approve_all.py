import os
import subprocess
import sys

import pytest


def test_tests_of_the_example_pass(command, tmp_path):
    tests = subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', command('approve_all')[-1]],
        cwd=tmp_path,
        env={**os.environ, 'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1', 'PYTEST_ADDOPTS': ''},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert tests.returncode == 0, tests.stdout
    assert '2 passed' in tests.stdout


def test_external_call_without_a_result_fails_the_test_that_forgot_it(load):
    example = load('approve_all')
    paid = []

    with (
        example.agent.override(deferred_tool_handler=example.approve_all()),
        pytest.raises(KeyError, match='count_stock'),
    ):
        example.agent.run_sync('A mug came back broken.', deps=paid)

    assert paid == []
