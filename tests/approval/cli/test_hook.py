"""`tool-approval hook` judges the calls of Claude Code and Codex, and whatever fails denies the call."""

import asyncio
import io
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tool_approval.cli import hook_calls, hook_judge
from tool_approval.inbox import Approver, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend

from tool_approval import ApprovalDecision

from .process import call

pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')

confining = pytest.mark.skipif(
    isinstance(choose_backend(require=False), UnconfinedBackend),
    reason='no OS sandbox works here; `make install-system` installs bubblewrap',
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The project of a client, with settings that nobody has trusted yet."""
    made = tmp_path / 'work'
    (made / 'sub').mkdir(parents=True)
    (made / 'a.txt').write_text('one two\n')
    monkeypatch.chdir(made)
    monkeypatch.setenv('CLAUDE_PROJECT_DIR', str(made))
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    return made


@pytest.fixture
def ask(folder, monkeypatch, tmp_path):
    """`ask('Bash', {...})`: the verdict, and what else the client reads."""

    def judged(tool, given, *options, client='claude', cwd=None, **more):
        transcript = tmp_path / 'transcript.jsonl'
        transcript.write_text(json.dumps({'type': 'session_meta', 'payload': {'cwd': str(folder)}}) + '\n')
        said = {
            'hook_event_name': 'PreToolUse',
            'cwd': str(cwd or folder),
            'tool_name': tool,
            'tool_input': given,
            'transcript_path': str(transcript),
            **more,
        }
        finished = call(monkeypatch, 'hook', client, *options, typed=json.dumps(said))
        if finished.status == 2:
            return 'deny', finished.err
        assert finished.status == 0
        if not finished.out:
            return 'pass', {}
        found = finished.json['hookSpecificOutput']
        assert found.pop('hookEventName') == 'PreToolUse'
        return found.pop('permissionDecision'), found

    return judged


def trusted(folder, text, monkeypatch):
    (folder / 'approvals.yaml').write_text(text)
    assert call(monkeypatch, 'trust', '--yes').status == 0


def log(tmp_path):
    lines = (tmp_path / 'state/tool-approval/audit/decisions.jsonl').read_text().splitlines()
    return [entry for line in lines if (entry := json.loads(line))['event'] != 'settings']


@confining
def test_a_command_that_may_run_confined_is_run_by_exec(ask, folder):
    verdict, found = ask('Bash', {'command': 'ls; git status', 'description': 'x'})

    words = shlex.split(found['updatedInput'].pop('command'))
    assert verdict == 'allow'
    assert found['updatedInput'] == {'description': 'x'}
    assert words[words.index('exec') :] == ['exec', '--never-ask', '--cwd', str(folder), '--', 'ls; git status']


@confining
def test_a_command_elsewhere_starts_in_the_project(ask, folder):
    _, found = ask('Bash', {'command': 'ls'}, cwd=folder / 'sub')

    assert shlex.split(found['updatedInput']['command'])[-1] == 'cd sub && ls'


@confining
def test_a_command_that_needs_access_is_asked_about_by_the_client(ask):
    verdict, found = ask('Bash', {'command': 'touch x'})

    assert verdict == 'ask'
    assert 'writes to files in this directory' in found['permissionDecisionReason']
    assert 'runs outside of the sandbox' in found['permissionDecisionReason']
    assert 'updatedInput' not in found


@confining
def test_with_an_inbox_exec_asks_about_a_command(ask):
    verdict, found = ask('Bash', {'command': 'touch x'}, '--inbox')

    assert verdict == 'allow'
    assert ' exec --inbox ' in found['updatedInput']['command']


@confining
def test_tools_are_judged_by_our_rules(ask, folder, monkeypatch):
    (folder / '.env').write_text('KEY=1\n')
    settings = """\
        tools:
          mcp__mail__*: {approval: none}
          mcp__mail__delete: {approval: blocked}
          TodoWrite: {approval: blocked}
        sandbox:
          paths: {work: {root: ., mode: rw, write_approval: true}, open: {root: sub, mode: rw, write_approval: false}}
        shell:
          default: {approval: none}
          rules: [{pattern: rm, allowed: false}]
        """
    trusted(folder, '\n'.join(line[8:] for line in settings.splitlines()), monkeypatch)
    file = str(folder / 'a.txt')
    rows = [
        ('a read', 'Read', {'file_path': file}, 'allow'),
        ('a secret', 'Read', {'file_path': str(folder / '.env')}, 'ask'),
        ('a path with ..', 'Read', {'file_path': f'{folder}/sub/../../x'}, 'deny'),
        ('the home', 'Read', {'file_path': '~/.ssh/id_rsa'}, 'deny'),
        ('outside', 'Write', {'file_path': '/etc/passwd', 'content': ''}, 'deny'),
        ('a write', 'Write', {'file_path': file, 'content': 'x'}, 'ask'),
        ('a write without approval', 'Write', {'file_path': str(folder / 'sub/x'), 'content': 'x'}, 'allow'),
        ('an edit', 'Edit', {'file_path': file, 'old_string': 'one', 'new_string': '1'}, 'ask'),
        ('an edit of what is not there', 'Edit', {'file_path': file, 'old_string': 'x', 'new_string': '1'}, 'ask'),
        ('an edit of nothing', 'Edit', {'file_path': file, 'old_string': 'one', 'new_string': 'one'}, 'ask'),
        ('several edits', 'MultiEdit', {'file_path': file, 'edits': []}, 'ask'),
        ('a notebook', 'NotebookEdit', {'notebook_path': str(folder / 'n.ipynb'), 'new_source': 'x'}, 'ask'),
        ('the settings', 'Write', {'file_path': str(folder / 'approvals.yaml'), 'content': ''}, 'deny'),
        ('a list', 'Glob', {'pattern': '*'}, 'allow'),
        ('a search where a secret is', 'Grep', {'pattern': 'x'}, 'ask'),
        ('a search elsewhere', 'Grep', {'pattern': 'x', 'path': str(folder / 'sub')}, 'allow'),
        ('MCP', 'mcp__mail__send', {'to': 'ada'}, 'allow'),
        ('MCP that is blocked', 'mcp__mail__delete', {'id': 1}, 'deny'),
        ('MCP without a rule', 'mcp__bank__pay', {'euros': 1}, 'ask'),
        ('the network', 'WebFetch', {'url': 'http://x'}, 'ask'),
        ('a tool of the client', 'TaskCreate', {}, 'pass'),
        ('one that is blocked', 'TodoWrite', {}, 'deny'),
        ('a blocked command', 'Bash', {'command': 'ls && rm x'}, 'deny'),
        ('no command', 'Bash', {}, 'deny'),
        ('no path', 'Write', {'file_path': 3}, 'deny'),
        ('the canary', 'tool_approval_canary', {}, 'deny'),
    ]

    found = {name: ask(tool, given)[0] for name, tool, given, _ in rows}

    assert found == {name: expected for name, *_, expected in rows}


def test_an_untrusted_file_can_only_block(ask, folder):
    (folder / 'approvals.yaml').write_text('tools: {mcp__a: {approval: none}, mcp__b: {approval: blocked}}')

    assert [ask('mcp__a', {})[0], ask('mcp__b', {})[0]] == ['ask', 'deny']


@pytest.mark.parametrize('client', ['claude', 'codex'])
@pytest.mark.parametrize(
    'said',
    [
        '',
        '{not json',
        '[]',
        '[' * 100_000,
        '{}',
        '{"hook_event_name": "PostToolUse", "tool_name": "Bash", "cwd": "/", "tool_input": {"command": "ls"}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "", "cwd": "/", "tool_input": {"command": "ls"}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "x", "tool_input": {"command": "ls"}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/", "tool_input": []}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/\\u0000", "tool_input": {"command": "ls"}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "mcp__x", "cwd": "/", "tool_input": {"x": NaN}}',
    ],
)
def test_what_cannot_be_read_is_denied(folder, monkeypatch, client, said):
    finished = call(monkeypatch, 'hook', client, typed=said)

    assert (finished.status, finished.out) == (2, '')
    assert 'denied' in finished.err


def test_too_long_a_call_is_denied(folder, monkeypatch):
    monkeypatch.setattr(hook_calls, '_MOST_BYTES', 10)

    assert call(monkeypatch, 'hook', 'claude', typed='{"a": "0123456789"}').status == 2


@pytest.mark.parametrize('error', [RuntimeError('x'), SystemExit(0), KeyboardInterrupt(), MemoryError()])
def test_whatever_is_raised_denies(ask, monkeypatch, error):
    def fails(*args, **options):
        raise error

    monkeypatch.setattr(hook_judge, 'open_guarded', fails)

    assert ask('Read', {'file_path': 'a.txt'})[0] == 'deny'


def test_a_check_that_waits_without_an_inbox_denies(ask, monkeypatch):
    async def waits(*args, **options):
        await asyncio.sleep(0)

    monkeypatch.setattr(hook_judge, 'decide', waits)

    verdict, said = ask('Read', {'file_path': 'a.txt'})

    assert verdict == 'deny'
    assert 'a check waits for an event loop' in said


def test_judging_a_command_imports_nothing_that_runs_or_asks(folder):
    said = {'hook_event_name': 'PreToolUse', 'cwd': str(folder), 'tool_name': 'Bash', 'tool_input': {'command': 'ls'}}
    code = 'import sys; from tool_approval.cli import main; status = main(); print(*sys.modules, file=sys.stderr)'

    done = subprocess.run(
        [sys.executable, '-P', '-c', f'{code}; sys.exit(status)', 'hook', 'claude'],
        input=json.dumps(said), capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0
    assert {'pydantic', 'tool_approval.cli.hook_judge'} <= {*done.stderr.split()}
    assert {
        'asyncio', 'ctypes', 'tool_approval.core.asking', 'tool_approval.core.redact', 'tool_approval.settings.host',
        'tool_approval.settings.sweeping', 'tool_approval.tools.file_sandbox.operations',
        'tool_approval.tools.shell.running',
    }.isdisjoint(done.stderr.split())  # fmt: skip


def test_a_log_that_cannot_be_written_denies(ask, tmp_path):
    (tmp_path / 'state/tool-approval').mkdir(parents=True)
    (tmp_path / 'state/tool-approval/audit').write_text('')

    assert ask('Read', {'file_path': 'a.txt'})[0] == 'deny'


@confining
def test_the_model_cannot_choose_the_project(ask, folder, tmp_path):
    _, found = ask('Bash', {'command': 'ls'}, client='codex', cwd=tmp_path)

    words = shlex.split(found['updatedInput']['command'])
    assert words[words.index('--cwd') + 1] == str(folder)
    assert words[-1] == f'cd {tmp_path} && ls'


def test_a_client_that_does_not_name_the_project_is_denied(ask, monkeypatch, tmp_path):
    (tmp_path / 'other').write_text('{"type": "other"}\n')
    monkeypatch.delenv('CLAUDE_PROJECT_DIR')

    assert ask('Read', {'file_path': 'a.txt'})[0] == 'deny'
    for path in (None, str(tmp_path / 'none'), str(tmp_path / 'other')):
        assert ask('Bash', {'command': 'ls'}, client='codex', transcript_path=path)[0] == 'deny'


@confining
def test_codex_cannot_ask_so_the_call_is_denied(ask, folder):
    patch = '*** Begin Patch\n*** Update File: a.txt\n*** Move to: /etc/x\n*** Add File: {}\n*** End Patch'
    rows = [
        ('a command', 'Bash', {'command': 'ls'}, 'allow'),
        ('one that needs access', 'Bash', {'command': 'touch x'}, 'deny'),
        ('a patch', 'apply_patch', {'command': patch.format('b.txt')}, 'deny'),
        ('no patch', 'apply_patch', {'command': 'x'}, 'deny'),
        ('another tool', 'mcp__x', {}, 'deny'),
        ('the plan', 'update_plan', {}, 'pass'),
    ]

    found = {name: ask(tool, given, client='codex')[0] for name, tool, given, _ in rows}

    assert found == {name: expected for name, *_, expected in rows}


def asked_in_inbox(ask, tmp_path, tool, given, *, approved=True, before=lambda: None):
    """The verdict about a call whose question a person answers, and the questions; `before` the answer, a change."""
    seen = []

    async def answer():
        with Inbox(SQLiteStore(tmp_path / 'state/tool-approval/inbox.sqlite')) as inbox:
            async for _ in inbox.changes():
                for entry in await inbox.open():
                    seen.append(entry.request)
                    before()
                    decision = ApprovalDecision(approved=approved)
                    await inbox.decide(entry.id, decision, by=Approver(id='ada'), digest=entry.digest)
                    return

    with ThreadPoolExecutor(1) as thread:
        answering = thread.submit(lambda: asyncio.run(answer()))
        verdict, _ = ask(tool, given, '--inbox')
        answering.result(30)
    return verdict, seen


@pytest.mark.parametrize(('approved', 'expected'), [(True, 'allow'), (False, 'deny')])
def test_an_edit_is_asked_about_in_the_inbox_with_its_whole_content(ask, folder, tmp_path, approved, expected):
    given = {'file_path': str(folder / 'a.txt'), 'old_string': 'one', 'new_string': '1'}

    found, seen = asked_in_inbox(ask, tmp_path, 'Edit', given, approved=approved)

    assert found == expected
    [request] = seen
    assert request.presentation.type == 'diff'
    assert '1 two' in request.presentation.content
    assert set(request.answers) == {'approve', 'deny'}
    assert [entry['event'] for entry in log(tmp_path)][:2] == ['question', 'decision']


def test_a_file_that_changes_while_its_edit_waits_is_not_written(ask, folder, tmp_path):
    given = {'file_path': str(folder / 'a.txt'), 'old_string': 'one', 'new_string': '1'}

    verdict, seen = asked_in_inbox(
        ask, tmp_path, 'Edit', given, before=lambda: (folder / 'a.txt').write_text('one two, and more\n')
    )

    assert (verdict, len(seen)) == ('deny', 1)


@confining
def test_judging_leaves_no_file_open(ask, folder):
    calls = [('Read', {'file_path': str(folder / 'a.txt')}), ('Bash', {'command': 'ls'}), ('mcp__x', {})]
    ask('Read', {})
    before = os.listdir('/proc/self/fd')

    verdicts = [ask(*each)[0] for each in calls]

    assert verdicts == ['allow', 'allow', 'ask']
    assert os.listdir('/proc/self/fd') == before


def test_an_edit_that_cannot_be_shown_is_not_asked_about_in_the_inbox(ask, folder):
    given = {'file_path': str(folder / 'a.txt'), 'old_string': 'none', 'new_string': '1'}

    verdict, reason = ask('Edit', given, '--inbox')

    assert verdict == 'deny'
    assert 'cannot be shown' in reason


def test_a_call_that_runs_unasked_is_logged(ask, folder, tmp_path):
    ask('Read', {'file_path': 'a.txt'}, tool_use_id='toolu_1', session_id='s')

    [entry] = log(tmp_path)
    assert (entry['event'], entry['caller'], entry['tool_call_id']) == ('unasked', 'claude', 'toolu_1')


@confining
def test_strict_settings_deny_what_needs_approval(ask, folder, monkeypatch):
    trusted(folder, 'mode: strict\n', monkeypatch)

    assert ask('mcp__x', {})[0] == 'deny'
    assert ask('Bash', {'command': 'touch x'})[0] == 'deny'


def test_the_content_after_an_edit(tmp_path):
    file = tmp_path / 'a'
    file.write_text('one one two\n')
    rows = [
        ('a write', 'Write', {'content': 'x'}, 'x'),
        ('no content', 'Write', {}, None),
        ('one place', 'Edit', {'old_string': 'two', 'new_string': '2'}, 'one one 2\n'),
        ('two places', 'Edit', {'old_string': 'one', 'new_string': '1'}, None),
        ('all places', 'Edit', {'old_string': 'one', 'new_string': '1', 'replace_all': True}, '1 1 two\n'),
        ('no place', 'Edit', {'old_string': 'x', 'new_string': '1', 'replace_all': True}, None),
        ('an empty text', 'Edit', {'old_string': '', 'new_string': '1'}, None),
        ('no text', 'Edit', {'new_string': '1'}, None),
        ('edits in order', 'MultiEdit', {'edits': [{'old_string': 'two', 'new_string': '3'}]}, 'one one 3\n'),
        ('no edits', 'MultiEdit', {'edits': 3}, None),
        ('a wrong edit', 'MultiEdit', {'edits': [3]}, None),
        ('a notebook', 'NotebookEdit', {'new_source': 'x'}, None),
    ]

    found = {name: hook_calls.new_content(tool, given, str(file)) for name, tool, given, _ in rows}

    assert found == {name: expected for name, *_, expected in rows}
    assert hook_calls.new_content('Edit', {'old_string': 'a', 'new_string': 'b'}, str(tmp_path / 'none')) is None


def test_a_call_is_read_once():
    said = {'hook_event_name': 'PreToolUse', 'cwd': '/', 'tool_name': 'Read', 'tool_input': {'file_path': 'x'}}

    found = hook_calls.read_call('claude', io.BytesIO(json.dumps(said).encode()), {'CLAUDE_PROJECT_DIR': '/'})

    assert found.judged[0].args == {'path': 'x'}
