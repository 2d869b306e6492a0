"""What a person may answer to a request: remember it, change its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tool_approval.canonical import EXACT, canonical_json, decode_arguments
from tool_approval.decision import Remember
from tool_approval.display import escape_line, is_shown_whole, name_of
from tool_approval.display.digest import left_out_keys
from tool_approval.errors import NotCanonicalError
from tool_approval.request import ApprovalRequest, describe

LONGEST_LABEL = 300
"""Chosen, in characters: of what is longer nobody sees what it covers."""

MOST_OPTIONS = 8
"""Chosen: as many as the terminal offers beside `exact`."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """How long an approval may be remembered, and for what."""

    spans: tuple[Remember, ...] = ()
    """`session`, `always`; empty where nothing may be remembered."""
    choices: tuple[tuple[str, str], ...] = ()
    """Kinds, and what each covers, escaped; `exact` is the first."""


def offer_of(request: ApprovalRequest, *, is_whole: bool | None = None) -> Offer:
    """What may be remembered of an approval.

    Nothing may where something of the request was not shown, or what is covered cannot be.

    Args:
        request: What is asked about.
        is_whole: Whether nothing of it is cut, where that is already known.
    """
    labels = [option.label for option in request.remember_options]
    exact = _what_counts(request)
    can_be_told = (
        len(labels) <= MOST_OPTIONS
        and all(label.strip() and len(label) <= LONGEST_LABEL for label in labels)
        and exact is not None
    )
    if not can_be_told or not (is_shown_whole(request) if is_whole is None else is_whole):
        return Offer()
    told = f'every {name_of(request.tool_name)} with {exact}' if exact else 'exactly this call'
    wider = ((option.kind, escape_line(option.label)) for option in request.remember_options)
    spans: tuple[Remember, ...] = ('session',)
    if request.metadata.get('can_remember_always') is True:
        spans = ('session', 'always')
    return Offer(spans=spans, choices=((EXACT, told), *wider))


def _what_counts(request: ApprovalRequest) -> str | None:
    """What is the same in all calls that `exact` covers, escaped; empty for all arguments, `None` if it is too long."""
    payload = request.payload
    if all(key in payload and payload[key] == value for key, value in request.args.items()):
        return ''
    told = ', '.join(f'{key}: {value!r}' for key, value in payload.items()) or 'any arguments'
    return escape_line(told) if len(told) <= LONGEST_LABEL else None


def editable(request: ApprovalRequest) -> dict[str, Any]:
    """The arguments a person may see and change; what the tool keeps from being shown stays as it is."""
    hidden = left_out_keys(request)
    return {key: value for key, value in request.args.items() if key not in hidden}


class UnreadableArguments(Exception):
    """A text says no arguments; why, for a person."""


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments that an edited text says.

    Raises:
        UnreadableArguments: It says none, or values that a call cannot have.
    """
    try:
        values = decode_arguments(text)
        canonical_json(values)
    except NotCanonicalError as error:
        raise UnreadableArguments(error.problem) from None
    return values


def with_arguments(request: ApprovalRequest, edited: Mapping[str, Any]) -> ApprovalRequest:
    """The request as it is asked about again, with what was edited; nothing about it can be remembered.

    What its tool says of it was made for the other arguments, so nothing of that is left.
    """
    kept = {key: request.args[key] for key in left_out_keys(request)}
    shown = {key: value for key, value in edited.items() if key not in kept}
    return request.model_copy(
        update={
            'args': {**shown, **kept},
            'payload': shown,
            'description': describe(request.tool_name, shown),
            'presentation': None,
            'remember_options': (),
        }
    )
