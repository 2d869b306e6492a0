"""Read the call that a client gives its hook, and find the tool of ours that has the rules for it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal, cast

from .output import UsageError

Client = Literal['claude', 'codex']
"""A client whose hooks are known: Claude Code or Codex."""
COMMAND: Final = 'run_shell'
"""Name of the tool with the rules for commands."""
CANARY: Final = 'tool_approval_canary'
"""Name of a tool that no client has. A call of it is denied whatever the rules say, so it proves that a hook works."""
_MOST_BYTES: Final = 32 << 20
"""Maximum size of a call in bytes, more than the clients write into a file at once."""
_OF_THE_CLIENT: Final[Mapping[Client, frozenset[str]]] = {
    'claude': frozenset({
        'Agent', 'AskUserQuestion', 'BashOutput', 'EnterPlanMode', 'ExitPlanMode', 'KillBash', 'KillShell', 'Skill',
        'Task', 'TaskCreate', 'TaskGet', 'TaskList', 'TaskOutput', 'TaskStop', 'TaskUpdate', 'TodoWrite', 'ToolSearch',
    }),
    'codex': frozenset({'update_plan'}),
}  # fmt: skip
"""Tools that do nothing but talk to the user, keep a list, or start or stop what is judged call by call."""
_READS: Final = {'Read': 'file_path', 'NotebookRead': 'notebook_path'}
_LISTS: Final = {'LS': 'path', 'Glob': 'path', 'Grep': 'path'}
_WRITES: Final = {'Write': 'file_path', 'Edit': 'file_path', 'MultiEdit': 'file_path', 'NotebookEdit': 'notebook_path'}


@dataclass(frozen=True, kw_only=True)
class JudgedCall:
    """A call of one of our tools, in whose place a client's tool acts."""

    tool: str
    """Name in the rules: of one of our tools, or of the client's own."""
    args: Mapping[str, Any]
    """Arguments."""
    is_searched: bool = False
    """Whether the client's tool reads all files of the folder `path`, too."""


@dataclass(frozen=True, kw_only=True)
class ClientCall:
    """A call as a client gives it to its hook."""

    client: Client
    tool: str
    """Name of the client's tool."""
    given: Mapping[str, Any]
    """Arguments of the client's tool."""
    directory: str
    """Absolute path of the project, whose settings apply."""
    cwd: str
    """Absolute path of the directory in which a command would start."""
    call_id: str | None
    session_id: str | None
    judged: tuple[JudgedCall, ...]
    """Calls to judge. The strictest decision is that of the client's call."""
    is_of_client: bool
    """Whether the call needs no approval unless a rule says so, and the client itself decides about it."""


def read_call(client: Client, stream: BinaryIO, environment: Mapping[str, str]) -> ClientCall:
    """Read a call from the hook's standard input.

    Raises:
        UsageError: It is not the JSON that clients write before a call.
    """
    text = stream.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise UsageError(f'the call has more than {_MOST_BYTES} bytes')
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError('the call is not JSON') from None
    if not isinstance(found, dict):
        raise UsageError('the call is not a JSON object')
    call = cast('dict[str, object]', found)
    if call.get('hook_event_name') != 'PreToolUse':
        raise UsageError('the hook is only for the event PreToolUse')
    tool, cwd, given = call.get('tool_name'), call.get('cwd'), call.get('tool_input')
    if not isinstance(tool, str) or not tool or not isinstance(cwd, str) or not os.path.isabs(cwd):
        raise UsageError('the call has no `tool_name`, or no absolute `cwd`')
    if not isinstance(given, dict):
        raise UsageError('the call has no `tool_input`')
    cwd = os.path.realpath(cwd)
    # The canary needs no project.
    project = cwd if tool == CANARY else _project(client, call, environment)
    directory = os.path.realpath(project)
    args = cast('dict[str, Any]', given)
    return ClientCall(
        client=client,
        tool=tool,
        given=args,
        directory=directory,
        cwd=cwd,
        call_id=_text(call.get('tool_use_id')),
        session_id=_text(call.get('session_id')),
        judged=_judged(client, tool, args, directory, cwd),
        is_of_client=tool in _OF_THE_CLIENT[client],
    )


def _project(client: Client, call: Mapping[str, object], environment: Mapping[str, str]) -> str:
    """Return the directory in which the user started the client.

    Attack: the model chooses the directory of a command, and with it the settings, and what commands can read
    (`test_the_model_cannot_choose_the_project`).

    Raises:
        UsageError: The client does not say it.
    """
    found: object = None
    if client == 'claude':
        found = environment.get('CLAUDE_PROJECT_DIR')
    else:
        try:
            # Commands cannot write the transcript, which is outside of the project.
            with open(str(call.get('transcript_path')), 'rb') as file:
                begin = json.loads(file.readline(_MOST_BYTES))
            found = begin['payload']['cwd'] if begin['type'] == 'session_meta' else None
        except (OSError, ValueError, LookupError, TypeError):
            pass
    if not isinstance(found, str) or not os.path.isabs(found):
        raise UsageError('the client does not say in which directory it was started')
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _judged(client: Client, tool: str, given: Mapping[str, Any], directory: str, cwd: str) -> tuple[JudgedCall, ...]:
    if tool == 'Bash':
        return (JudgedCall(tool=COMMAND, args={'command': _line(_given(given, 'command', tool), directory, cwd)}),)
    if client == 'codex':
        return (
            _patched(_given(given, 'command', tool), directory, cwd) if tool == 'apply_patch' else _other(tool, given)
        )
    if tool in _READS:
        return (JudgedCall(tool='read_file', args={'path': _path(given, _READS[tool], tool, directory, cwd)}),)
    if tool in _LISTS:
        path = (
            _path(given, _LISTS[tool], tool, directory, cwd)
            if given.get('path') is not None
            else _shown(cwd, directory)
        )
        return (JudgedCall(tool='list_files', args={'path': path}, is_searched=tool == 'Grep'),)
    if tool in _WRITES:
        path = _path(given, _WRITES[tool], tool, directory, cwd)
        content = new_content(tool, given, os.path.join(directory, path))
        return (
            JudgedCall(tool='write_file', args={'path': path, **({} if content is None else {'content': content})}),
        )
    return _other(tool, given)


def _other(tool: str, given: Mapping[str, Any]) -> tuple[JudgedCall, ...]:
    return (JudgedCall(tool=tool, args=given),)


def _given(given: Mapping[str, Any], name: str, tool: str) -> str:
    value: object = given.get(name)
    if not isinstance(value, str):
        raise UsageError(f'the call of {tool!r} has no text `{name}`')
    return value


def _line(command: str, directory: str, cwd: str) -> str:
    """Return a command line that starts in the project's directory, and goes to where the client is."""
    return command if cwd == directory else f'cd {shlex.quote(_shown(cwd, directory))} && {command}'


def _path(given: Mapping[str, Any], name: str, tool: str, directory: str, cwd: str) -> str:
    path = _given(given, name, tool)
    # Attack: a client expands `~`, which the file rules take for the name of a file.
    if path.startswith('~'):
        raise UsageError(f'the path {path!r} begins with `~`; use an absolute path')
    return _shown(os.path.join(cwd, path), directory)


def _shown(path: str, directory: str) -> str:
    """Return an absolute path relative to the project, if it is there. The file rules resolve links and `..`."""
    if path == directory:
        return '.'
    return path.removeprefix(f'{directory.rstrip("/")}/')


def new_content(tool: str, given: Mapping[str, Any], path: str) -> str | None:
    """Return the content that a file would have after an edit; `None` if only the client knows it."""
    if tool == 'Write':
        content: object = given.get('content')
        return content if isinstance(content, str) else None
    if tool == 'NotebookEdit':
        return None
    try:
        with open(path, encoding='utf-8', newline='') as file:
            text = file.read(_MOST_BYTES)
    except (OSError, ValueError):
        return None
    edits: object = given.get('edits') if tool == 'MultiEdit' else [given]
    if not isinstance(edits, list):
        return None
    for edit in cast('list[object]', edits):
        if not isinstance(edit, dict):
            return None
        values = cast('dict[str, object]', edit)
        old, new, count = (
            values.get('old_string'),
            values.get('new_string'),
            -1 if values.get('replace_all') is True else 1,
        )
        if not isinstance(old, str) or not isinstance(new, str) or not old or (text.count(old) != 1 and count == 1):
            return None
        if old not in text:
            return None
        text = text.replace(old, new, count)
    return text


_PATCH: Final = {'*** Add File: ': 'write_file', '*** Update File: ': 'write_file', '*** Delete File: ': 'delete'}
_MOVED: Final = '*** Move to: '


def _patched(patch: str, directory: str, cwd: str) -> tuple[JudgedCall, ...]:
    """Return a call for each file that a patch of Codex names.

    Raises:
        UsageError: The patch names no file.
    """
    found: list[JudgedCall] = []
    for line in patch.splitlines():
        stripped = line.strip()
        for begin, tool in (*_PATCH.items(), (_MOVED, 'write_file')):
            if stripped.startswith(begin):
                path = _shown(os.path.join(cwd, stripped.removeprefix(begin).strip()), directory)
                found.append(JudgedCall(tool=tool, args={'path': path}))
    if not found:
        raise UsageError('the patch names no file')
    return tuple(found)
