"""Read the entries of a log, without checking that they are unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import AuditError, NotCanonicalError

from .jsonl import LONGEST_LINE


def read_entries(path: str | os.PathLike[str]) -> Iterator[Mapping[str, Any] | None]:
    """Yield the entries of a log, one for each line, without holding the whole log in memory.

    Yields:
        An entry, or `None` for a line that is not a JSON object.

    Raises:
        OSError: The file cannot be read.
        AuditError: A line is too long for a log. The lines before it have been yielded.
    """
    with open(path, 'rb') as log:
        number = 0
        while (line := log.readline(LONGEST_LINE + 1)) != b'':
            number += 1
            if len(line) > LONGEST_LINE:
                raise AuditError(str(path), f'line {number} is too long for an audit log; the rest was not read')
            try:
                yield decode_arguments(line.decode())
            except (NotCanonicalError, UnicodeDecodeError):
                yield None
