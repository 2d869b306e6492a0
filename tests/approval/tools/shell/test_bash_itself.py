"""What the rules rely on about shells, as the shells of this platform show."""

import shutil
import subprocess

import pytest


def run(tmp_path, *argv):
    subprocess.run(argv, cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize('shell', ['bash', 'dash'])
@pytest.mark.parametrize('operator', ['-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-nt', '-ot', '-ef'])
def test_a_test_command_evaluates_no_subscript(shell, operator, tmp_path):
    if shutil.which(shell) is None:  # pragma: no cover - the shells of this platform
        pytest.skip(f'there is no {shell}')
    script = f"""x='a[$(touch ran)]'; [ "$x" {operator} 1 ]; test 1 {operator} "$x"; [ ! "$x" {operator} "$x" ]"""

    run(tmp_path, shell, '-c', script)

    assert list(tmp_path.iterdir()) == []


def test_bash_reads_a_script_without_running_it(tmp_path):
    (tmp_path / 'a.sh').write_text('touch ran\nx=$(touch ran)\n[[ -v "a[$(touch ran)]" ]]\nset +n\ntouch ran\n')

    run(tmp_path, 'bash', '-n', 'a.sh')

    assert [each.name for each in tmp_path.iterdir()] == ['a.sh']
