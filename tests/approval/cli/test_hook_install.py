"""`tool-approval hook install` adds the hook, `uninstall` takes it away, and `doctor` proves that it denies."""

import json
import shutil
import subprocess

import pytest
from tool_approval.cli import hook_install
from tool_approval.os_sandbox import Availability, BubblewrapBackend

from .process import call

pytest.importorskip('yaml')

needs_timeout = pytest.mark.skipif(shutil.which('timeout') is None, reason='there is no `timeout` of the GNU coreutils')

THEIRS = """{ "model": "opus",
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}}"""


class Works(BubblewrapBackend):
    def probe(self):
        return Availability(is_available=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('CLAUDE_CONFIG_DIR', str(tmp_path / 'claude'))
    monkeypatch.setenv('CODEX_HOME', str(tmp_path / 'codex'))
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setattr('tool_approval.os_sandbox.platform_backends', lambda: [Works()])
    return tmp_path


@pytest.fixture
def hook(home, monkeypatch):
    def run(*words, **how):
        return call(monkeypatch, *words, **how)

    return run


def files(home):
    return {'claude': home / 'claude/settings.json', 'codex': home / 'codex/hooks.json'}


def ours(file):
    [*_, last] = json.loads(file.read_text())['hooks']['PreToolUse']
    [found] = last['hooks']
    return found


@needs_timeout
@pytest.mark.parametrize('client', ['claude', 'codex'])
@pytest.mark.parametrize('before', [None, '{}', THEIRS])
def test_the_hook_is_shown_added_and_taken_away(hook, home, client, before):
    file = files(home)[client]
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
        file.chmod(0o640)

    installed = hook('hook', 'install', client, typed='y', is_terminal=True)

    assert installed.status == 0
    assert json.dumps(ours(file)['command']) in installed.out
    assert ('/hooks' in installed.out) == (client == 'codex')
    assert 'already' in hook('hook', 'install', client, '--yes').out
    assert hook('hook', 'uninstall', client, typed='n', is_terminal=True).status == 2
    assert hook('hook', 'uninstall', client, '--yes').status == 0
    assert (file.read_text() if file.exists() else None) == before
    assert before is None or file.stat().st_mode & 0o777 == 0o640
    assert 'is not in' in hook('hook', 'uninstall', client, '--yes').out


@needs_timeout
def test_nothing_is_added_without_consent(hook, home):
    assert hook('hook', 'install', 'claude', typed='n', is_terminal=True).status == 2
    assert hook('hook', 'install', 'claude').status == 2
    assert not files(home)['claude'].exists()


@needs_timeout
@pytest.mark.parametrize('has_note', [True, False])
def test_what_was_changed_since_stays(hook, home, has_note):
    file = files(home)['claude']
    file.parent.mkdir()
    file.write_text(THEIRS)
    hook('hook', 'install', 'claude', '--inbox', '--yes')
    assert ours(file)['command'].split(' || ')[0].endswith('hook claude --inbox')
    file.write_text(json.dumps({**json.loads(file.read_text()), 'added': 1}))
    if not has_note:
        shutil.rmtree(home / 'state')

    hook('hook', 'uninstall', 'claude', '--yes')

    assert json.loads(file.read_text()) == {**json.loads(THEIRS), 'added': 1}


@needs_timeout
def test_an_entry_that_stood_alone_leaves_nothing(hook, home):
    file = files(home)['claude']
    hook('hook', 'install', 'claude', '--yes')
    file.write_text(json.dumps({**json.loads(file.read_text()), 'added': 1}))

    hook('hook', 'uninstall', 'claude', '--yes')

    assert json.loads(file.read_text()) == {'added': 1}


@pytest.mark.parametrize('text', ['{', '[]', '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', b'\xff'])
def test_settings_of_another_form_are_not_touched(hook, home, text):
    file = files(home)['claude']
    file.parent.mkdir()
    content = text if isinstance(text, bytes) else text.encode()
    file.write_bytes(content)

    assert hook('hook', 'install', 'claude', '--yes').status == 2
    assert file.read_bytes() == content


def test_what_is_missing_is_said(hook, home, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr('shutil.which', lambda name: None)
        assert 'coreutils' in hook('hook', 'install', 'claude', '--yes').err
    monkeypatch.setattr('sys.executable', shutil.which('false'))
    assert 'PYTHONPATH' in hook('hook', 'install', 'claude', '--yes').err


@needs_timeout
def test_the_canary_proves_that_an_installed_hook_denies(hook, home):
    assert 'hook claude' not in hook('doctor').out
    for client in ('claude', 'codex'):
        hook('hook', 'install', client, '--yes')

    finished = hook('doctor')

    assert finished.status == 0
    assert 'hook claude       the canary is denied\n' in finished.out
    assert 'hook codex        the canary is denied; Codex skips the hook until you trust it' in finished.out


@pytest.mark.parametrize(
    ('command', 'finding'),
    [
        ('exit 0', 'did not deny the canary: status 0'),
        ('exit 1', 'did not deny the canary: status 1'),
        ('echo broken >&2; exit 2', 'denies every call: broken'),
    ],
)
def test_a_hook_that_does_not_deny_the_canary_is_found(hook, home, command, finding):
    file = files(home)['claude']
    file.parent.mkdir()
    shown = f'{command} # -m tool_approval.cli hook claude'
    file.write_text(json.dumps({'hooks': {'PreToolUse': [3, {'hooks': [3, {'command': shown}]}]}}))

    finished = hook('doctor')

    assert finished.status == 1
    assert finding in finished.out


def test_hooks_that_are_switched_off_or_cannot_be_run_are_found(hook, home, monkeypatch):
    claude, codex = files(home).values()
    for file in (claude, codex):
        file.parent.mkdir()
    entry = {'hooks': {'PreToolUse': [{'hooks': [{'command': 'true # -m tool_approval.cli hook claude'}]}]}}
    claude.write_text(json.dumps({**entry, 'disableAllHooks': True}))
    codex.write_text('{')

    off = hook('doctor')

    assert 'has `disableAllHooks`' in off.out
    assert 'is not JSON' in off.out
    claude.write_text(json.dumps(entry))

    def hangs(*args, **options):
        raise subprocess.TimeoutExpired('sh', 1)

    monkeypatch.setattr(hook_install.subprocess, 'run', hangs)
    assert 'cannot be run' in hook('doctor').out


@needs_timeout
@pytest.mark.parametrize('broken', ['python', 'timeout', 'killed'])
def test_whatever_is_missing_the_command_line_denies_and_says_so(hook, home, broken):
    hook('hook', 'install', 'claude', '--yes')
    command = ours(files(home)['claude'])['command']
    words = command.split()
    at = {'timeout': 0, 'python': 4, 'killed': 4}[broken]
    replaced = '/nowhere/x' if broken != 'killed' else "sh -c 'kill -9 $$'"

    finished = subprocess.run(
        ['/bin/sh', '-c', command.replace(words[at], replaced, 1)], input=b'{}', capture_output=True, timeout=60
    )

    assert (finished.returncode, finished.stdout) == (2, b'')
    assert b'the call was not allowed' in finished.stderr
