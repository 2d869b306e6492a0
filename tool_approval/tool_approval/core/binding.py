"""Bind an approval to one call, in a form that hosts can store and pass between processes.

A table of approvals in the controller would be missing where another process resumes the run, and would grow with every
abandoned run. A comparison with the request that was shown would trust the UI, which could change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from .arguments import ARGUMENTS, TYPES
from .canonical import copied


class Binding(NamedTuple):
    """Binds an approval to exactly one call. Hosts store a binding as JSON, and may pass it between processes."""

    digest: str
    """Digest of the call that may run. A malformed stored digest is read as empty and matches no call."""
    decided: str | None
    """Digest of the decision in the log."""
    bound_to: Mapping[str, Any]
    """Values that the digest covers in addition to the arguments shown."""
    granted: object = None
    """Names of the capabilities that the approval grants, as a list; `None` if there are none."""
    has_changed_arguments: bool = False
    """Whether the approver changed the arguments."""
    by_policy: bool = False
    """Whether a rule let the call run. False if an approver, a mode or the memory approved the call."""
    approvers: tuple[str, ...] = ()
    """Names of the people who approved the call, if known."""
    remembered: str | None = None
    """Id of the remembered approval that approved the call, if any."""
    decided_at: str | None = None
    """Time of the decision, in the form of ISO 8601."""
    expires_at: str | None = None
    """Time after which the call no longer runs, in the form of ISO 8601; `None` for no limit."""
    seal: str = ''
    """Keyed hash of all other values, except for those that the digest covers."""
    response: Any = None
    """The approver's response in the tool's place; `None` if there is none. With a response, no digest is kept, so the
    binding lets no call run."""

    @property
    def declared(self) -> dict[str, Any]:
        """The part of `bound_to` that the tool declared."""
        return {name: value for name, value in self.bound_to.items() if name not in (ARGUMENTS, TYPES)}

    def as_json(self) -> dict[str, Any]:
        """Return the binding as JSON. Granted capabilities are left out, because the host passes them to the tool."""
        return {
            'digest': self.digest,
            'decided': self.decided,
            'bound_to': copied(self.bound_to),
            'has_changed_arguments': self.has_changed_arguments,
            'by_policy': self.by_policy,
            'approvers': list(self.approvers),
            'remembered': self.remembered,
            'decided_at': self.decided_at,
            'expires_at': self.expires_at,
            'seal': self.seal,
            **({} if self.response is None else {'response': copied(self.response)}),
        }

    @classmethod
    def of(cls, carried: Mapping[str, Any], granted: object = None) -> Binding:
        """Read a binding that a host stored. A malformed binding matches no call."""
        digest, decided, bound_to = carried.get('digest'), carried.get('decided'), carried.get('bound_to')
        response = carried.get('response')
        is_sound = isinstance(digest, str) and isinstance(bound_to, Mapping) and response is None
        return cls(
            digest=digest if is_sound and isinstance(digest, str) else '',
            decided=_text(decided),
            bound_to=cast('Mapping[str, Any]', bound_to) if isinstance(bound_to, Mapping) else {},
            granted=granted,
            has_changed_arguments=carried.get('has_changed_arguments') is True,
            by_policy=carried.get('by_policy') is not False,
            approvers=_texts(carried.get('approvers')),
            remembered=_text(carried.get('remembered')),
            decided_at=_text(carried.get('decided_at')),
            expires_at=_text(carried.get('expires_at')),
            seal=_text(carried.get('seal')) or '',
            response=response,
        )

    @classmethod
    def of_response(cls, response: Any) -> Binding:
        """Return the binding of a call that does not run. Hosts that only know approvals carry it to the adapter."""
        return cls(digest='', decided=None, bound_to={}, response=response)


def _text(carried: object) -> str | None:
    return carried if isinstance(carried, str) else None


def _texts(carried: object) -> tuple[str, ...]:
    """Return the strings of a list. The seal does not fit a list that had anything else."""
    values = cast('list[object] | tuple[object, ...]', carried) if isinstance(carried, list | tuple) else ()
    return tuple(each for each in values if isinstance(each, str))
