"""Determine the keys that answer a request, and the scopes for which an approval can be remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, Literal

from tool_approval.core.canonical import EXACT
from tool_approval.core.decision import AllowedAnswer
from tool_approval.core.request import ApprovalRequest

from .digest import is_same
from .escape import escape_line
from .fact_texts import name_of
from .show import is_shown_whole

KEYS: Final[Mapping[str, str]] = {
    'y': 'approve',
    'n': 'deny',
    's': 'approve for this session',
    'v': 'view everything, page by page',
    'd': 'deny with a note',
    'x': 'deny for this session',
    'e': 'edit arguments',
    'w': 'write the result, in place of the tool',
    'r': 'approve, and choose what to remember for this session',
    'a': 'approve, and choose what to always remember',
    'l': 'list remembered approvals, and revoke them',
    'q': 'deny, and stop the run',
    '?': 'more',
}
"""All keys that an approver can press, and the action of each key."""

EXACTLY: Final = 'exactly this call'
"""Description of `exact` if the payload omits no arguments."""

THE_SAME: Final = 'the same call'
"""Short form of `EXACTLY`, to show next to a key."""

LONGEST_BRIEF: Final = 60
"""Maximum number of characters in a text that is shown next to a key."""

LONGEST_LABEL: Final = 300
"""Maximum number of characters in a label that is shown in full below the keys."""

MOST_CHOICES: Final = 9
"""Maximum number of choices. Each choice needs a digit key of its own."""


_UNTELLABLE: Final = ' ' * (LONGEST_LABEL + 1)
"""Text for a scope that cannot be described. The text is too long for a label, so the scope is not offered."""


def remember_choices(request: ApprovalRequest, *, ascii_only: bool = False) -> list[tuple[str, str]]:
    """Return the kinds and escaped descriptions of the scopes that an approval can be remembered for, in display order.

    The digit 1 chooses the first scope (`exact`), 2 the second, and so on. If an option has the same payload as the
    request, its label is the description of `exact`. Options with the same label are shown with their payloads.
    """
    choices = [(EXACT, _exact(request, ascii_only=ascii_only))]
    for option in request.remember_options:
        label = escape_line(option.label, ascii_only=ascii_only, mark_end=True)
        if option.bounds is None and is_same(option.payload, request.payload):
            choices[0] = (EXACT, label)
        else:
            choices.append((option.kind, label))
    # Attack: a wide option with the label of a narrow one (test_questions.py).
    count = Counter(_folded(text) for _, text in choices)
    payloads: dict[str, Mapping[str, Any]] = {option.kind: option.payload for option in request.remember_options}

    def set_apart(kind: str, text: str) -> str:
        payload = _listed(payloads[kind]) if kind in payloads and count[_folded(text)] > 1 else ''
        if not payload or len(payload) > LONGEST_LABEL:
            return text
        return f'{text} ({escape_line(f"{kind}: {payload}", ascii_only=ascii_only)})'

    return [(kind, set_apart(kind, text)) for kind, text in choices]


def session_choice(request: ApprovalRequest) -> tuple[str, str]:
    """Return the kind and a short description of the scope that the key `s` approves for the session.

    The scope is the last option that has a `brief`, or `exact` if no option has a `brief`. The description is empty if
    it would have to quote values of the call. A `brief` is ignored if it would have to be escaped, or if another option
    has the same text.
    """
    choices = dict(remember_choices(request))
    briefs = Counter(
        _folded(text) for text in (THE_SAME, *choices.values(), *(each.brief for each in request.remember_options))
    )
    for option in reversed(request.remember_options):
        brief = option.brief
        # Attack: a path in a brief that continues like the keys next to it (test_questions.py).
        is_plain = brief == escape_line(brief, ascii_only=True) and brief == ' '.join(brief.split())
        if is_plain and 0 < len(brief) <= LONGEST_BRIEF and briefs[_folded(brief)] == 1:
            return option.kind if option.kind in choices else EXACT, brief
    return EXACT, THE_SAME if choices[EXACT] == EXACTLY else ''


def _folded(text: str) -> str:
    return ' '.join(text.split()).casefold()


def offered_keys(request: ApprovalRequest, *, is_whole: bool | None = None) -> tuple[str, ...]:
    """Return the keyboard keys with which an approver can answer a request.

    The keys `s`, `r`, `a` and `x` are missing if the request is not shown in full. The key `r` requires several scopes,
    and `a` requires a store. Keys for answers that the tool does not allow are missing.

    Args:
        request: Request to answer.
        is_whole: Whether the request is shown in full, if already known.
    """
    if is_whole is None:
        is_whole = is_shown_whole(request)
    spans = remember_spans(request, is_whole=is_whole)
    left_out = {key for key, span in (('s', 'session'), ('r', 'session'), ('a', 'always')) if span not in spans}
    if 'r' not in left_out and len(remember_choices(request)) == 1:
        left_out.add('r')
    if not may_deny_for_session(request, is_whole=is_whole):
        left_out.add('x')
    left_out |= {key for key, answer in _ANSWERED_BY.items() if not request.allows(answer)}
    return tuple(key for key in KEYS if key not in left_out)


_ANSWERED_BY: Final[Mapping[str, AllowedAnswer]] = {'y': 'approve', 'e': 'edit', 'w': 'respond'}


def remember_spans(
    request: ApprovalRequest, *, is_whole: bool | None = None
) -> tuple[Literal['session', 'always'], ...]:
    """Return the possible values of `remember`.

    There are none if the request or a scope is not shown in full, or if the tool does not allow to remember approvals.

    Args:
        request: Request to answer.
        is_whole: Whether the request is shown in full, if already known.
    """
    if not (request.allows('approve') and _may_remember(request, is_whole=is_whole)):
        return ()
    is_offered = {'session': request.facts.can_remember_session, 'always': request.facts.can_remember_always}
    return tuple(span for span in ('session', 'always') if is_offered[span])


def may_deny_for_session(request: ApprovalRequest, *, is_whole: bool | None = None) -> bool:
    """Return whether a denial can be remembered for the session. It covers the scope `exact` of `remember_choices`.

    The limits are those of `remember_spans`, but the tool need not allow to approve the call.

    Args:
        request: Request to answer.
        is_whole: Whether the request is shown in full, if already known.
    """
    return request.facts.can_remember_session and _may_remember(request, is_whole=is_whole)


def _may_remember(request: ApprovalRequest, *, is_whole: bool | None) -> bool:
    if not request.allows('remember') or request.hides_arguments:
        return False
    return (is_shown_whole(request) if is_whole is None else is_whole) and _is_distinct(request)


def _is_distinct(request: ApprovalRequest) -> bool:
    """Return whether all descriptions from `remember_choices` can be shown in full and differ from each other."""
    labels = [option.label for option in request.remember_options]
    if len(labels) >= MOST_CHOICES or any(len(label) > LONGEST_LABEL or not label.strip() for label in labels):
        return False
    if len(_what_counts(request)) > LONGEST_LABEL:
        return False
    texts = [_folded(text) for _, text in remember_choices(request)]
    return len(set(texts)) == len(texts)


def _exact(request: ApprovalRequest, *, ascii_only: bool) -> str:
    counts = _what_counts(request)
    if not counts:
        return EXACTLY
    return (
        f'every {name_of(request.tool_name, ascii_only=ascii_only)} with {escape_line(counts, ascii_only=ascii_only)}'
    )


def _what_counts(request: ApprovalRequest) -> str:
    """Describe which arguments the payload contains, or return an empty string if the payload contains all of them."""
    args, payload = request.args, request.payload
    try:
        if payload == args or all(key in payload and payload[key] == value for key, value in args.items()):
            return ''
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and comparing it may do anything
        return _UNTELLABLE
    return _listed(payload) or 'any arguments'


def _listed(payload: Mapping[str, Any]) -> str:
    try:
        # A payload with this many items is too long to be offered, so the rest need not be read.
        first = islice(payload.items(), LONGEST_LABEL)
        return ', '.join(f'{key if key.isidentifier() else repr(key)}: {value!r}' for key, value in first)
    except Exception:  # noqa: BLE001 - as above
        return _UNTELLABLE
