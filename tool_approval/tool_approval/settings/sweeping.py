"""Run the sweep around a command that can write to the workspace."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from tool_approval.core.errors import printable
from tool_approval.os_sandbox import Access, OSProfile, OSSandboxError, Root
from tool_approval.os_sandbox.backend import ENV
from tool_approval.os_sandbox.before import hold, take
from tool_approval.os_sandbox.git_mounts import MAKES, PACKS, Repository, guards, opened, user_settings
from tool_approval.os_sandbox.journal import Journal
from tool_approval.os_sandbox.mounts import without_missing
from tool_approval.os_sandbox.profile import covers
from tool_approval.os_sandbox.tree import Tree
from tool_approval.tools.shell import Explanation, ShellResult
from tool_approval.tools.shell.reading import simple_words

from .profiles import Confinement

_UNSWEPT: Final = (
    'The command may have left something here that git runs, and the check failed: {}. Until the check succeeds, no '
    'other command runs here. Tell the user to use no git here meanwhile.'
)
LOOK_AGAIN_S: Final = 0.02
"""Seconds to wait before the journal of a repository is tried again."""
_MOST_GUARDS: Final = 200
"""Maximum number of mounts for the configurations of nested repositories. The sweep checks all of them."""
_RECURSIVE: Final = re.compile(r'-[a-zA-Z]*[rR][a-zA-Z]*|--recursive')
_REMOVES: Final = ('rm', 'git')
_REMOVE_TREE: Final = ('git', 'worktree', 'remove')
_PAIR: Final = ('KEY', 'VALUE')
"""Names of the environment variables from which git reads a setting; git-config(1)."""

T = TypeVar('T')

_log = logging.getLogger('tool_approval')


@dataclass(frozen=True, kw_only=True)
class Sweeping:
    """The sweep around the commands of a shell tool."""

    confinement: Confinement
    """The access of commands."""
    tree: Tree
    """Earlier findings in the workspace."""
    cwd: str
    """Absolute path of the working directory, without links."""
    timeout_s: float
    """Maximum seconds to wait for another command that writes here, and to look at the workspace."""

    async def run(
        self,
        command: list[str],
        profile: OSProfile,
        explanation: Explanation,
        repository: Repository | None,
        *,
        wrap: Callable[[list[str], OSProfile], list[str]],
        start: Callable[[list[str]], Awaitable[ShellResult]],
    ) -> ShellResult:
        """Run a program that can write to the workspace, and move away what it must not leave there.

        Args:
            command: The program and its arguments.
            profile: The access of the program.
            explanation: The decision on the command line.
            repository: The repository to which the program can write, if any.
            wrap: Function that adds the OS sandbox.
            start: Function that runs a confined program.

        Raises:
            OSSandboxError: The program cannot be confined, or the sweep cannot be prepared. It has not run.
            asyncio.CancelledError: This task was cancelled. The program has been ended, and the sweep is done.
        """
        # Sorted, so that no two commands wait for each other.
        folders = sorted({self.cwd, *(() if repository is None else (repository.common,))})
        notes: list[str] = []
        with ExitStack() as opened:
            journals: list[Journal] = []
            for folder in folders:
                journals.append(await self.journal(folder))
                opened.callback(journals[-1].close)
            try:
                argv = await to_its_end(
                    lambda: wrap(*self._prepared(journals, command, profile, repository, explanation))
                )
                result = await start(argv)
            finally:
                for journal in journals:
                    notes += await to_its_end(partial(_finished, journal, self.tree))
        return replace(result, notes=(*result.notes, *notes))

    async def journal(self, written: str) -> Journal:
        """Return the journal of a repository, as soon as no other command has it.

        Raises:
            OSSandboxError: There is no place for it, or another command has it for too long.
        """
        if self.confinement.state is None:
            raise OSSandboxError('there is no state folder, because there is no home directory')
        until = time.monotonic() + self.timeout_s
        while True:
            try:
                return Journal.of(self.confinement.state, written)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OSSandboxError('another command still writes here', path=written) from None
            except OSError as error:
                raise OSSandboxError(f'the journal of the sweep cannot be opened: {error}') from error
            await asyncio.sleep(LOOK_AGAIN_S)

    def _prepared(
        self,
        journals: list[Journal],
        command: list[str],
        profile: OSProfile,
        repository: Repository | None,
        explanation: Explanation,
    ) -> tuple[list[str], OSProfile]:
        """Note what is there, and return the program and its access.

        Raises:
            OSSandboxError: The program cannot be confined, or the journal cannot be written. It has not run.
        """
        written = [path for path in self.confinement.roots if profile.access(path) is Access.WRITE]
        texts = [part.text for part in explanation.parts]
        profile, missing = without_missing(profile)
        common = None if repository is None else repository.common
        variables: list[tuple[str, str]] = []
        try:
            for journal in journals:
                journal.finish(self.tree)
            before = take(
                written,
                common,
                tree=self.tree,
                absent=missing,
                closed=profile.protected,
                makes=any(map(MAKES.search, texts)),
                limit_s=self.timeout_s,
            )
            journals[0].write(before)
            hold(before)
            if repository is not None:
                variables, ignored = user_settings(repository)
                if (
                    ignored is not None
                    and profile.access(ignored) is Access.NONE
                    and not covers(profile.hidden, ignored)
                ):
                    profile = replace(profile, roots=(*profile.roots, Root(path=ignored, access=Access.READ)))
        except (OSError, subprocess.SubprocessError) as error:
            raise OSSandboxError(f'the sweep cannot be prepared: {error}') from error
        # A mount cannot be removed. Attack: an environment has a program `rm` (test_git_access.py).
        removed = [] if self.confinement.programs_written(_REMOVES) else _removed(explanation.command, self.cwd)
        nested = [
            path
            for path in guards(path for path in before.repositories if path != common)
            if os.path.lexists(path) and not covers(removed, path)
        ]
        profile = replace(
            profile,
            protected=(*profile.protected, *nested[:_MOST_GUARDS]),
            copies=tuple(each for each in profile.copies if not covers(removed, each[0])),
        )
        if repository is not None:
            profile = opened(profile, repository, packs=any(map(PACKS.search, texts)))
        pairs = [
            f'GIT_CONFIG_{what}_{i}={value}'
            for i, pair in enumerate(variables)
            for what, value in zip(_PAIR, pair, strict=True)
        ]
        named = [ENV, f'GIT_CONFIG_COUNT={len(variables)}', *pairs] if variables else []
        return [*named, *command], profile


def _removed(command: str, cwd: str) -> list[str]:
    """Return the paths that a line removes, if it is one `rm -r` or `git worktree remove` of fixed words, and no more.

    Attack: `rm -r x --no-such-option; printf ... >> x/.git/config` removes nothing, and writes what the host's git runs
    until the sweep (test_git_access.py).
    """
    words = simple_words(command) or ()
    if words[:3] == _REMOVE_TREE:
        words = words[2:]
    elif words[:1] != ('rm',) or not any(_RECURSIVE.fullmatch(word) for word in words):
        return []
    return [os.path.normpath(os.path.join(cwd, word)) for word in words[1:] if not word.startswith('-')]


def _finished(journal: Journal, tree: Tree) -> tuple[str, ...]:
    """Sweep after a command, and return lines about it."""
    try:
        return journal.finish(tree)
    except OSError as error:
        _log.exception('The sweep after a command failed')
        return (_UNSWEPT.format(printable(str(error), 300)),)


async def to_its_end(function: Callable[[], T]) -> T:
    """Run a blocking function in a thread, and wait until it ends, even if this task is cancelled."""
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        task.exception()  # retrieved, so that asyncio does not report it as never retrieved
        raise
