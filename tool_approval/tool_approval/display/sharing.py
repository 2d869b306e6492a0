"""Gives limited room to many: what needs little gets it all, so nothing large can crowd out what is small."""

from __future__ import annotations

from collections.abc import Sequence


def shares(needs: Sequence[int], room: int) -> list[int]:
    """Room for each: what it needs where that is little, and an equal share of what is left otherwise."""
    if sum(needs) <= room:
        return list(needs)
    granted = [0] * len(needs)
    left = max(room, 0)
    by_need = sorted(range(len(needs)), key=needs.__getitem__)
    for done, index in enumerate(by_need):
        granted[index] = min(needs[index], left // (len(needs) - done))
        left -= granted[index]
    return granted
