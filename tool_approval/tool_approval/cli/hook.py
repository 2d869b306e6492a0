"""Implement `tool-approval hook`: judge the calls of Claude Code and Codex before they run."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Literal

from .hook_calls import CANARY, Client, ClientCall, read_call
from .output import FAILED, Output

Verdict = Literal['pass', 'allow', 'ask', 'deny']
"""Decisions about a call, ordered by strictness. `pass` leaves it to the client."""
ORDER: Final[Sequence[Verdict]] = ('pass', 'allow', 'ask', 'deny')
CANARY_DENIED: Final = 'The canary is denied, as it has to be.'
_NEEDS_APPROVAL: Final = 'This call needs approval, and this client has no way to ask for it here. Ask the user.'


@dataclass(frozen=True, kw_only=True)
class Decided:
    """Decision about a call."""

    verdict: Verdict
    reason: str = ''
    """Why, for the user or the model."""
    command: str | None = None
    """Command that has to run in place of the given one."""


def run(options: argparse.Namespace, output: Output) -> int:
    """Judge the call on standard input, or change the settings of a client.

    Returns: 0 if the call may run or is left to the client; 2 if it is denied, or if anything goes wrong. Clients run a
        call if its hook ends with any other status.
    """
    if options.action in ('install', 'uninstall'):
        from . import hook_install

        change = hook_install.install if options.action == 'install' else hook_install.uninstall
        return change(options, output)
    client: Client = options.action
    try:
        call = read_call(client, sys.stdin.buffer, os.environ)
        decided = (
            Decided(verdict='deny', reason=CANARY_DENIED) if call.tool == CANARY else _decided(call, options.inbox)
        )
    except BaseException as error:  # noqa: BLE001 - whatever happens, the call must not run
        output.note(f'the call was denied, because it could not be judged: {type(error).__name__}: {error}')
        return FAILED
    return _answer(call, decided, output)


def _answer(call: ClientCall, decided: Decided, output: Output) -> int:
    if decided.verdict == 'deny' or (decided.verdict == 'ask' and call.client == 'codex'):
        output.note(decided.reason or _NEEDS_APPROVAL)
        return FAILED
    found: dict[str, Any] = {'hookEventName': 'PreToolUse', 'permissionDecision': decided.verdict}
    if decided.reason:
        found['permissionDecisionReason'] = decided.reason
    if decided.command is not None:
        found['updatedInput'] = {**call.given, 'command': decided.command}
    elif decided.verdict == 'pass' or call.client == 'codex':
        return 0
    output.json({'hookSpecificOutput': found})
    return 0


def _decided(call: ClientCall, has_inbox: bool) -> Decided:
    # Imported here, because these imports take most of the time. They make no garbage to search for.
    gc.disable()
    from .hook_judge import decide

    gc.enable()
    with ExitStack() as stack:
        judging = decide(call, stack, has_inbox=has_inbox)
        if has_inbox:
            import asyncio

            return asyncio.run(judging)
        # Only an answer from the inbox is waited for, and asyncio is slow to import.
        try:
            judging.send(None)
        except StopIteration as done:
            return done.value
        judging.close()
        raise RuntimeError('a check waits for an event loop, and the hook has none')
