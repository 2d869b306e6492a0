"""Find the inbox that a command uses, and the approver who answers its requests."""

from __future__ import annotations

import getpass

from pydantic import ValidationError

from tool_approval.durable import DurableStore, open_store
from tool_approval.inbox import Approver
from tool_approval.inbox.stores import default_path

from .output import UsageError


def named_store(place: str | None) -> DurableStore:
    """Return the database given by `--store`, or the user's own inbox, without opening it.

    Raises:
        UsageError: The value of `--store` does not name a database.
    """
    try:
        return open_store(str(default_path()) if place is None else place)
    except ValueError as error:
        raise UsageError(str(error)) from None


def named_approver(text: str | None) -> Approver:
    """Return the approver given by `--approver ID[=GROUP,...]`, or the user of this machine.

    Raises:
        UsageError: The approver's name is invalid.
    """
    name, _, groups = (user() if text is None else text).partition('=')
    try:
        return Approver(id=name, groups=frozenset(filter(None, groups.split(','))))
    except ValidationError as error:
        raise UsageError(f'--approver {name!r} is invalid: {error.errors()[0]["msg"]}') from None


def user() -> str:
    """Return the name of the user of this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without an entry, as in some containers
        return 'user'
