"""Run a listed command outside of the sandbox, as the user: what its question shows, and what it is bound to."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tool_approval.core.errors import printable
from tool_approval.os_sandbox.git_mounts import Repository
from tool_approval.os_sandbox.host_git import (
    OPTIONS,
    PAIRS,
    HostGit,
    Remote,
    digest_of,
    hooks_in,
    kinds_of,
    repository_here,
)
from tool_approval.os_sandbox.host_program import HostPlace, identity_of
from tool_approval.os_sandbox.profile import Access, covers
from tool_approval.tools.shell.grammar import parse
from tool_approval.tools.shell.reading import CommandReader, simple_words

from .profiles import HOST, MAY_BE_REMOTE, Confinement

OUTSIDE: Final = 'runs OUTSIDE the sandbox, as you: all your files, keys, logins, network'
"""First line of every question about such a command."""
ALONE: Final = "`host` goes with no other access: call again with access=['host'] alone."
_PROTOCOLS: Final = 'https:http:ssh:file'
_PATIENCE_S: Final = 10
_MOST_LINES: Final = 8
_SHORT: Final = 400
_REMOTE: Final = frozenset({'push', 'fetch', 'pull', 'ls-remote', 'clone'})
_NO_LOGIN: Final = re.compile(
    r'could not read (?:Username|Password)|Authentication failed|terminal prompts disabled'
    r'|Permission denied \(publickey|Host key verification failed'
)
_LACKED: Final = 'This needs keys or logins of the user, which no command in the sandbox has.'


@dataclass(frozen=True, kw_only=True)
class HostCall:
    """A command that runs outside of the sandbox once a person has approved it."""

    argv: tuple[str, ...]
    """The path of the program, and its arguments."""
    lines: tuple[str, ...]
    """Lines for the question."""
    facts: Mapping[str, Any]
    """JSON values to which the approval is bound."""
    hook: bytes | None
    """Content of the hook that git runs."""
    environment: Mapping[str, str]
    """The environment of the program, without its hooks."""


class HostCommands:
    """Finds commands that can run outside of the sandbox, and those of git that cannot work inside."""

    def __init__(self, listed: Sequence[str], confinement: Confinement, *, cwd: str, can_be_listed: bool) -> None:
        """Use the setting `shell.host`.

        Args:
            listed: First words of the commands.
            confinement: The profiles of commands.
            cwd: Working directory.
            can_be_listed: Whether the settings could list more commands.
        """
        self._listed = [tuple(each.split()) for each in listed]
        self._confinement = confinement
        self._cwd = cwd
        self._can_be_listed = can_be_listed
        self._programs: dict[str, str] = {}

    def find(self, command: str, asked: Sequence[str]) -> HostCall | None:
        """Return the call for a command line; `None` if the line runs in the sandbox.

        Args:
            command: The command line.
            asked: Kinds of access that the model requests.

        Raises:
            PermissionError: The line requests to run outside, and cannot, or git cannot work in the sandbox, and is not
                listed. The message is for the model.
        """
        if HOST not in asked:
            return self._instead(command)
        if list(asked) != [HOST]:
            raise PermissionError(ALONE)
        # Attack: words between many line continuations are left out of the question (test_host.py).
        words = None if '\n' in command else simple_words(command)
        if words is None:
            raise PermissionError(
                '`host` is only for one simple command whose words are all known: no pipe, `;`, `&&`, `&`, '
                'redirection, variable, `$(...)` or glob. Call it alone.'
            )
        return self._call(self._here(words))

    def _instead(self, command: str) -> HostCall | None:
        """Return the call for a line whose git could not reach the remote in the sandbox."""
        for each in CommandReader(parse(command)).commands:
            if not all(word.is_fixed for word in each.words):
                continue
            words = self._here(tuple(word.value for word in each.words))
            if words[:1] != ('git',) or words[1:2] == () or words[1] not in _REMOTE:
                continue
            if not self._needs_the_user(words[1:]):
                continue
            if words[1] == 'clone':
                raise PermissionError(f'{_LACKED} Tell the user to clone it.')
            kind = 'fetch' if words[1] == 'pull' else words[1]
            if not self._is_listed(('git', kind)):
                raise PermissionError(f'{_LACKED} {self._told(f"git {kind}")}')
            if words[1] != kind or simple_words(command) is None:
                then = ", then `git merge` with access=['git']" if words[1] == 'pull' else ''
                raise PermissionError(
                    f"{_LACKED} Call `git {kind}` alone, with access=['host']{then}; the user is asked."
                )
            return self._call(words)
        return None

    def _here(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return the words without each `-C` that names the working directory, which models often write."""
        here = os.path.realpath(self._cwd)
        while words[:2] == ('git', '-C') and words[2:3] and os.path.realpath(os.path.join(here, words[2])) == here:
            words = ('git', *words[3:])
        return words

    def note_on(self, command: str, output: str) -> tuple[str, ...]:
        """Return a note on a failed command if its output suggests that git lacked keys or logins of the user."""
        found = MAY_BE_REMOTE.search(command)
        if found is None or _NO_LOGIN.search(output) is None:
            return ()
        kind = 'fetch' if found[1] == 'pull' else found[1]
        if kind == 'clone':
            return (f'{_LACKED} Tell the user to clone it.',)
        if self._is_listed(('git', kind)):
            return (f"{_LACKED} Call `git {kind}` alone, with access=['host']; the user is asked.",)
        return (f'{_LACKED} {self._told(f"git {kind}")}',)

    def _needs_the_user(self, words: Sequence[str]) -> bool:
        if words[0] == 'clone':
            return any(Remote(name='', urls=(each,)).needs_the_user(pushes=False) for each in words[1:])
        try:
            if (git := self._git()) is None:
                return False
            named = [each for each in words[1:] if not each.startswith('-')]
            if named and kinds_of(Remote(name='', urls=(named[0],)))[0] in ('ssh', 'web'):
                remote = Remote(name='', urls=(named[0],))
            else:
                remote = git.remote([words[0], *named], git.settings())
        except (PermissionError, OSError, subprocess.SubprocessError):
            return False
        pushes = words[0] == 'push'
        wanted = Access.WRITE if pushes else Access.READ
        return remote.needs_the_user(pushes=pushes) or any(
            self._confinement.approved.access(os.path.realpath(folder)) < wanted
            and not covers(self.place.written, os.path.realpath(folder))
            for folder in remote.folders
        )

    def _told(self, name: str) -> str:
        told = (
            f', or to add `host: [{name}]` below `shell` in approvals.yaml and restart' if self._can_be_listed else ''
        )
        return f'Tell the user to run `{name}`{told}.'

    def _is_listed(self, words: Sequence[str]) -> bool:
        return any(tuple(words[: len(each)]) == each for each in self._listed)

    @cached_property
    def place(self) -> HostPlace:
        """Where programs run, and what commands can write."""
        confinement = self._confinement
        written = [root.path for root in confinement.approved.roots if root.access is Access.WRITE]
        return HostPlace(
            cwd=self._cwd,
            written=(*written, *confinement.written, *confinement.environments),
            environment=dict(os.environ),
        )

    def _program(self, name: str) -> str:
        # Attack: what is found under the name is swapped while the user reads the question (`test_host.py`).
        path = self.place.program(name)
        found = f'{os.path.realpath(path)} {identity_of(path)}'
        if self._programs.setdefault(name, found) != found:
            raise PermissionError(f'The program {name!r} is another one than before. Tell the user to restart.')
        return path

    def _git(self) -> HostGit | None:
        repository = repository_here(self.place)
        return None if repository is None else self._git_of(repository)

    def _git_of(self, repository: Repository) -> HostGit:
        # A linked work tree may have its repository elsewhere, and commands with access to it write there.
        place = HostPlace(
            cwd=self._cwd,
            written=(*self.place.written, repository.common, repository.git),
            environment=self.place.environment,
        )
        program, environment = self._program('git'), {**place.variables(), **for_git('/dev/null')}

        def run(arguments: list[str]) -> tuple[int, bytes]:
            done = subprocess.run(
                [program, *arguments],
                cwd=self._cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=False,
            )
            return done.returncode, done.stdout

        return HostGit(repository=repository, place=place, run=run)

    def _call(self, words: Sequence[str]) -> HostCall:
        if not self._is_listed(words):
            listed = ', '.join(f'`{" ".join(each)}`' for each in self._listed) or 'no command'
            if words[0] == 'git' and (len(words) < 2 or words[1] not in OPTIONS):
                raise PermissionError(
                    'Of git, only `git push`, `git fetch` and `git ls-remote` can run outside of the sandbox, without '
                    'options before these words but `-C` with the working directory. Tell the user.'
                )
            name = ' '.join(words[: 2 if words[0] == 'git' else 1])
            raise PermissionError(f'The settings let {listed} run outside of the sandbox. {self._told(name)}')
        try:
            return self._found(words)
        except (OSError, subprocess.SubprocessError) as error:
            if isinstance(error, PermissionError) and error.errno is None:
                raise
            raise PermissionError(
                f'The programs that would run outside of the sandbox cannot be determined: {error}'
            ) from None

    def _found(self, words: Sequence[str]) -> HostCall:
        place = self.place
        program, environment = self._program(words[0]), place.variables()
        place.check_configuration(words[0])
        lines = [OUTSIDE, f'program: {os.path.realpath(program)}, in {self._cwd}']
        facts: dict[str, Any] = {'program': os.path.realpath(program), 'is': identity_of(program)}
        argv, hook = (program, *words[1:]), None
        if (git := self._git()) is not None:
            settings = git.settings()
            git.check(settings)
            hook = git.hook(settings) if words[:2] == ('git', 'push') else None
            remote = git.remote(words[1:], settings) if words[0] == 'git' else None
            if remote is not None:
                argv = (program, *git.checked(words[1:], remote, settings))
                lines += self._remote_lines(remote)
            if remote is None:
                lines.append('if it runs git, no hook of the repository runs')
            if hook is not None:
                digest = hashlib.sha256(hook[1]).hexdigest()
                lines.append(f'git runs the hook {hook[0]} (SHA-256 {digest[:16]}), and what it starts')
            lines += git.programs(settings, ['web', 'ssh'] if remote is None else kinds_of(remote))
            if git.repository.is_linked:
                lines.append(f'repository: {git.repository.common}')
            facts |= {'git': digest_of(settings, hook), 'urls': [] if remote is None else list(remote.shown)}
        elif words[0] == 'git':
            raise PermissionError('There is no repository here, so git cannot run outside of the sandbox.')
        if len(lines) > _MOST_LINES or any(len(line) > _SHORT for line in lines):
            raise PermissionError(
                'The list of programs and addresses is too long for a question. Ask the user to run it.'
            )
        return HostCall(
            argv=argv,
            lines=tuple(printable(line, _SHORT) for line in lines),
            facts={**facts, 'argv': list(argv)},
            hook=None if hook is None else hook[1],
            environment=environment,
        )

    def _remote_lines(self, remote: Remote) -> list[str]:
        lines = [f'remote {remote.name}: {url}' for url in remote.shown]
        for folder in remote.folders:
            hooks = ', '.join(hooks_in(folder)) or 'none'
            lines.append(f'git runs the hooks of {folder}: {hooks}')
        return lines


def for_git(hooks: str) -> dict[str, str]:
    """Return environment variables for every git that runs outside of the sandbox, with a folder of hooks."""
    pairs = (*PAIRS, ('core.hooksPath', hooks))
    return {
        'GIT_CONFIG_COUNT': str(len(pairs)),
        **{f'GIT_CONFIG_KEY_{at}': key for at, (key, _) in enumerate(pairs)},
        **{f'GIT_CONFIG_VALUE_{at}': value for at, (_, value) in enumerate(pairs)},
        'GIT_ALLOW_PROTOCOL': _PROTOCOLS,
        'GIT_TERMINAL_PROMPT': '0',
        'GIT_EDITOR': 'true',
        'GIT_PAGER': 'cat',
        'PAGER': 'cat',
    }
