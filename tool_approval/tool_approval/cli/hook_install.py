"""Add our hook to the settings of a client, take it away again, and prove that it denies."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from tool_approval.storage.private_file import default_path, make_private_folder, replace_private

from .hook import CANARY_DENIED
from .hook_calls import CANARY, Client
from .output import FAILED, Output, UsageError

CLIENTS: Final[tuple[Client, ...]] = ('claude', 'codex')
_NAMES: Final = {'claude': 'Claude Code', 'codex': 'Codex'}
_PATIENCE_S: Final = 50
"""Seconds after which the hook is ended and the call denied. Judging a call takes about a second."""
_INBOX_PATIENCE_S: Final = 3650
"""The same, if the hook waits for an answer from the inbox, in which a question expires after an hour."""
_MORE_S: Final = 30
"""Seconds that the client waits longer: it runs the call when its own time is over."""
_MARK: Final = '-m tool_approval.cli hook '
_TRUST: Final = 'Codex skips the hook until you trust it: type /hooks in Codex. It asks again after each change'


def install(options: argparse.Namespace, output: Output) -> int:
    """Show the hook, ask, and add it to the client's settings of the user.

    Returns: 0 if it was added or is there already, 2 if not.

    Raises:
        UsageError: The settings cannot be changed, or a program is missing. Nothing was changed.
    """
    client: Client = options.client
    path = settings_of(client)
    before, settings = _read(path)
    if list(commands_in(settings, client)):
        output.line(f'the hook is in {path} already; to change it, uninstall it first')
        return 0
    patience_s = _INBOX_PATIENCE_S if options.inbox else _PATIENCE_S
    hook: dict[str, object] = {
        'type': 'command',
        'command': _command(client, options.inbox, patience_s),
        'timeout': patience_s + _MORE_S,
    }
    entry: dict[str, object] = {'matcher': '*', 'hooks': [hook]}
    hooks: object = settings.setdefault('hooks', {})
    entries: object = _fields(hooks).setdefault('PreToolUse', [])
    if not isinstance(hooks, dict) or not isinstance(entries, list):
        raise UsageError(f'{path}: `hooks` has another form than is known here, so nothing was changed')
    _items(cast('object', entries)).append(entry)
    output.line(f'{path} gets this entry in hooks.PreToolUse:')
    for line in json.dumps(entry, indent=2).splitlines():
        output.line(line)
    if not (options.yes or output.agrees('Add it?', 'nothing was changed')):
        return FAILED
    after = _text(settings)
    note = {'path': str(path), 'before': before, 'after': hashlib.sha256(after.encode()).hexdigest()}
    make_private_folder(_kept(client).parent)
    replace_private(_kept(client), json.dumps(note).encode())
    _write(path, after)
    output.line(f'{_NAMES[client]} asks the hook from its next start on. `tool-approval doctor` proves that it denies.')
    if client == 'codex':
        output.line(f'{_TRUST}.')
    return 0


def uninstall(options: argparse.Namespace, output: Output) -> int:
    """Take our hook out of the client's settings. If nothing else was changed since, they get their former bytes.

    Raises:
        UsageError: The settings cannot be read. Nothing was changed.
    """
    client: Client = options.client
    path = settings_of(client)
    text, settings = _read(path)
    if not list(commands_in(settings, client)):
        output.line(f'the hook is not in {path}')
        return 0
    if not (options.yes or output.agrees(f'Remove the hook from {path}?', 'nothing was changed')):
        return FAILED
    try:
        note = _fields(json.loads(_kept(client).read_text()))
    except (OSError, ValueError):
        note = _fields(None)
    is_unchanged = text is not None and hashlib.sha256(text.encode()).hexdigest() == note.get('after')
    if is_unchanged and note.get('path') == str(path):
        if note['before'] is None:
            path.unlink()
        else:
            _write(path, note['before'])
    else:
        _remove(settings, client)
        _write(path, _text(settings))
    _kept(client).unlink(missing_ok=True)
    output.line(f'the hook was removed from {path}')
    return 0


def findings() -> Iterator[tuple[Client, str, bool]]:
    """Yield for each installed hook the client, what the canary showed, and whether the hook works."""
    for client in CLIENTS:
        path = settings_of(client)
        try:
            settings = _read(path)[1]
        except UsageError as error:
            yield client, str(error), False
            continue
        for command in commands_in(settings, client):
            if settings.get('disableAllHooks') is True:
                yield client, f'{path} has `disableAllHooks`, so no hook is asked', False
                continue
            problem = _canary(command)
            trust = f'; {_TRUST}' if client == 'codex' else ''
            yield client, problem or f'the canary is denied{trust}', problem is None


def settings_of(client: Client) -> Path:
    """Return the file with the user's hooks of a client, whether it exists or not."""
    variable, folder, name = {
        'claude': ('CLAUDE_CONFIG_DIR', '.claude', 'settings.json'),
        'codex': ('CODEX_HOME', '.codex', 'hooks.json'),
    }[client]
    given = os.environ.get(variable, '')
    return Path(os.path.realpath((Path(given) if os.path.isabs(given) else Path.home() / folder) / name))


def commands_in(settings: dict[str, Any], client: Client) -> Iterator[str]:
    """Yield the commands of our hook in a client's settings."""
    for _, hook in _ours(settings, client):
        yield hook['command']


def _ours(settings: dict[str, Any], client: Client) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    for entry in _items(_fields(settings.get('hooks')).get('PreToolUse')):
        inner = _items(_fields(entry).get('hooks'))
        for hook in list(inner):
            if f'{_MARK}{client}' in str(_fields(hook).get('command')):
                yield inner, hook


def _fields(value: object) -> dict[str, Any]:
    return cast('dict[str, Any]', value) if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return cast('list[Any]', value) if isinstance(value, list) else []


def _remove(settings: dict[str, Any], client: Client) -> None:
    for inner, hook in list(_ours(settings, client)):
        inner.remove(hook)
    hooks = settings['hooks']
    hooks['PreToolUse'] = [each for each in hooks['PreToolUse'] if _fields(each).get('hooks') != []]
    if not hooks['PreToolUse']:
        del hooks['PreToolUse']
    if not hooks:
        del settings['hooks']


def _command(client: Client, has_inbox: bool, patience_s: int) -> str:
    """Return the command line of the hook. If anything in it fails, its status is 2, and it writes a reason.

    It does not need a script: if a script were missing, clients would run the call.
    """
    timeout = shutil.which('timeout')
    if timeout is None:
        raise UsageError('there is no program `timeout`; install the GNU coreutils')
    # Attack: `PYTHONPATH` of a project's own settings makes Python import other modules.
    python = [os.path.abspath(sys.executable), '-I']
    found = subprocess.run([*python, '-c', 'import tool_approval.cli'], cwd='/', capture_output=True, check=False)
    if found.returncode:
        raise UsageError('tool-approval has to be installed in the environment of its Python, not found by PYTHONPATH')
    words = [timeout, '-k', '5', str(patience_s), *python, *_MARK.split(), client, *(['--inbox'] if has_inbox else [])]
    return f"{shlex.join(words)} || {{ echo 'tool-approval: the call was not allowed' >&2; exit 2; }}"


def _canary(command: str) -> str | None:
    """Run a hook as clients do, with a call that has to be denied, and return what is wrong."""
    call: dict[str, object] = {'hook_event_name': 'PreToolUse', 'cwd': '/', 'tool_name': CANARY, 'tool_input': {}}
    try:
        done = subprocess.run(
            ['/bin/sh', '-c', command], input=json.dumps(call), capture_output=True, text=True, timeout=_PATIENCE_S * 2,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f'the hook cannot be run: {error}'
    if done.returncode != FAILED:
        return f'the hook did not deny the canary: status {done.returncode}; uninstall it, and install it again'
    if CANARY_DENIED not in done.stderr:
        return f'the hook denies every call: {" ".join(done.stderr.split())[-300:]}'
    return None


def _kept(client: Client) -> Path:
    return default_path().parent / 'hooks' / f'{client}.json'


def _read(path: Path) -> tuple[str | None, dict[str, Any]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None, {}
    except (OSError, ValueError) as error:
        raise UsageError(f'{path} cannot be read: {error}') from None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f'{path} is not JSON: {error}') from None
    if not isinstance(found, dict):
        raise UsageError(f'{path} is not a JSON object')
    return text, cast('dict[str, Any]', found)


def _text(settings: dict[str, Any]) -> str:
    return f'{json.dumps(settings, indent=2, ensure_ascii=False)}\n'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix='.tool-approval-')
    with open(descriptor, 'w') as file:
        os.fchmod(descriptor, mode)
        file.write(text)
    os.replace(name, path)
