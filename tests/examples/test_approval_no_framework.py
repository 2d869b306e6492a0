import subprocess
import sys

from tool_approval.testing import RecordingUI


def test_unknown_tool_is_a_result_and_not_an_error(load, finish):
    example = load('approval_no_framework')
    approvals = example.Approvals(ui=RecordingUI(True))

    told = finish(example.carry_out(approvals, 'invented', '{}'))

    assert told == "there is no tool 'invented'"


def test_no_agent_framework_is_imported(command):
    script = f'import runpy, sys; runpy.run_path({command("approval_no_framework")[-1]!r}); print(*sys.modules)'

    program = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, timeout=60)

    assert program.returncode == 0, program.stderr
    assert not {'pydantic_ai', 'pydantic_ai_deferred', 'langchain'} & set(program.stdout.split())
