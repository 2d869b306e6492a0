"""Read the cases of a table from a TOML file beside its test.

A file has named lists of groups. A group says in `why` what its cases have in common, and has either `cases`, one list
of values for each, or what is decided about its calls under `allow`, `ask` and `block`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def rows(file: Path, name: str) -> list[tuple[Any, ...]]:
    """The cases of all groups of this name, with the reason as the first value of each."""
    groups = tomllib.loads(file.read_text())[name]
    return [(group['why'], *case) for group in groups for case in group['cases']]


def decisions(file: Path, name: str) -> list[tuple[str, str, Any]]:
    """The reason, the decision and the call of each case of all groups of this name."""
    groups = tomllib.loads(file.read_text())[name]
    assert all(group.keys() <= {'why', 'allow', 'ask', 'block'} for group in groups)
    return [
        (group['why'], decision, call)
        for group in groups
        for decision in ('allow', 'ask', 'block')
        for call in group.get(decision, [])
    ]
