"""What a person may answer to a request: remember it, change its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.decision import Remember
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest, describe
from tool_approval.display import offered_keys, remember_choices
from tool_approval.display.digest import left_out_keys

_SPANS: Mapping[str, Remember] = {'s': 'session', 'a': 'always'}


@dataclass(frozen=True, kw_only=True)
class Offer:
    """How long an approval may be remembered, and for what."""

    spans: tuple[Remember, ...] = ()
    """`session`, `always`; empty where nothing may be remembered."""
    choices: tuple[tuple[str, str], ...] = ()
    """Kinds, and what each covers, escaped; `exact` is the first."""


def offer_of(request: ApprovalRequest, *, is_whole: bool | None = None) -> Offer:
    """What may be remembered of an approval: the same as at the terminal.

    Nothing may where something of the request was not shown, or what is covered cannot be.

    Args:
        request: What is asked about.
        is_whole: Whether nothing of it is cut, where that is already known.
    """
    keys = offered_keys(request, is_whole=is_whole)
    spans: tuple[Remember, ...] = tuple(span for key, span in _SPANS.items() if key in keys)
    return Offer(spans=spans, choices=tuple(remember_choices(request)) if spans else ())


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
            'described_by': None,
            'presentation': None,
            'remember_options': (),
        }
    )
