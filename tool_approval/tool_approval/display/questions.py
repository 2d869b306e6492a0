"""Which keys answer a request, and what a remembered approval of it covers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tool_approval.canonical import EXACT
from tool_approval.request import ApprovalRequest

from .escape import escape_line
from .facts import name_of
from .show import is_shown_whole

KEYS: Final[Mapping[str, str]] = {
    'y': 'approve',
    'n': 'deny',
    'd': 'deny with a note',
    's': 'approve for this session',
    'a': 'always',
    'e': 'edit arguments',
    'v': 'view full (pager)',
    'l': 'list remembered approvals',
    'q': 'stop the run',
    '?': 'help',
}
"""All keys, in the order in which they are shown, and what they do."""

LONGEST_LABEL: Final = 300
"""Chosen, in characters: what is longer cannot be shown whole beside the keys."""

MOST_CHOICES: Final = 9
"""Chosen: each is chosen by one digit."""


def remember_choices(request: ApprovalRequest, *, ascii_only: bool = False) -> list[tuple[str, str]]:
    """Kinds that a remembered approval may be of, and what each covers, escaped, in the order of their digits from 1.

    The first is `exact`.
    """
    exact = _exact(request, ascii_only=ascii_only)
    options = [(each.kind, escape_line(each.label, ascii_only=ascii_only)) for each in request.remember_options]
    return [(EXACT, exact), *options]


def offered_keys(request: ApprovalRequest, *, is_whole: bool | None = None) -> tuple[str, ...]:
    """The keys that answer a request.

    `s` and `a` are not among them where something is not shown whole, and `a` only where there is a store; `v` is where
    something is left to view.

    Args:
        request: What is asked about.
        is_whole: Whether nothing is cut, where that is already known.
    """
    if is_whole is None:
        is_whole = is_shown_whole(request)
    left_out = set('v' if is_whole else 'sa')
    if not _can_be_told(request):
        left_out |= set('sa')
    if request.metadata.get('can_remember_always') is not True:
        left_out.add('a')
    return tuple(key for key in KEYS if key not in left_out)


def _can_be_told(request: ApprovalRequest) -> bool:
    """Whether everything that a remembered approval covers can stand beside the keys."""
    labels = [option.label for option in request.remember_options]
    if len(labels) >= MOST_CHOICES or any(len(label) > LONGEST_LABEL or not label.strip() for label in labels):
        return False
    return len(_what_counts(request)) <= LONGEST_LABEL


def _exact(request: ApprovalRequest, *, ascii_only: bool) -> str:
    counts = _what_counts(request)
    if not counts:
        return 'exactly this call'
    return (
        f'every {name_of(request.tool_name, ascii_only=ascii_only)} with {escape_line(counts, ascii_only=ascii_only)}'
    )


def _what_counts(request: ApprovalRequest) -> str:
    """Of a payload that leaves arguments out: what is the same in all calls that it covers."""
    payload = request.payload
    if all(key in payload and payload[key] == value for key, value in request.args.items()):
        return ''
    try:
        return ', '.join(f'{key}: {value!r}' for key, value in payload.items()) or 'any arguments'
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and its `repr` may do anything
        return ' ' * (LONGEST_LABEL + 1)
