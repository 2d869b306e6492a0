"""`tool-approval memory`: the approvals that hold always, in the user's state directory."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from .output import FAILED, Output, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tool_approval.core.protocols import RememberedApproval
    from tool_approval.storage import FileApprovalStore

EXAMPLES: Final = """\
examples:
  tool-approval memory list
  tool-approval memory forget 3f2a90c1
  tool-approval memory clear

Approvals of all projects are kept in one file, and listed together. Each holds in the project that it was given in; the
file does not name that.

exit status: 0 it is done, 2 it is not
"""
_SHORTEST_ID: Final = 8
"""Chosen: of 64 digits so many are shown, and needed to name one."""


def configure(parser: argparse.ArgumentParser) -> None:
    """See `CommandModule`."""
    actions = parser.add_subparsers(dest='action', metavar='ACTION', required=True, parser_class=type(parser))
    listing = actions.add_parser('list', help='what is remembered, oldest first')
    listing.add_argument('--json', action='store_true', help='answer in JSON, one line for each')
    forget = actions.add_parser('forget', help='forget one')
    forget.add_argument('id', metavar='ID', help=f'the first digits of its id, at least {_SHORTEST_ID}')
    clear = actions.add_parser('clear', help='forget all of them')
    clear.add_argument('--yes', action='store_true', help='do it without being asked')
    for each in (listing, forget, clear):
        each.add_argument('--store', metavar='FILE', help="the file; the one in the user's state directory if not")


def run(options: argparse.Namespace, output: Output) -> int:
    """See `CommandModule`."""
    store = _open(options.store)
    match options.action:
        case 'list':
            return _list(store, output, in_json=options.json)
        case 'forget':
            return _forget(store, options.id, output)
        case _:
            return _clear(store, output, is_sure=options.yes)


def _open(path: str | None) -> FileApprovalStore | None:
    """The store; `None` if there is none: looking does not make one."""
    import os
    from pathlib import Path

    from tool_approval.core.errors import StoreError
    from tool_approval.storage import FileApprovalStore, default_path

    try:
        place = Path(os.path.abspath(path)) if path is not None else default_path()
    except RuntimeError:
        raise StoreError('', 'there is no home folder; set HOME, or name the file with `--store`') from None
    if not os.path.lexists(place):
        return None
    # No project is asked for: what is listed and forgotten does not depend on one. It has to be elsewhere.
    return FileApprovalStore(place.parent / 'no-project', place)


def _all(store: FileApprovalStore | None) -> Sequence[RememberedApproval]:
    return () if store is None else store.list_all()


def _list(store: FileApprovalStore | None, output: Output, *, in_json: bool) -> int:
    found = _all(store)
    for each in found:
        if in_json:
            output.json(each.model_dump(mode='json'))
        else:
            by = '' if each.approved_by is None else f' by {each.approved_by}'
            when = f'{each.approved_at:%Y-%m-%d %H:%M}'
            output.line(f'{each.id[:_SHORTEST_ID]}  {when}{by}  {each.tool_name} ({each.kind}): {each.label}')
    if not found and not in_json:
        output.line('nothing is remembered')
    return 0


def _forget(store: FileApprovalStore | None, beginning: str, output: Output) -> int:
    if len(beginning) < _SHORTEST_ID:
        raise UsageError(f'write at least {_SHORTEST_ID} digits of the id; `tool-approval memory list` shows them')
    found = [each for each in _all(store) if each.id.startswith(beginning)]
    if store is None or len(found) != 1:
        raise UsageError(f'{len(found)} approvals have an id that begins with `{beginning}`; nothing was forgotten')
    store.remove(found[0].id)
    output.line(f'forgot {found[0].tool_name}: {found[0].label}')
    return 0


def _clear(store: FileApprovalStore | None, output: Output, *, is_sure: bool) -> int:
    from .trust import is_terminal

    found = _all(store)
    if store is None or not found:
        output.line('nothing is remembered')
        return 0
    if not is_sure:
        if not is_terminal():
            raise UsageError('nobody can be asked here, so nothing was forgotten; use a terminal, or `--yes`')
        if not output.confirm(f'Forget {len(found)} approvals, of all projects?'):
            output.note('nothing was forgotten')
            return FAILED
    for each in found:
        store.remove(each.id)
    output.line(f'forgot {len(found)} approvals')
    return 0
