"""Ask about a call that runs outside of the sandbox, and run it alone, if nothing has changed since the question."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from tool_approval.core.errors import ApprovalBlocked
from tool_approval.core.gate import CHANGED
from tool_approval.core.presentation import EXTRA_ACCESS, NEEDS_A_PERSON, ApprovalPresentation
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.storage.private_file import make_private_folder
from tool_approval.tools.shell.tool import OUTSIDE_REASON, described
from tool_approval.tools.turns import Turns

from .host import HostCall, for_git
from .profiles import HOST

_LOOK_AGAIN_S: Final = 0.02
"""Seconds to wait before it is tried again to be alone."""


def host_request(ctx: ApprovalContext, call: HostCall, *, cwd: str, mark: str) -> ApprovalRequest:
    """Return the question about a call. Only a person can approve it, unchanged and once.

    Args:
        ctx: The call as the model made it.
        call: The call as it would run.
        cwd: Working directory.
        mark: The mark of the conversation's turns.
    """
    bound_to = {'cwd': cwd, NEEDS_A_PERSON: True, EXTRA_ACCESS: {HOST: {**call.facts, 'since': mark}}}
    command: str = ctx.args['command']
    return ApprovalRequest(
        tool_name=ctx.tool_name,
        args=dict(ctx.args),
        description=described(command),
        payload={**{name: ctx.args[name] for name in ('command', 'access') if name in ctx.args}, **bound_to},
        presentation=ApprovalPresentation(
            type='command', content=command, language='bash', metadata={'cwd': cwd, EXTRA_ACCESS: list(call.lines)}
        ),
        reason=OUTSIDE_REASON,
        bound_to=bound_to,
        answers=('approve', 'deny'),
    )


@asynccontextmanager
async def alone(turns: Turns, *, timeout_s: float) -> AsyncGenerator[None]:
    """Open a context in which no other call of the conversation runs.

    Raises:
        ApprovalBlocked: Another call runs for longer than the timeout.
    """
    until = time.monotonic() + timeout_s
    while not turns.begin_alone():
        if time.monotonic() > until:
            raise ApprovalBlocked('shell', 'Another command still runs, so the call was not run.')
        await asyncio.sleep(_LOOK_AGAIN_S)
    try:
        yield
    finally:
        turns.end_alone()


def confirmed(
    find: Callable[[], HostCall | None], approved: Mapping[str, Any], *, mark: str, state: str | None
) -> tuple[list[str], dict[str, str]]:
    """Look again what would run, and return the command line and the environment of an approved call.

    Args:
        find: Function that returns the call as it would run now.
        approved: The values to which the approval is bound.
        mark: The mark of the conversation's turns.
        state: The user's state folder.

    Raises:
        ApprovalBlocked: Something has changed since the question, or the call cannot be made.
    """
    try:
        # Attack: a link, the configuration, or what is pushed is changed while the user reads the question
        # (`test_host.py`).
        call = find()
        if call is None or {**call.facts, 'since': mark} != approved:
            raise ApprovalBlocked('shell', CHANGED)
        return _started(call, str(state))
    except OSError as error:
        raise ApprovalBlocked('shell', f'The call was not run: {error}') from error


def _started(call: HostCall, state: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of an approved call.

    The hook is run from a copy in the user's state folder, so that exactly the content runs that was shown.

    Raises:
        OSError: The copy cannot be written.
    """
    folder = '/dev/null'
    if call.hook is not None:
        place = Path(state, 'hooks', hashlib.sha256(call.hook).hexdigest())
        make_private_folder(place.parent)
        make_private_folder(place)
        new = place / f'pre-push.{os.getpid()}'
        new.unlink(missing_ok=True)
        with open(new, 'xb', opener=partial(os.open, mode=0o700)) as file:
            file.write(call.hook)
        os.replace(new, place / 'pre-push')
        folder = str(place)
    return list(call.argv), {**call.environment, **for_git(folder)}
