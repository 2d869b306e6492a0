"""Claude Code and Codex, as they are published, with our hook and a scripted model; skipped where they are missing.

Each runs in a network namespace of its own. `npm install @anthropic-ai/claude-code @openai/codex` installs both; their
programs have to be in `PATH`.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tool_approval.inbox import Approver, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend

from tool_approval import ApprovalDecision

COMMAND = [sys.executable, '-P', '-m', 'tool_approval.cli']
DRIVER = Path(__file__).parent / 'driver.py'
UNSHARE = shutil.which('unshare')
CONFIG = """\
model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:8765/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
SERVER = """
import json, sys
for line in sys.stdin:
    got = json.loads(line)
    if 'id' not in got:
        continue
    result = {}
    if got['method'] == 'initialize':
        server = {'name': 'notes', 'version': '1'}
        version = got['params']['protocolVersion']
        result = {'protocolVersion': version, 'capabilities': {'tools': {}}, 'serverInfo': server}
    if got['method'] == 'tools/list':
        schema = {'type': 'object', 'properties': {'title': {'type': 'string'}}}
        result = {'tools': [{'name': 'write', 'description': 'Write a note.', 'inputSchema': schema}]}
    if got['method'] == 'tools/call':
        title = got['params']['arguments']['title']
        open(title, 'w').close()
        result = {'content': [{'type': 'text', 'text': f'{title} is written'}]}
    print(json.dumps({'jsonrpc': '2.0', 'id': got['id'], 'result': result}), flush=True)
"""
"""An MCP server whose tool writes a file."""
FAILS = """\
#!/bin/sh
case $(cat) in
*by-status*) exit 1;;
*by-signal*) kill -9 $$;;
*by-hanging*) sleep 60;;
*by-missing*) exec /nowhere/program;;
*by-quiet*) exit 2;;
*by-garbage*) echo '{not json';;
*by-array*) echo '[1]';;
*by-ask*) echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}';;
*by-denying*) echo no >&2; exit 2;;
esac
"""

pytestmark = [
    pytest.mark.skipif(
        UNSHARE is None or subprocess.run([UNSHARE, '-n', 'true'], capture_output=True).returncode != 0,
        reason='no network namespace can be made here',
    ),
    pytest.mark.skipif(
        isinstance(choose_backend(require=False), UnconfinedBackend),
        reason='no OS sandbox works here; `make install-system` installs bubblewrap',
    ),
]


class Client:
    """A client with a home of its own, in an empty project."""

    def __init__(self, name, tmp_path):
        program = shutil.which(name)
        if program is None:
            pytest.skip(f'`{name}` is not installed')
        self.name, self.program, self.tmp_path = name, program, tmp_path
        self.project, self.home = tmp_path / 'project', tmp_path / 'home'
        for folder in (self.project, self.home / 'claude', self.home / 'codex'):
            folder.mkdir(parents=True)
        (self.home / 'codex/config.toml').write_text(CONFIG)
        self.environment = {
            'HOME': str(self.home),
            'CLAUDE_CONFIG_DIR': str(self.home / 'claude'),
            'CODEX_HOME': str(self.home / 'codex'),
            'XDG_STATE_HOME': str(tmp_path / 'state'),
            'XDG_CACHE_HOME': str(tmp_path / 'cache'),
            'ANTHROPIC_BASE_URL': 'http://127.0.0.1:8765',
            'ANTHROPIC_API_KEY': 'x',
            'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1',
            'SCRIPTED_KEY': 'x',
        }
        self.settings = self.home / {'claude': 'claude/settings.json', 'codex': 'codex/hooks.json'}[name]

    def install(self):
        """Install our hook, and return its entry in the settings."""
        subprocess.run(
            [*COMMAND, 'hook', 'install', self.name, '--yes'],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return json.loads(self.settings.read_text())['hooks']['PreToolUse'][0]['hooks'][0]

    def serve(self, name, command):
        """Offer the tools of an MCP server."""
        state = self.environment['XDG_STATE_HOME']
        server = {'command': command[0], 'args': command[1:]}
        if self.name == 'claude':
            (self.home / 'claude/.claude.json').write_text(
                json.dumps({'mcpServers': {name: {**server, 'env': {'XDG_STATE_HOME': state}}}})
            )
        else:
            # Codex begins without a server that is not required, if the server is slow to start.
            lines = (f'{key} = {json.dumps(value)}' for key, value in {**server, 'required': True}.items())
            table = [f'[mcp_servers.{name}]', *lines, f'env = {{XDG_STATE_HOME = "{state}"}}']
            (self.home / 'codex/config.toml').write_text('\n'.join([CONFIG, *table]))

    def hook(self, command, timeout_s):
        entry = {'matcher': '*', 'hooks': [{'type': 'command', 'command': command, 'timeout': timeout_s}]}
        self.settings.write_text(json.dumps({'hooks': {'PreToolUse': [entry]}}))

    def run(self, *commands, calls=(), **environment):
        """Let the model make calls, and return the result of each as text."""
        if self.name == 'claude':
            tools = [['Bash', {'command': each, 'description': 'a step'}] for each in commands]
            words = ['-p', 'Go.', '--allowedTools', 'Bash', 'Write', 'Read', 'mcp__notes__write']
        else:
            tools = [['exec_command', {'cmd': each, 'yield_time_ms': 30_000}] for each in commands]
            words = ['exec', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', 'Go.']
        told = {
            'command': [self.program, *words],
            'calls': [*tools, *calls],
            'environment': {**self.environment, **environment},
        }
        done = subprocess.run(
            [str(UNSHARE), '-n', sys.executable, str(DRIVER)],
            input=json.dumps(told).encode(),
            cwd=self.project,
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr.decode()
        found = json.loads(done.stdout)
        assert len(found['results']) == len(told['calls']), found
        return [json.dumps(each) for each in found['results'].values()]

    def made(self):
        return {path.name for path in self.project.iterdir()}


@pytest.fixture(params=['claude', 'codex'])
def client(request, tmp_path):
    return Client(request.param, tmp_path)


def test_what_may_run_is_confined_and_the_rest_does_not_run(client):
    client.install()
    (client.tmp_path / 'outside.txt').write_text('secret words')

    shown, unseen, denied = client.run(
        'echo con""fined; python3 -c "open(\'made-inside\', \'w\')"',
        'cat ../outside.txt || true',
        'echo x > made-denied',
    )

    assert 'confined' in shown
    assert 'Read-only file system' in shown
    assert 'secret words' not in unseen
    assert 'needs more access' in denied or 'needs approval' in denied
    assert client.made() == set()


def test_file_tools_of_claude_code_are_judged_by_the_file_rules(tmp_path):
    client = Client('claude', tmp_path)
    client.install()
    inside, outside = client.project / 'a.txt', tmp_path / 'b.txt'
    inside.write_text('one two three')
    outside.write_text('four five')

    read, refused, written, away = client.run(
        calls=[
            ['Read', {'file_path': str(inside)}],
            ['Read', {'file_path': str(outside)}],
            ['Write', {'file_path': str(client.project / 'new'), 'content': 'x'}],
            ['Write', {'file_path': str(tmp_path / 'new'), 'content': 'x'}],
        ]
    )

    assert 'one two three' in read
    assert 'four five' not in refused
    assert 'approval' in written
    assert 'outside of the directories' in away
    assert client.made() == {'a.txt'}
    assert not (tmp_path / 'new').exists()


def test_no_call_runs_whatever_fails_in_our_hook(client):
    entry = client.install()
    fails = client.tmp_path / 'fails.sh'
    fails.write_text(FAILS)
    fails.chmod(0o755)
    ways = ['by-status', 'by-signal', 'by-hanging', 'by-missing', 'by-quiet']
    before, _, after = entry['command'].partition(sys.executable)
    assert before.endswith('-k 5 50 ')
    client.hook(f'{before.replace("-k 5 50", "-k 1 2")}{fails}{after}', 20)

    client.run(*(f'touch made-{way}' for way in ways))

    assert client.made() == set()


def test_no_call_runs_if_the_state_cannot_be_used(client):
    client.install()
    (client.tmp_path / 'blocked').write_text('')

    client.run('touch made', 'echo x', XDG_STATE_HOME=str(client.tmp_path / 'blocked'))

    assert client.made() == set()


def test_what_a_client_does_with_a_hook_that_fails_by_itself(client):
    """Why our hook ends with status 2 and a reason, as docs/how-to/hooks.md says."""
    fails = client.tmp_path / 'fails.sh'
    fails.write_text(FAILS)
    fails.chmod(0o755)
    client.hook(str(fails), 2)
    ways = {'status', 'signal', 'hanging', 'missing', 'garbage', 'array', 'quiet', 'ask', 'denying'}

    client.run(*(f'touch by-{way}' for way in sorted(ways)))

    stopped = {'claude': {'quiet', 'ask', 'denying'}, 'codex': {'denying'}}[client.name]
    assert client.made() == {f'by-{way}' for way in ways - stopped}


def test_calls_of_an_mcp_server_are_asked_about_in_the_inbox(client):
    proxy = [*COMMAND, 'mcp', '--name', 'notes', '--inbox', '--cwd', str(client.project)]
    client.serve('notes', [*proxy, '--', sys.executable, '-c', SERVER])
    name = {'claude': 'mcp__notes__write', 'codex': 'mcp__notes/write'}[client.name]
    store = client.tmp_path / 'state/tool-approval/inbox.sqlite'
    store.parent.mkdir(parents=True, mode=0o700)

    with ThreadPoolExecutor() as threads:
        answers = threads.submit(asyncio.run, asyncio.wait_for(answered(store, [True, False]), 100))
        written, denied = client.run(calls=[[name, {'title': 'one'}], [name, {'title': 'two'}]])
        asked = answers.result()

    assert asked == ['mcp__notes__write', 'mcp__notes__write']
    assert 'one is written' in written
    assert 'denied' in denied
    assert client.made() == {'one'}


async def answered(store, answers):
    """Answer questions in turn, and return the names of the tools that they are about."""
    asked = []
    with Inbox(SQLiteStore(store)) as inbox:
        async for _ in inbox.changes():
            for entry in await inbox.open():
                decision = ApprovalDecision(approved=answers[len(asked)])
                await inbox.decide(entry.id, decision, by=Approver(id='ada'), digest=entry.digest)
                asked.append(entry.request.tool_name)
            if len(asked) == len(answers):
                return asked
