"""The variables a confined command gets."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .profile import OSProfile

_DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'


def passed_on(profile: OSProfile, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of `source` that the profile names, sorted, and a `PATH` in any case, without relative parts.

    Args:
        profile: Names them.
        source: Where they come from, by default this process's own.
    """
    values = os.environ if source is None else source
    chosen = {name: values[name] for name in sorted(profile.environment) if name in values}
    # Attack: an empty or relative part finds a program that the agent has just written.
    path = ':'.join(place for place in chosen.get('PATH', '').split(':') if place.startswith('/'))
    chosen.pop('PATH', None)
    return {'PATH': path or _DEFAULT_PATH, **chosen}
