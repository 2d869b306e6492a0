"""What a person has changed in the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import chain

from tool_approval.core.request import ApprovalRequest

from .digest import left_out_keys
from .lines import DisplayLine
from .show import display

MOST_LINES = 500
"""Chosen, of each of both: more take longer to be compared than anybody waits."""

MOST_SHOWN = 40
"""Chosen: about two screens."""


def changes(before: ApprovalRequest, after: ApprovalRequest, *, ascii_only: bool = False) -> Sequence[DisplayLine]:
    """Lines that differ in the arguments of both, old ones `removed` and new ones `added`, below a line that says so."""
    old, new = (_lines(request, ascii_only=ascii_only) for request in (before, after))
    if max(len(old), len(new)) > MOST_LINES:
        return [DisplayLine(kind='meta', text='you have changed arguments that are too long to be compared')]
    steps = SequenceMatcher(None, [line.text for line in old], [line.text for line in new]).get_opcodes()
    changed = [(old[i:j], new[k:n]) for kind, i, j, k, n in steps if kind != 'equal']
    shown = list(
        chain.from_iterable(
            [
                *(DisplayLine(kind='removed', text=line.text) for line in gone),
                *(DisplayLine(kind='added', text=line.text) for line in come),
            ]
            for gone, come in changed
        )
    )
    cut = [DisplayLine(kind='cut', text=f'[{len(shown) - MOST_SHOWN:,} more lines]')] if shown[MOST_SHOWN:] else []
    return [DisplayLine(kind='meta', text='you have changed:'), *shown[:MOST_SHOWN], *cut]


def _lines(request: ApprovalRequest, *, ascii_only: bool) -> Sequence[DisplayLine]:
    """The arguments that are shown, and nothing else of a request."""
    hidden = left_out_keys(request)
    args = {key: value for key, value in request.args.items() if key not in hidden}
    return display(ApprovalRequest(tool_name='', args=args), whole=True, ascii_only=ascii_only).lines
