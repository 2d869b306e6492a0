"""Which keys answer a request, and what a remembered approval of it covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, Literal

from tool_approval.core.canonical import EXACT
from tool_approval.core.request import ApprovalRequest

from .digest import is_same
from .escape import escape_line
from .fact_texts import name_of
from .show import is_shown_whole

KEYS: Final[Mapping[str, str]] = {
    'y': 'approve',
    'n': 'deny',
    's': 'approve for this session',
    'v': 'view all of it, page by page',
    'd': 'deny with a note',
    'e': 'edit arguments',
    'r': 'approve, and choose what else for this session',
    'a': 'approve, and choose what to remember always',
    'l': 'list what is remembered, and revoke it',
    'q': 'deny, and stop the run',
    '?': 'more',
}
"""All keys, and what they do."""

EXACTLY: Final = 'exactly this call'
"""What `exact` covers where the payload leaves nothing out."""

THE_SAME: Final = 'the same call'
"""The same, beside a key."""

LONGEST_BRIEF: Final = 60
"""Chosen, in characters: what is longer does not fit beside a key."""

LONGEST_LABEL: Final = 300
"""Chosen, in characters: what is longer cannot be shown whole beside the keys."""

MOST_CHOICES: Final = 9
"""Chosen: each is chosen by one digit."""


_UNTELLABLE: Final = ' ' * (LONGEST_LABEL + 1)
"""What is too long to be told."""


def remember_choices(request: ApprovalRequest, *, ascii_only: bool = False) -> list[tuple[str, str]]:
    """Kinds that a remembered approval may be of, and what each covers, escaped, in the order of their digits from 1.

    The first is `exact`. An option with the payload of the request itself only names what that covers. Of options with
    one label, each is told with its payload.
    """
    choices = [(EXACT, _exact(request, ascii_only=ascii_only))]
    for option in request.remember_options:
        label = escape_line(option.label, ascii_only=ascii_only, mark_end=True)
        if is_same(option.payload, request.payload):
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
    """The kind that one key remembers for a session, and what it covers in words that may stand beside the key.

    It is the widest of `remember_choices` that its tool declares as expected, by a `RememberOption.brief`; else
    `exact`, without words where what it covers is told by values of the call. A brief that has to be escaped, or that
    another option is told by too, counts as none.
    """
    choices = dict(remember_choices(request))
    briefs = Counter(
        _folded(text) for text in (THE_SAME, *choices.values(), *(each.brief for each in request.remember_options))
    )
    for option in reversed(request.remember_options):
        brief = option.brief
        # Attack: a path in a brief that goes on like the keys beside it (test_questions.py).
        is_plain = brief == escape_line(brief, ascii_only=True) and brief == ' '.join(brief.split())
        if is_plain and 0 < len(brief) <= LONGEST_BRIEF and briefs[_folded(brief)] == 1:
            return option.kind if option.kind in choices else EXACT, brief
    return EXACT, THE_SAME if choices[EXACT] == EXACTLY else ''


def _folded(text: str) -> str:
    return ' '.join(text.split()).casefold()


def offered_keys(request: ApprovalRequest, *, is_whole: bool | None = None) -> tuple[str, ...]:
    """The keys that answer a request.

    `s`, `r` and `a` are not among them where something is not shown whole; `r` only where there is a choice, and `a`
    only where there is a store.

    Args:
        request: What is asked about.
        is_whole: Whether nothing is cut, where that is already known.
    """
    if is_whole is None:
        is_whole = is_shown_whole(request)
    spans = remember_spans(request, is_whole=is_whole)
    left_out = {key for key, span in (('s', 'session'), ('r', 'session'), ('a', 'always')) if span not in spans}
    if 'r' not in left_out and len(remember_choices(request)) == 1:
        left_out.add('r')
    return tuple(key for key in KEYS if key not in left_out)


def remember_spans(
    request: ApprovalRequest, *, is_whole: bool | None = None
) -> tuple[Literal['session', 'always'], ...]:
    """How long an approval may be remembered; empty where something is not shown whole, or cannot be told.

    Args:
        request: What is asked about.
        is_whole: Whether nothing is cut, where that is already known.
    """
    if is_whole is None:
        is_whole = is_shown_whole(request)
    if not is_whole or request.hides_arguments or not _is_distinct(request):
        return ()
    return ('session', 'always') if request.facts.can_remember_always else ('session',)


def _is_distinct(request: ApprovalRequest) -> bool:
    """Whether everything that a remembered approval covers can stand beside the keys."""
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
    """Of a payload that leaves arguments out: what is the same in all calls that it covers."""
    args, payload = request.args, request.payload
    try:
        if payload == args or all(key in payload and payload[key] == value for key, value in args.items()):
            return ''
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and comparing it may do anything
        return _UNTELLABLE
    return _listed(payload) or 'any arguments'


def _listed(payload: Mapping[str, Any]) -> str:
    try:
        # Of more than are told beside the keys, some are enough to be too long for it.
        first = islice(payload.items(), LONGEST_LABEL)
        return ', '.join(f'{key if key.isidentifier() else repr(key)}: {value!r}' for key, value in first)
    except Exception:  # noqa: BLE001 - as above
        return _UNTELLABLE
