"""Decide which environment variables a command may set without approval, and build the environment for commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from typing import Final

_HARMLESS: Final = frozenset({
    'TZ', 'NO_COLOR', 'CLICOLOR', 'CLICOLOR_FORCE', 'FORCE_COLOR', 'COLUMNS', 'LINES', 'CI',
    'PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE', 'RUST_BACKTRACE',
})  # fmt: skip
_OWN: Final = re.compile(r'[a-z][a-z0-9_]*')
"""Lower-case names. A variable with such a name affects only the command line that sets it, unless `_READ` matches."""
_READ: Final = re.compile(r'(?:[a-z]+_)?proxy|histchars|auto_resume|npm_.*|git_.*|pip_.*')
_KEPT: Final = frozenset({'HOME', 'USER', 'LOGNAME', 'TZ', 'TMPDIR', 'TERM', 'SYSTEMROOT'})
CERTIFICATES: Final = (
    'AWS_CA_BUNDLE',
    'CARGO_HTTP_CAINFO',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'NODE_EXTRA_CA_CERTS',
    'PIP_CERT',
    'REQUESTS_CA_BUNDLE',
    'SSL_CERT_DIR',
    'SSL_CERT_FILE',
)
"""Variables that name the certificate authorities of a company or a mirror, without which no download succeeds."""
_DECIDING: Final = re.compile(
    r'PATH|ENV|IFS|PS\d|BASH_?\w*|SHELLOPTS|PROMPT_COMMAND|CDPATH|GLOBIGNORE|LANG|LANGUAGE|(?:LC|LD|DYLD)_\w*'
)
"""Variables with which the shell or the loader runs other code, or reads a line differently from the rules."""
_SECRET: Final = re.compile(
    r'(?i).*(?:key|token|secrets?|pass|passwd|password|passphrase|pwd|auth|credentials?|cookie|_pat)'
)
LOCALE: Final = 'en_US.UTF-8' if sys.platform == 'darwin' else 'C.UTF-8'
"""Locale of every command.

Attack: in a locale such as `zh_CN.GBK`, bash takes a byte that the parser read as a quote or backslash for a part of a
character, and so runs something else than was judged (`test_no_locale_of_the_agent_reaches_a_command`).
"""
SYSTEM_PATH: Final = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
"""Default search path for programs."""


def is_harmless(name: str, *, is_exported: bool) -> bool:
    """Return whether setting a variable is harmless: whatever its value, it cannot change which programs run.

    Args:
        name: Name of the variable.
        is_exported: Whether programs receive the variable. Only the shell reads variables that are not exported.
    """
    if name in _HARMLESS:
        return True
    return not is_exported and _OWN.fullmatch(name) is not None and not _READ.fullmatch(name)


def may_be_passed(name: str) -> bool:
    """Return whether settings can pass a variable on to commands: not if it decides which code the shell runs."""
    return name.isidentifier() and name.isascii() and not _DECIDING.fullmatch(name)


def may_be_secret(name: str) -> bool:
    """Return whether the name of a variable is that of a secret, such as `GITHUB_TOKEN`."""
    return _SECRET.fullmatch(name) is not None


def clean_environment(
    given: Mapping[str, str], *, path: str | None = None, names: Collection[str] = ()
) -> dict[str, str]:
    """Return the environment for a command: variables for the user and folders, a locale, and an absolute `PATH`.

    Other variables may contain secrets (`*_TOKEN`) or change which code runs (`BASH_ENV`, `LD_PRELOAD`).

    Args:
        given: The environment to select from.
        path: The value for `PATH`; `None` uses the value in `given`.
        names: More variables to keep.
    """
    kept = {name: value for name, value in given.items() if name in (*_KEPT, *CERTIFICATES, *names)}
    places = (path if path is not None else given.get('PATH', SYSTEM_PATH)).split(':')
    # Attack: an empty or relative entry finds a program that the agent has just written.
    kept['PATH'] = ':'.join(place for place in places if place.startswith('/')) or SYSTEM_PATH
    # With these, no pager waits for a key, and no prompt waits for an answer.
    return {**kept, 'LC_ALL': LOCALE, 'PAGER': 'cat', 'GIT_PAGER': 'cat', 'GIT_TERMINAL_PROMPT': '0', 'TERM': 'dumb'}
