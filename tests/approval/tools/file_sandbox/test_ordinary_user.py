"""The same as a user who is not root, in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, sys
from pathlib import Path
from tests.corpus.paths import judge, load
from tool_approval.tools.file_sandbox import FileSandbox, FileToolError, perform
import tool_approval.display.escape, tool_approval.tools.file_sandbox.config  # what is imported when it is needed

top = Path(sys.argv[1])
base, cases = load()  # as long as this user may read the project
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
assert os.geteuid() != 0
wrong = []
for number, case in enumerate(cases):
    (top / str(number)).mkdir()
    verdict = judge(case, base, top / str(number))
    if verdict.is_unsafe or verdict.is_too_strict:
        wrong.append([case['id'], verdict.decided, verdict.told, verdict.harm])

ws = top / '0/ws'
sandbox = FileSandbox(base, ws)
(ws / 'cache/closed').mkdir()
(ws / 'cache/closed/x').touch()
(ws / 'cache/closed').chmod(0)
(ws / 'cache/mute').write_text('x')
(ws / 'cache/mute').chmod(0)
told = {'in a closed directory': sandbox.decide('read_file', 'cache/closed/x').reason}
told['a closed directory deleted'] = sandbox.decide('delete', 'cache/closed').reason
for operation, path in (('read_file', 'cache/mute'), ('list_files', 'cache/closed')):
    try:
        with sandbox.open(operation, path) as access:
            perform(sandbox, access, {})
    except FileToolError as error:
        told[operation] = str(error)
told['behind a directory of another'] = sandbox.decide('read_file', sys.argv[2] + '/x').reason
below = {'paths': {'below': {'root': 'cache/closed/x'}, **base['paths']}}
told['beside a root in a closed directory'] = FileSandbox(below, ws).decide('read_file', 'notes/a.txt').outcome
(ws / 'cache/closed').chmod(0o700)
print(json.dumps({'wrong': wrong, 'told': told}))
"""


@pytest.fixture
def open_folder(tmp_path):
    """Any user may come here: the directories that pytest makes are its own user's alone."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield folder


def test_the_corpus_is_decided_the_same_and_the_systems_refusals_are_told(open_folder, tmp_path):
    other = {'user': 65534, 'group': 65534, 'extra_groups': []} if os.geteuid() == 0 else {}
    if subprocess.run(['bash', '-c', 'python3 -c ""'], stderr=subprocess.DEVNULL, check=False, **other).returncode:
        pytest.skip('a case needs a python3 in PATH that this user may run')
    closed = tmp_path / 'closed'
    closed.mkdir(mode=0o700)
    if os.geteuid() != 0:
        closed.chmod(0)
    environment = {**os.environ, 'PYTHONDONTWRITEBYTECODE': '1'}

    finished = subprocess.run(
        [sys.executable, '-c', SCRIPT, os.path.realpath(open_folder), str(closed)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert finished.stderr == ''
    found = json.loads(finished.stdout)
    assert found['wrong'] == []
    outside = found['told'].pop('behind a directory of another')
    assert found['told'] == {
        'in a closed directory': "'cache/closed/x' is refused. The path cannot be reached in cache: Permission denied.",
        'a closed directory deleted': 'cache:closed cannot be searched: Permission denied.',
        'read_file': 'cache:mute: the system refused: permission denied',
        'list_files': 'cache:closed: the system refused: permission denied',
        'beside a root in a closed directory': 'allow',
    }
    assert 'is refused. The path is outside of the directories' in outside
