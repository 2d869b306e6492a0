"""The life of a request, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

State = Literal['pending', 'approved', 'denied', 'expired', 'withdrawn']
"""What a request in the inbox can be."""

Settled = Literal['approved', 'denied', 'expired', 'withdrawn']
"""What it can become. All four are final."""

MOVES: Mapping[State, frozenset[Settled]] = MappingProxyType(
    {
        'pending': frozenset[Settled]({'approved', 'denied', 'expired', 'withdrawn'}),
        'approved': frozenset[Settled](),
        'denied': frozenset[Settled](),
        'expired': frozenset[Settled](),
        'withdrawn': frozenset[Settled](),
    }
)
"""From each state to those it can become. A store makes each move by one atomic step: it holds or nothing changes."""
