"""Edit arguments as text in the user's editor, and parse the result."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tool_approval.answering import UnreadableArguments, parse_arguments
from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.display import escape_line

from .tty import Terminal, stops

LONGEST_TEXT = 1_000_000
"""Maximum number of characters in an edited text, because parsing longer YAML takes seconds."""

FENCE = 5
"""Number of comments or blank lines above and below the edited text. Vim searches this many lines at both ends of a
file for modelines (`vim: set ...`). Without the extra lines, Vim would execute a modeline in an argument."""


def is_yaml(args: Mapping[str, Any]) -> bool:
    """Return whether `args` can be edited as YAML. Their YAML text must parse back to the same values."""
    try:
        from .yaml_text import NotYaml, dump, load
    except ImportError:  # the extra `yaml` is not installed
        return False
    try:
        return canonical_json(load(dump(args))) == canonical_json(args)
    except (NotYaml, NotCanonicalError):
        return False


def as_text(tool_name: str, args: Mapping[str, Any]) -> str:
    """Return the text to edit: YAML between comments if `is_yaml(args)`, and JSON otherwise."""
    if not is_yaml(args):
        fence = '\n' * FENCE
        return f'{fence}{json.dumps(args, indent=2, ensure_ascii=True)}\n{fence}'
    from .yaml_text import dump

    heading = [
        f'# The arguments of {escape_line(tool_name).replace(":", "<U+003A>")}.',
        '#',
        '# Change the arguments, save and quit: you are asked about the changed call before it runs.',
        '# Leave everything as it is, or empty the file, to go back to the question.',
        '#',
    ]
    fence = ['#'] * (FENCE - 1) + ['# The end.']
    return '\n'.join([*heading, dump(args).rstrip('\n'), *fence, ''])


def read_text(text: str, *, as_yaml: bool) -> dict[str, Any] | None:
    """Parse an edited text into arguments, or return `None` if the text is empty.

    Raises:
        UnreadableArguments: The text is invalid, or has values that arguments cannot have.
    """
    if len(text) > LONGEST_TEXT:
        raise UnreadableArguments(f'the text is longer than {LONGEST_TEXT} characters')
    if not any(line.strip() and not line.startswith('#') for line in text.splitlines()):
        return None
    if not as_yaml:
        return parse_arguments(text)
    from .yaml_text import load

    value = load(text)
    try:
        canonical_json(value)
    except NotCanonicalError as error:
        raise UnreadableArguments(error.problem) from None
    return value


def read_value(text: str) -> Any:
    """Parse a single JSON value.

    Raises:
        UnreadableArguments: The text is not a JSON value.
    """
    with contextlib.suppress(UnreadableArguments):
        values = parse_arguments(f'{{"value": {text}}}')
        if list(values) == ['value']:
            return values['value']
    raise UnreadableArguments('that is not a JSON value; put text in double quotes')


POLL_S = 0.05
"""Seconds between checks of whether the editor has ended."""

PATIENCE_S = 2.0
"""Seconds to wait for the editor to end after SIGTERM."""


class EditorFailed(Exception):
    """The editor could not be started, or failed. The message gives the reason."""


def editor_of(environment: Mapping[str, str]) -> list[str] | None:
    """Return the editor command from `$VISUAL` or `$EDITOR`; `None` if both are missing or invalid."""
    for name in ('VISUAL', 'EDITOR'):
        try:
            words = shlex.split(environment.get(name, ''))
        except ValueError:  # an unclosed quote
            continue
        if words:
            return words
    return None


def edit(terminal: Terminal, editor: list[str], text: str, *, suffix: str) -> str:
    """Open `text` in the editor, and return the saved text.

    The text is in a private temporary file. The file's name ends with `suffix`, so that the editor can highlight the
    text. The editor uses the terminal, and is ended if the question is withdrawn.

    Raises:
        EditorFailed: The editor failed, or the saved file cannot be read.
    """
    folder = tempfile.mkdtemp(prefix='tool-approval-')  # with mode 0700
    try:
        file = Path(folder, f'arguments{suffix}')
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w', encoding='utf-8') as stream:
            stream.write(text)
        _run(terminal, [*editor, str(file)])
        return file.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise EditorFailed(f'the edited file cannot be read ({type(error).__name__})') from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(terminal: Terminal, command: list[str]) -> None:
    with terminal.lent() as fd:
        try:
            with stops(signal.SIG_UNBLOCK):
                # In a new process group, so that Ctrl-C in the editor does not reach the run.
                editor = subprocess.Popen(command, stdin=fd, stdout=fd, stderr=fd, process_group=0)
        except (OSError, ValueError) as error:
            raise EditorFailed(f'the editor cannot be started ({type(error).__name__})') from None
        try:
            _give(fd, editor.pid)
            status = _wait(terminal, editor)
        finally:
            if editor.returncode is None:
                _end(editor)
            _give(fd, os.getpgrp())
    if status != 0:
        raise EditorFailed(f'the editor ended with status {status}')


def _give(fd: int, group: int) -> None:
    # Only the controlling terminal has a foreground process group.
    with contextlib.suppress(OSError):
        os.tcsetpgrp(fd, group)


def _wait(terminal: Terminal, editor: subprocess.Popen[bytes]) -> int:
    while True:
        found, status = os.waitpid(editor.pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            # Stopped by Ctrl-Z, or by reading before it had the terminal. No shell would continue it.
            os.killpg(editor.pid, signal.SIGCONT)
        elif found:
            editor.returncode = os.waitstatus_to_exitcode(status)
            return editor.returncode
        terminal.pause(POLL_S)


def _end(editor: subprocess.Popen[bytes]) -> None:
    os.killpg(editor.pid, signal.SIGTERM)
    try:
        editor.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(editor.pid, signal.SIGKILL)
        editor.wait()
