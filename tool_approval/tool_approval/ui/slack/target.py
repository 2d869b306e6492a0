"""What a button is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_TARGET = re.compile(r'([A-Za-z0-9_-]{43})\.([0-9a-f]{64})\.(\d{1,6})')


@dataclass(frozen=True, kw_only=True)
class Target:
    """A request, and what of it was shown."""

    request_id: str
    """Of the request."""
    digest: str
    """Of what was shown. An answer with another digest is refused by the inbox."""
    page: int = 0
    """Of the full view, from 0."""

    def __str__(self) -> str:
        """As the value of a button."""
        return f'{self.request_id}.{self.digest}.{self.page}'

    @classmethod
    def read(cls, value: str) -> Self:
        """What the value of a button says.

        Raises:
            ValueError: It is none of ours.
        """
        found = _TARGET.fullmatch(value)
        if found is None:
            raise ValueError('not the value of a button of an approval')
        return cls(request_id=found[1], digest=found[2], page=int(found[3]))
