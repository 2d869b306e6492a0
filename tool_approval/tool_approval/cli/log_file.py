"""Find the log that a command reads, and its key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tool_approval.audit import load_key, read_entries
from tool_approval.audit.reading import read_verified
from tool_approval.storage.private_file import default_path

from .output import UsageError


def log_of_run() -> str:
    """Return the path of the log of `tool-approval run`."""
    return str(default_path().parent / 'audit' / 'decisions.jsonl')


def key_for(log: str | None, key: str | None) -> bytes:
    """Return the key of a log. Without a name of the log, it is the key of `tool-approval run`.

    Raises:
        UsageError: The log is named and its key is not, or there is no such file.
        AuditError: The file contains no key.
    """
    if log is not None and key is None:
        raise UsageError('name the key file of the log with `--key FILE`')
    path = key or str(default_path().parent / 'keys' / 'audit.key')
    # Loading would create a missing key, and with a new key every log looks broken.
    if not os.path.lexists(path):
        raise UsageError(f'there is no key file {path}; name the key file with which the log was written')
    return load_key(path)


def verified_entries(log: str | None, key: str | None) -> Iterator[Mapping[str, Any] | None]:
    """Return the entries of a log, after all of it has been verified.

    Raises:
        UsageError: See `key_for`.
        AuditError: The log is not intact, or its key cannot be used.
        OSError: The log cannot be read.
    """
    return read_verified(log or log_of_run(), key=key_for(log, key))


def known_entries(log: str | None, key: str | None) -> tuple[Iterator[Mapping[str, Any] | None], bool]:
    """Return the entries of a log, and whether they were verified. A log that is named without a key is not.

    Raises:
        UsageError: See `key_for`.
        AuditError: The log is not intact, its key cannot be used, or a line is too long.
        OSError: The log cannot be read.
    """
    if log is not None and key is None:
        return read_entries(log), False
    return verified_entries(log, key), True
