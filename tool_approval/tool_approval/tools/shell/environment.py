"""Decide which variables a command may set without approval, and clean the environment of commands."""

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
"""Lower-case names. Only the command itself uses variables with lower-case names, except those in `_READ`."""
_READ: Final = re.compile(r'(?:[a-z]+_)?proxy|histchars|auto_resume|npm_.*|git_.*|pip_.*')
_KEPT: Final = frozenset({'HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TERM', 'SYSTEMROOT'})
SYSTEM_PATH: Final = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
"""Default search path for programs."""


def is_harmless(name: str, *, is_exported: bool) -> bool:
    """Return whether setting a variable, to any value, cannot change what runs.

    Args:
        name: Name of the variable.
        is_exported: Whether programs receive the variable. Variables that are not exported are read only by the shell.
    """
    if name in _HARMLESS or _LOCALE.fullmatch(name):
        return True
    return not is_exported and _OWN.fullmatch(name) is not None and not _READ.fullmatch(name)


def clean_environment(given: Mapping[str, str], *, path: str | None = None) -> dict[str, str]:
    """Return the environment for a command: user, locale, folders, and a search path of absolute paths.

    Other variables may hold secrets (`*_TOKEN`) or change what runs (`BASH_ENV`, `LD_PRELOAD`).

    Args:
        given: The environment to select from.
        path: The search path; `None` uses the path in `given`.
    """
    kept = {name: value for name, value in given.items() if name in _KEPT or _LOCALE.fullmatch(name)}
    places = (path if path is not None else given.get('PATH', SYSTEM_PATH)).split(':')
    # Attack: an empty or relative entry finds a program that the agent has just written.
    kept['PATH'] = ':'.join(place for place in places if place.startswith('/')) or SYSTEM_PATH
    # So that no pager waits for a key and no prompt for an answer.
    return {**kept, 'PAGER': 'cat', 'GIT_PAGER': 'cat', 'GIT_TERMINAL_PROMPT': '0', 'TERM': 'dumb'}
