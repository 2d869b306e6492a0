"""The trusted files without pydantic; see `plain`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, cast

_DIGEST: Final = re.compile(r'[0-9a-f]{64}')
_WRITTEN: Final = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z', re.ASCII)
"""A time as this program writes it."""


def plain_digests(text: bytes) -> Sequence[tuple[str, str]] | None:
    """Path and digest of each trusted file; `None` if it is not certain that `TrustedFiles` would read them so."""
    try:
        contents: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if type(contents) is not dict:
        return None
    values = cast('dict[str, object]', contents)
    version, files = values.get('version'), values.get('files')
    if len(values) != 2 or type(version) is not int or version != 1 or type(files) is not list:
        return None
    read = [_trusted(each) for each in cast('list[object]', files)]
    certain = [each for each in read if each is not None]
    return certain if len(certain) == len(read) else None


def _trusted(file: object) -> tuple[str, str] | None:
    if type(file) is not dict:
        return None
    values = cast('dict[str, object]', file)
    path, digest, trusted_at = values.get('path'), values.get('digest'), values.get('trusted_at')
    if len(values) != 3 or type(path) is not str or type(digest) is not str or type(trusted_at) is not str:
        return None
    if not path.isprintable() or not _DIGEST.fullmatch(digest) or not _WRITTEN.fullmatch(trusted_at):
        return None
    try:
        datetime.fromisoformat(trusted_at)
    except ValueError:  # the 30th of February
        return None
    return path, digest
