"""Suggest bounded approvals, which a person can choose beside one call and the whole session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, cast

from pydantic import BeforeValidator, model_validator

from .bounds import Bounds, amount_of
from .canonical import canonical_json, whole_characters
from .conditions import received
from .errors import NotCanonicalError
from .request import ApprovalRequest, RememberOption

LONGEST_LABEL: Final = 300
"""Maximum number of characters of a label. A UI that cannot show a label whole offers to remember nothing."""

MOST_OPTIONS: Final = 8
"""Maximum number of options of a request. UIs have one digit key for each, and one for exactly this call."""


def as_tuple(names: object) -> object:
    """Return a list as a tuple: YAML and JSON have lists, but strict validation accepts only tuples."""
    return tuple(cast('list[object]', names)) if isinstance(names, list) else names


class Offer(Bounds):
    """A bounded approval that questions about a tool offer."""

    same: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] | None = None
    """Names of the arguments that later calls must have in common with the call; any other argument may differ. `None`
    means all arguments but those of `total`."""

    @model_validator(mode='after')
    def _names_no_argument_twice(self) -> Offer:
        if both := sorted(set(self.same or ()) & set(self.total)):
            raise ValueError(f'`{both[0]}` is both under `same` and under `total`')
        return self

    @property
    def kind(self) -> str:
        """Kind of the option. Another offer has another kind, so that no approval outlasts a change of its bounds."""
        text = canonical_json(self.model_dump(mode='json', exclude_defaults=True))
        return f'bounded-{hashlib.sha256(text.encode()).hexdigest()[:16]}'

    def option_for(self, request: ApprovalRequest) -> RememberOption | None:
        """Return the option for a request, or `None` if it cannot be offered: an amount cannot be counted or is above
        the total, or a value that calls must have in common is not shown.
        """
        args, payload = received(request.args, request.used), request.payload
        amounts = {name: amount_of(args.get(name)) for name in self.total}
        if any(amount is None or amount > self.total[name] for name, amount in amounts.items()):
            return None
        names = [name for name in payload if name not in self.total] if self.same is None else self.same
        if not all(name in payload for name in names):
            return None
        common = {name: payload[name] for name in names}
        is_exact = len(common) == len(payload) and set(request.args) <= set(common)
        calls = 'exactly this call' if is_exact else _calls(request.tool_name, common)
        label = f'{calls}, {self.text}'
        if len(label) > LONGEST_LABEL:
            return None
        bounds = Bounds.model_construct(expires=self.expires, uses=self.uses, total=dict(self.total))
        return RememberOption(kind=self.kind, label=whole_characters(label), payload=common, bounds=bounds)


def _calls(tool_name: str, common: Mapping[str, Any]) -> str:
    if not common:
        return f'every `{tool_name}`, whatever the arguments'
    try:
        values = ', '.join(f'{name}: {canonical_json(value)}' for name, value in common.items())
    except NotCanonicalError:
        return ' ' * (LONGEST_LABEL + 1)  # such a call is denied
    return f'every `{tool_name}` with {values}'


def with_offers(request: ApprovalRequest, offers: Sequence[Offer]) -> ApprovalRequest:
    """Return the request with an option for each offer that fits it. Options that the tool made come first."""
    if not offers:
        return request
    kinds = {option.kind for option in request.remember_options}
    made = [option for each in offers if (option := each.option_for(request)) is not None and option.kind not in kinds]
    room = max(0, MOST_OPTIONS - len(request.remember_options))
    return request.changed(remember_options=(*request.remember_options, *made[:room])) if made else request
