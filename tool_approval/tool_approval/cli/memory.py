"""Implement `tool-approval memory`: manage the permanent approvals in the user's state directory."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path

from tool_approval import storage
from tool_approval.core.errors import StoreError
from tool_approval.storage import FileApprovalStore

from .commands import SHORTEST_ID
from .output import FAILED, Output, UsageError


def run(options: argparse.Namespace, output: Output) -> int:
    """List the remembered approvals, or forget one or all of them."""
    if options.action == 'forget' and len(options.id) < SHORTEST_ID:
        raise UsageError(f'give at least {SHORTEST_ID} digits of the id; `tool-approval memory list` shows them')
    store = _open(options.store)
    found = () if store is None else store.list_all()
    if options.action == 'list' and options.json:
        for each in found:
            output.json(each.model_dump(mode='json'))
    elif options.action == 'forget':
        matching = [each for each in found if each.id.startswith(options.id)]
        if store is None or len(matching) != 1:
            problem = f'{len(matching)} approvals have an id that begins with `{options.id}`, so nothing was forgotten'
            raise UsageError(problem)
        store.remove(matching[0].id)
        output.line(f'forgot {matching[0].tool_name}: {matching[0].label}')
    elif store is None or not found:
        output.line('nothing is remembered')
    elif options.action == 'list':
        for each in found:
            by = f' by {" and ".join(each.approved_by)}' if each.approved_by else ''
            when = f'{each.approved_at:%Y-%m-%d %H:%M}'
            where = '' if each.project is None else f'  in {each.project}'
            left = '' if each.left is None else f'  ({each.left.text(datetime.now(UTC))})'
            what = f'{each.tool_name} ({each.kind}): {each.label}{left}{where}'
            output.line(f'{each.id[:SHORTEST_ID]}  {when}{by}  {what}')
    else:
        question = f'Forget {len(found)} approvals in all projects?'
        if not (options.yes or output.agrees(question, 'nothing was forgotten')):
            return FAILED
        for each in found:
            store.remove(each.id)
        output.line(f'forgot {len(found)} approvals')
    return 0


def _open(path: str | None) -> FileApprovalStore | None:
    """Return the existing store of approvals, or `None` if no store exists."""
    try:
        place = Path(os.path.abspath(path)) if path is not None else storage.default_path()
    except RuntimeError:
        raise StoreError('', 'there is no home folder; set HOME, or give the path of the file with `--store`') from None
    if not os.path.lexists(place):
        return None
    # Listing and forgetting do not depend on the project, which must not contain the store.
    return FileApprovalStore(place.parent / 'no-project', place)
