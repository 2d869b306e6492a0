"""Implement `tool-approval init`: ask three questions, then write an approvals.yaml for the directory and trust it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tool_approval.settings.files import NAMES, find_settings, load_settings, trust_settings
from tool_approval.settings.model import PresetName, Settings, parse_settings
from tool_approval.settings.trust import TrustStore

from .judging import CallJudge, existing_directory
from .output import FAILED, Output, UsageError
from .trust import allowances

_PURPOSES: Final[dict[PresetName, str]] = {
    'default': 'commands in the OS sandbox run without approval',
    'read-only': 'nothing in the directory can be changed',
}
_NOT_WRITTEN: Final = 'nothing was written'
_TEXT: Final = """\
# Rules for agents in this directory.
# `{start} --model NAME` starts an agent with these rules.
# `tool-approval check` finds mistakes.
# `tool-approval explain shell 'git status'` shows the decision, and why.

# By `default`, a command runs in the OS sandbox without approval: it can
# read this directory, but cannot write to it, and has no network. If it
# needs more, or no OS sandbox works, it requires approval.
extends:
{extends}
# `interactive` asks you; `strict` denies calls that require approval.
mode: {mode}

shell:
  # Whether every command may use the network, even without approval.
  # If false, a command that needs the network requires approval.
  network: {network}
  # Commands that may run outside of the sandbox, if you approve each time:
  # host: [git push, git fetch]
  # Your rules come before those of the presets; the first match decides:
  #   - {{pattern: make deploy, approval: true}}  # always asks
  #   - {{pattern: git push, allowed: false}}    # never runs
  rules: []

{sandbox}"""
_EACH_CHANGE: Final = """\
# Directories with their own rules. In `drafts`, writing needs no approval:
# sandbox:
#   paths:
#     drafts: {root: drafts, mode: rw, write_approval: false}
"""
_ONLY_TO_LEAVE: Final = """\
# Files here change without approval, but not `.git`, this file, and secrets.
# Leaving the sandbox requires approval.
sandbox:
  paths:
    project: {root: ., mode: rw, write_approval: false}
"""


def run(options: argparse.Namespace, output: Output) -> int:
    """Ask the questions, show the new file, then write the file and trust it.

    Raises:
        UsageError: The settings file already exists, there is no terminal, or an answer is invalid.
        ApprovalError: A preset is unknown, or the new file cannot be recorded as trusted.
        OSError: The settings file cannot be written.
    """
    directory = existing_directory(options.cwd)
    there = find_settings(directory)
    if there is not None:
        raise UsageError(f'{there} already exists and was not changed; to check it, run `tool-approval check`')
    if not options.yes:
        output.check_terminal(_NOT_WRITTEN)
    presets = options.preset or ['default']
    network = options.network or (not options.yes and _answer(_NETWORK, 'ny', output) == 'y')
    changes = 'c' if options.yes else _answer(_CHANGES, 'cs', output, _CHANGES_EXPLAINED)
    who = 'n' if options.strict else 'i' if options.yes else _answer(_WHO, 'ipn', output)
    text = _text(presets, network=network, changes=changes, who=who)
    settings = parse_settings(text, source=NAMES[0])
    CallJudge(settings, directory)  # as `check` does
    for line in text.splitlines():
        output.line(f'| {line}'.rstrip())
    output.line('The file would allow:')
    for line in allowances(settings, directory):
        output.line(f'  - {line}')
    question = f'Write {directory / NAMES[0]}, and trust the file?'
    if not (options.yes or output.confirm(question, _NOT_WRITTEN, enter=True)):
        return FAILED
    return _write(directory, text, settings, output)


_NETWORK: Final = 'May every command use the network? y = yes, n = only with approval [n]'
_CHANGES: Final = 'Ask: c = before each change, s = only to leave the sandbox, ? = explain [c]'
_CHANGES_EXPLAINED: Final = (
    'c: reading asks nothing; each edit of a file and each writing command asks.',
    's: edits and commands change files here without asking. You are asked before',
    '   a command writes to .git, uses the network or runs outside of the sandbox.',
    '   Changes that are not committed cannot be undone.',
)
_WHO: Final = 'Who approves calls? i = you, p = you and others (web page), n = no approver [i]'


def _answer(question: str, letters: str, output: Output, explained: Sequence[str] = ()) -> str:
    """Ask for one of several letters. An empty answer chooses the first letter, and `?` explains."""
    typed = _line(question, output).lower() or letters[0]
    while typed == '?' and explained:
        for line in explained:
            output.line(line)
        typed = _line(question, output).lower() or letters[0]
    if typed not in tuple(letters):
        raise UsageError(f'{typed!r} is not an answer; type {" or ".join(letters)}; {_NOT_WRITTEN}')
    return typed


def _line(question: str, output: Output) -> str:
    output.line(question)
    output.flush()
    line = sys.stdin.readline()
    if not line:
        raise UsageError(f'the input ended, so {_NOT_WRITTEN}')
    return line.strip()


def _text(presets: Sequence[str], *, network: bool, changes: str, who: str) -> str:
    # An unknown name is quoted, so that the error message about it is the same as for any file.
    lines = [f'  - {name}  # {_PURPOSES[name]}\n' if name in _PURPOSES else f'  - {name!r}\n' for name in presets]
    return _TEXT.format(
        extends=''.join(lines),
        start='tool-approval run --inbox' if who == 'p' else 'tool-approval run',
        mode='strict' if who == 'n' else 'interactive',
        network='true' if network else 'false',
        sandbox=_ONLY_TO_LEAVE if changes == 's' else _EACH_CHANGE,
    )


def _write(directory: Path, text: str, settings: Settings, output: Output) -> int:
    path = directory / NAMES[0]
    # Attack: a symbolic link with this name, created meanwhile, redirects the text (test_init.py).
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
        file.write(text)
    loaded = load_settings(directory=directory)
    if loaded.settings != settings:
        output.note(f'{path} was written, but has changed since then; it is not trusted')
        return FAILED
    trust_settings(loaded, TrustStore())
    output.line(f'{path} is written. The file is trusted until the file or one of its presets changes.')
    return 0
