"""Decide about a client's call with the rules, the log and the inbox of its directory."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tool_approval.core.arguments import read_arguments
from tool_approval.core.calls import Allowed, Call, Prepared, Refused
from tool_approval.core.errors import printable
from tool_approval.core.gate import Gate
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.presentation import EXTRA_ACCESS
from tool_approval.core.protocols import ApprovalUI, Presenter
from tool_approval.core.request import ApprovalContext, ApprovalRequest, CallFacts
from tool_approval.core.tool_checks import judging
from tool_approval.tools.file_sandbox import FileTools

from .guarded import Guarded, open_guarded
from .hook import ORDER, Decided
from .hook_calls import COMMAND, ClientCall, JudgedCall

_LONGEST: Final = 1000
"""Maximum number of characters of a reason."""
_SECRETS: Final = 'the folder has files that usually contain secrets, and a search reads them'
_DIFF_UNKNOWN: Final = 'The change cannot be shown, so the user was not asked. Read the file, and call again.'
_DENIED_BY_MODE: Final = 'Strict mode: calls that need approval are denied.'


async def decide(call: ClientCall, stack: ExitStack, *, has_inbox: bool) -> Decided:
    """Decide about a call.

    Args:
        call: The call.
        stack: Closes the log and the inbox afterwards.
        has_inbox: Whether to ask in the inbox, and wait for the answer. Otherwise, the client asks.

    Raises:
        Exception: The call cannot be judged, so it must not run.
    """

    def make_ui(memory: ApprovalMemory, presenters: Mapping[str, Presenter]) -> ApprovalUI | None:
        if not has_inbox:
            return None
        from tool_approval.inbox import Inbox, InboxUI
        from tool_approval.inbox.stores import SQLiteStore

        return InboxUI(stack.enter_context(Inbox(SQLiteStore())))

    guarded = stack.enter_context(open_guarded(Path(call.directory), make_ui=make_ui, caches=False))
    decided: list[Decided] = []
    with judging():
        for judged in call.judged:
            gate = Gate(guarded.controller, default='none' if call.is_of_client else 'required')
            found = await _of_one(call, judged, gate, guarded, has_inbox=has_inbox)
            decided.append(found)
    return max(decided, key=lambda each: ORDER.index(each.verdict))


async def _of_one(call: ClientCall, judged: JudgedCall, gate: Gate, guarded: Guarded, *, has_inbox: bool) -> Decided:
    checks = _checks(judged, guarded)
    prepared = await gate.prepare(_call(call, judged, checks))
    if prepared.verdict.is_blocked:
        return Decided(verdict='deny', reason=gate.block(prepared).reason)
    is_allowed = prepared.verdict.is_pre_approved
    if judged.tool == COMMAND and (is_allowed or has_inbox):
        # `exec` judges, asks and logs.
        return Decided(
            verdict='allow', command=_exec(call, judged, 'inbox' if has_inbox and not is_allowed else 'never-ask')
        )
    if is_allowed and call.is_of_client:
        return Decided(verdict='pass')
    if is_allowed:
        ran = gate.run_unasked(prepared)
        return Decided(verdict='allow') if isinstance(ran, Allowed) else Decided(verdict='deny', reason=ran.reason)
    if guarded.controller.mode == 'strict':
        gate.refuse(prepared, _DENIED_BY_MODE)
        return Decided(verdict='deny', reason=_DENIED_BY_MODE)
    if not has_inbox:
        return Decided(verdict='ask', reason=_why(prepared, judged))
    if judged.tool == 'write_file' and 'content' not in judged.args and call.client == 'claude':
        return Decided(verdict='deny', reason=_DIFF_UNKNOWN)
    return await _asked(call, judged, checks, gate, prepared)


def _why(prepared: Prepared, judged: JudgedCall) -> str:
    request = prepared.request
    reason = request.reason or f'{judged.tool} needs approval'
    if judged.tool != COMMAND:
        return printable(reason, _LONGEST)
    shown = request.presentation
    extra: list[str] = [] if shown is None else shown.metadata.get(EXTRA_ACCESS, [])
    needs = f': {"; ".join(extra)}' if extra else ''
    return printable(f'{reason}{needs}. If you allow it here, it runs outside of the sandbox.', _LONGEST)


def _checks(judged: JudgedCall, guarded: Guarded) -> list[object]:
    if judged.tool == COMMAND:
        return [guarded.workspace.shell]
    if judged.tool not in guarded.files.names:
        return []
    return [_Search(guarded.files) if judged.is_searched else _Judge(guarded.files)]


def _call(call: ClientCall, judged: JudgedCall, checks: list[object]) -> Call:
    arguments = read_arguments(judged.args)
    facts = CallFacts(caller=call.client, session_id=call.session_id)
    return Call(
        tool_name=judged.tool,
        arguments=arguments,
        values=dict(judged.args),
        facts=facts,
        tool_call_id=call.call_id,
        checks=checks,
        bound_to={'cwd': call.cwd, 'tool': call.tool},
    )


def _exec(call: ClientCall, judged: JudgedCall, how: str) -> str:
    """Return the command line that runs a command in the sandbox."""
    python = [sys.executable, '-I' if sys.flags.isolated else '-P', '-m', 'tool_approval.cli']
    return shlex.join([*python, 'exec', f'--{how}', '--cwd', call.directory, '--', judged.args['command']])


async def _asked(call: ClientCall, judged: JudgedCall, checks: list[object], gate: Gate, prepared: Prepared) -> Decided:
    """Ask, by the mode or in the inbox, and look again whether what was approved is still so."""
    [settled] = await gate.decide_all([prepared])
    if isinstance(settled, Allowed):
        settled = gate.confirm(await gate.prepare(_call(call, judged, checks)), settled.binding)
    if isinstance(settled, Allowed):
        return Decided(verdict='allow')
    return Decided(verdict='deny', reason=settled.told if isinstance(settled, Refused) else settled.text)


class _Judge:
    """Judges a file tool of a client by the rules of our own. The client cannot run with other arguments."""

    def __init__(self, tools: FileTools) -> None:
        self._tools = tools

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        request = self._tools.check_approval(ctx)
        return None if request is None else request.limited(('approve', 'deny'))


class _Search(_Judge):
    """Judges a tool that reads all files of a folder."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        request = super().check_approval(ctx)
        files, path = self._tools.sandbox, ctx.args['path']
        inner = files.roots_at(path)[1]
        if request is not None or not (
            files.holds_secrets(path) or any(each.config.read_approval is not False for each in inner)
        ):
            return request
        asked = ApprovalRequest(
            tool_name=ctx.tool_name,
            args=ctx.args,
            description=f'Search the files in {path}',
            payload=dict(ctx.args),
            reason=_SECRETS,
        )
        return asked.limited(('approve', 'deny'))
