"""Say with the result of a confined command which access it lacked, and what cannot be given.

The notes are judged by the command's output, which a command can forge. All it gains is that the model asks the user,
who is shown the access.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from tool_approval.core.errors import printable
from tool_approval.os_sandbox import ACCESS_NAMES, AccessName, ExtraAccess, OSProfile
from tool_approval.os_sandbox.git_mounts import git_problem
from tool_approval.os_sandbox.toolchain_layouts import environments_in
from tool_approval.tools.shell import Explanation, ShellResult

_NOT_FOUND: Final = 127
"""Exit status of bash for a program that does not exist."""
_READ_ONLY: Final = r'Read-only file system|EROFS'
_LACKED: Final[Mapping[AccessName, tuple[str, re.Pattern[str]]]] = {
    'write': ('This directory was read-only. ', re.compile(_READ_ONLY)),
    'git': ('The repository was read-only. ', re.compile(rf'\.git\b.*(?:{_READ_ONLY})|cannot lock ref')),
    'network': (
        'There was no network. ',
        re.compile(
            r'connection refused|ECONNREFUSED|failed to connect|could not resolve|name or service not known'
            r'|name resolution|network is unreachable|EAI_AGAIN|ENOTFOUND|ENETUNREACH|getaddrinfo|UnknownHost'
            r'|lookup address|dial tcp|no matching distribution found',
            re.IGNORECASE,
        ),
    ),
    'environment': ('The environment was read-only. ', re.compile(_READ_ONLY)),
}
"""By kind of access, a text that says that a command lacked it, and the output that suggests this."""
_SECRET: Final = 'No command can read {}, even with approval or extra access: the file may hold secrets. Tell the user.'
_HISTORY: Final = (
    'The history of the repository is hidden from this command, because the repository tracks files that need approval '
    'for reading, or are blocked.'
)
_CONFIG: Final = re.compile(r'^.*could not (?:lock|write) config file .*\.git/.*(?:\n|\Z)', re.MULTILINE)
"""Message of git about a command that would change the configuration of a repository."""
_NO_CONFIG: Final = (
    'Commands cannot change .git/config, even with approval, because it decides which programs git runs. A branch, '
    'remote or setting in this file stays as it was: ask the user to change it, if it matters.'
)
_WHAT_IS_FOUND: Final = (
    'A program was not found. Commands can use programs of the system, of the active environment and of the toolchains '
    'that `tool-approval doctor` lists. Call a program of the project by path, such as `.venv/bin/pytest`. For other '
    'programs, the user can activate an environment and restart the agent, or add a folder to `sandbox.toolchains`.'
)
_NOT_ACTIVE: Final = (
    'This directory has {0}, which looks like a virtual environment, but is not active, and was not checked. '
    'Call its programs by path, such as `{0}/bin/python`.'
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Surroundings of a command."""

    cwd: str
    """Working directory."""
    approved: OSProfile
    """Profile of approved commands without extra access."""
    hidden: Collection[str]
    """Paths that are hidden because they may hold secrets."""
    lacking: Callable[[Collection[AccessName]], ExtraAccess]
    """Returns the part of some kinds of access that commands do not have without approval."""


def notes_on(
    result: ShellResult, explanation: Explanation, had: ExtraAccess, place: Place, *, hides_history: bool
) -> tuple[str, ...]:
    """Return the notes on a result.

    Args:
        result: The result of the command.
        explanation: How the command was judged.
        had: Extra access that the command had.
        place: Surroundings of the command.
        hides_history: Whether the history of the repository was hidden from the command.
    """
    if result.exit_status == _NOT_FOUND:
        return (_WHAT_IS_FOUND, *_environments(place))
    access = _access(result, explanation, had, place)
    # A program that fails behind a pipe does not change the exit status.
    if not result.exit_status:
        return access
    history = (_HISTORY,) if hides_history and 'git' in explanation.command else ()
    return (*_secrets(result, place), *history, *access)


def _secrets(result: ShellResult, place: Place) -> tuple[str, ...]:
    """Return a note about a secret that the command could not read."""
    refused = [line for line in f'{result.stdout}\n{result.stderr}'.splitlines() if 'ermission denied' in line]
    names = (os.path.relpath(path, place.cwd) for path in place.hidden)
    # The longest name: `sub/.env` contains `.env`.
    named = max((name for name in names if any(name in line for line in refused)), key=len, default=None)
    return () if named is None else (_SECRET.format(printable(named, 300)),)


def _environments(place: Place) -> tuple[str, ...]:
    """If no environment is active, return a note about each environment in the working directory."""
    if 'VIRTUAL_ENV' in dict(place.approved.variables):
        return ()
    return tuple(_NOT_ACTIVE.format(os.path.basename(path)) for path in environments_in(place.cwd))


def _access(result: ShellResult, explanation: Explanation, had: ExtraAccess, place: Place) -> tuple[str, ...]:
    """Return notes about access that a command lacked."""
    notes: list[str] = []
    if result.exit_status and 'git' in explanation.needs:
        problem = git_problem(place.approved, place.cwd)
        if problem is not None:
            problem = printable(problem, 500)
            notes.append(f'The command had no access to .git, and this access cannot be granted: {problem}.')
    output, times = _CONFIG.subn('', f'{result.stdout}\n{result.stderr}')
    if times:
        notes.append(_NO_CONFIG)
    # It may have asked a server outside of the conversation, and `curl --silent` prints nothing.
    is_refused = bool(result.exit_status) and explanation.is_local and 'network' in explanation.needs
    suggested = {'network'} if is_refused and not had.network and place.lacking(['network']).network else set[str]()
    lacked: list[AccessName] = [
        name for name in ACCESS_NAMES if name in suggested or _is_lacked(name, had, output, place)
    ]
    if not {'git', 'environment'}.isdisjoint(lacked):
        # The output names a path, which `write` does not open.
        lacked = [name for name in lacked if name != 'write']
    if lacked:
        # The model has to repeat what it had, so the new call has both.
        names = [name for name in ACCESS_NAMES if name in lacked or name in had.names]
        what = ''.join(_LACKED[name][0] for name in lacked)
        notes.append(f'{what}Call again with access={names}; the user is asked.')
    return tuple(notes)


def _is_lacked(name: AccessName, had: ExtraAccess, output: str, place: Place) -> bool:
    """Whether the output suggests that a command lacked a kind of access that it can be given."""
    if _LACKED[name][1].search(output) is None:
        return False
    extra = place.lacking([name])
    if name == 'environment' and not any(os.path.basename(path) in output for path in extra.writes):
        return False
    return bool(set(extra.describe()) - set(had.describe()))
