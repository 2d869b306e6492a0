"""List the variables that may be set unasked, since they only change how output looks, and clean environments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_HARMLESS: Final = frozenset({
    'LANG', 'LANGUAGE', 'TZ', 'NO_COLOR', 'CLICOLOR', 'CLICOLOR_FORCE', 'FORCE_COLOR', 'COLUMNS', 'LINES', 'CI',
    'PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE', 'RUST_BACKTRACE',
})  # fmt: skip
_LOCALE: Final = re.compile(r'LC_[A-Z]+')
_OWN: Final = re.compile(r'[a-z][a-z0-9_]*')
"""A name in lower case is the command's own, unless `_READ` has it, which programs read."""
_READ: Final = re.compile(r'(?:[a-z]+_)?proxy|histchars|auto_resume|npm_.*|git_.*|pip_.*')
_KEPT: Final = frozenset({'HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TERM', 'SYSTEMROOT'})
SYSTEM_PATH: Final = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
"""Where programs are looked for by default."""


def is_harmless(name: str, *, is_exported: bool) -> bool:
    """Whether setting `name`, to anything, changes nothing that runs.

    Args:
        name: The variable.
        is_exported: Whether a program is given it; a shell's own variable is read by nothing else.
    """
    if name in _HARMLESS or _LOCALE.fullmatch(name):
        return True
    return not is_exported and _OWN.fullmatch(name) is not None and not _READ.fullmatch(name)


def clean_environment(given: Mapping[str, str], *, path: str | None = None) -> dict[str, str]:
    """The environment of a command: the user, the places and a search path without relative parts.

    Everything else stays out, since it may hold a secret (`*_TOKEN`) or change what runs (`BASH_ENV`, `LD_PRELOAD`).

    Args:
        given: The environment to take from.
        path: The search path; the given one if `None`.
    """
    kept = {name: value for name, value in given.items() if name in _KEPT or _LOCALE.fullmatch(name)}
    places = (path if path is not None else given.get('PATH', SYSTEM_PATH)).split(':')
    # Attack: an empty or relative part finds a program that the agent has just written.
    kept['PATH'] = ':'.join(place for place in places if place.startswith('/')) or SYSTEM_PATH
    # No pager waits for a key, and no prompt for an answer.
    return {**kept, 'PAGER': 'cat', 'GIT_PAGER': 'cat', 'GIT_TERMINAL_PROMPT': '0', 'TERM': 'dumb'}
