"""After a command, move away what it has left for git, or for a shell prompt, to run on the host later.

Before the command starts, a journal notes what is there. If this process dies, the next one finishes the sweep.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tool_approval.core.errors import printable
from tool_approval.storage.private_file import make_private_folder

from .git_forms import (
    HEAD,
    MODULE,
    bad_steps,
    folded,
    git_folders,
    gitlinks,
    inside,
    is_git_name,
    modules,
    odd,
    read,
    refs,
    repositories,
    repository_problem,
    text,
)
from .git_mounts import HOLDER, LINKED, guards
from .profile import covers

MAKES: Final = re.compile(r'\bgit\b.*\s(?:clone|init|worktree|submodule)\b', re.DOTALL)
"""Commands that may make a repository."""
PACKS: Final = re.compile(r'\bgit\b.*\s(?:gc|repack|prune-packed|maintenance|multi-pack-index)\b', re.DOTALL)
"""Commands that may change existing packs."""
_UNFINISHED: Final = ('MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'BISECT_LOG', 'rebase-merge', 'rebase-apply')
_STEPS: Final = ('rebase-merge/git-rebase-todo', 'rebase-apply/git-rebase-todo', 'sequencer/todo')
_RUN_LATER: Final = re.compile(
    r'\.envrc|\.pre-commit-config\.yaml|\.npmrc|\.mise\.toml|\.gitmodules|(?:GNU)?[Mm]akefile|justfile|package\.json'
    r'|conftest\.py|setup\.py|noxfile\.py|sitecustomize\.py|build\.rs|build\.gradle'
)
"""Names of files that programs on the host run, or take programs from."""
_RUN_LATER_IN: Final = frozenset({'.vscode', '.idea', '.devcontainer', '.husky', '.bin', 'workflows'})
"""The same for all files in a folder of this name."""
_TICK_NS: Final = 20_000_000
"""How much earlier than the clock a change can seem to be: the kernel's clock for files has ticks of up to 10 ms."""
_MOST_NAMED: Final = 20


@dataclass(kw_only=True)
class Before:
    """The state of the workspace before a command. A journal holds it as JSON."""

    roots: list[str]
    """Folders that the command can write to."""
    absent: list[str]
    """Guarded paths that do not exist."""
    makes: bool
    """Whether the command may make repositories."""
    opened: bool
    """Whether the command was given access to a repository."""
    began_ns: int
    """Time of the start, in nanoseconds since 1970."""
    known: list[str] = field(default_factory=list[str])
    """Every `.git`, and every bare repository, in the roots."""
    repositories: list[str] = field(default_factory=list[str])
    """Those that the command can write to. The one that it was given access to is the first."""
    guarded: dict[str, list[int | str | None]] = field(default_factory=dict[str, 'list[int | str | None]'])
    """Device, inode and content of each path that no command may change; an empty list for a missing path."""
    heads: dict[str, str] = field(default_factory=dict[str, str])
    """Content of `HEAD`, by repository folder."""
    odd: list[str] = field(default_factory=list[str])
    """Paths in the repositories that would be moved away if they were new."""
    steps: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The steps of unfinished operations that would be removed if they were new, by path."""
    gitlinks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Submodules in the index, by repository folder."""
    holders: list[str] = field(default_factory=list[str])
    """Files that are made to hold a name while the command runs."""
    refs: dict[str, str] = field(default_factory=dict[str, str])
    """Branches, tags and the stash of the repository that the command was given access to."""


def take(
    roots: Iterable[str], common: str | None, *, absent: Iterable[str], closed: Collection[str], makes: bool
) -> Before:
    """Note what is there.

    Args:
        roots: Folders that the command can write to.
        common: The repository that the command is given access to, if any.
        absent: Guarded paths that do not exist.
        closed: Paths that the command cannot write to.
        makes: Whether the command may make repositories.

    Raises:
        OSError: A repository cannot be read.
    """
    now = time.time_ns() - _TICK_NS
    before = Before(roots=sorted(roots), absent=[*absent], makes=makes, opened=common is not None, began_ns=now)
    before.known = [*repositories(before.roots)]
    nested = [path for path in before.known if path != common and not covers(closed, path)]
    before.repositories = nested if common is None else [common, *nested]
    if common is not None:
        before.refs = refs(common)
        before.holders = [
            path for each in (common, *modules(common)) if not os.path.lexists(path := f'{each}/commondir')
        ]
    for each in before.repositories:
        folders = (each, *modules(each))
        linked = (f'{tree}/{name}' for folder in folders for tree in inside(f'{folder}/worktrees') for name in LINKED)
        before.guarded |= {path: _look(path) for path in (*guards(folders), *linked)}
        before.odd += [path for path, _ in odd(each)]
        for git in git_folders(each):
            before.heads[git] = text(f'{git}/HEAD')
            before.steps |= {f'{git}/{name}': bad_steps(f'{git}/{name}') for name in _STEPS}
            with suppress(ValueError):
                before.gitlinks[git] = sorted(gitlinks(git))
    return before


def hold(before: Before) -> None:
    """Hold the name `commondir`, and make `hooks` where it is missing, so that no command can make them.

    Raises:
        OSError: A name cannot be held.
    """
    for path in before.holders:
        with open(path, 'xb') as file:
            file.write(HOLDER)
        os.makedirs(os.path.join(os.path.dirname(path), 'hooks'), exist_ok=True)


class Journal:
    """The note of a command that is running. Its lock lets only one command at a time write to a repository."""

    def __init__(self, state: str, path: str) -> None:
        """Open and lock the journal.

        Raises:
            OSError: The journal cannot be made or opened.
            BlockingIOError: A command that runs now has the journal.
        """
        self._state = state
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise

    @classmethod
    def of(cls, state: str, written: str) -> Journal:
        """Open the journal of what a command writes to, such as a repository, in the user's state folder."""
        folder = Path(state, 'sweeps')
        make_private_folder(folder)
        return cls(state, f'{folder}/{hashlib.sha256(os.fsencode(written)).hexdigest()[:32]}.json')

    def write(self, before: Before) -> None:
        """Note what was there before a command that starts now."""
        with open(self._file, 'wb', closefd=False) as file:
            file.seek(0)
            file.truncate()
            file.write(json.dumps(asdict(before)).encode())
        os.fsync(self._file)

    def finish(self) -> tuple[str, ...]:
        """Sweep after the command that is noted, if there is one. The command must have ended.

        Returns:
            Lines for the user and the model about what was moved away, and what they should know.

        Raises:
            OSError: Something could not be checked or moved. The note stays, so that it is tried again later.
        """
        noted = os.pread(self._file, os.fstat(self._file).st_size, 0)
        try:
            before = Before(**json.loads(noted)) if noted else None
        except (TypeError, ValueError):
            # The process died while it wrote the journal, so the command did not start.
            before = None
        lines = () if before is None else _Sweep(before, self._state).lines()
        os.truncate(self._file, 0)
        return lines

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._file)


def finish_all(state: str) -> tuple[str, ...]:
    """Sweep after every command whose process died, and return lines about it for the user.

    Raises:
        OSError: A journal cannot be opened, or something could not be moved.
    """
    found: list[str] = []
    for path in inside(os.path.join(state, 'sweeps')):
        with suppress(BlockingIOError):
            journal = Journal(state, path)
            try:
                found += journal.finish()
            finally:
                journal.close()
    return tuple(found)


class _Sweep:
    """The sweep after one command."""

    def __init__(self, before: Before, state: str) -> None:
        self._before = before
        self._state = state
        self._lines: list[str] = []
        self._later: list[str] = []

    def lines(self) -> tuple[str, ...]:
        before = self._before
        for path in before.holders:
            if read(path) == HOLDER:
                os.unlink(path)
        for path, old in before.guarded.items():
            self._restore(path, old)
        for folder in {os.path.dirname(path) for path in before.absent}:
            names = {folded(os.path.basename(path)) for path in before.absent if os.path.dirname(path) == folder}
            for path in inside(folder):
                is_new = path in before.absent or os.lstat(path).st_ctime_ns >= before.began_ns
                if folded(os.path.basename(path)) in names and is_new:
                    self._aside(path, 'no command may make it')
        for path in list(repositories(before.roots, self._note_later)):
            if path not in before.known:
                self._new(path)
        for each in filter(os.path.isdir, before.repositories):
            self._repository(each)
        if before.opened:
            self._gone(before.repositories[0])
        self._say('files that run later outside of the sandbox have changed', self._later)
        return tuple(self._lines)

    def _restore(self, path: str, old: list[int | str | None]) -> None:
        now = _look(path)
        if now == old or not os.path.isdir(os.path.dirname(path)):
            return
        if now:
            self._aside(path, 'it was made or replaced while the command ran')
        if old and isinstance(content := old[2], str):
            with open(path, 'xb') as file:
                file.write(content.encode('latin-1'))

    def _new(self, path: str) -> None:
        """Judge a repository that was not there before."""
        before = self._before
        problem = None if before.makes else 'no command was to make a repository'
        if problem is None and not os.path.isdir(path):
            led = os.path.realpath(os.path.join(os.path.dirname(path), text(path).strip().removeprefix('gitdir: ')))
            around = (f'{each}/{name}/' for each in before.known for name in ('worktrees', 'modules'))
            problem = None if led.startswith(tuple(around)) else 'it leads git elsewhere'
        elif problem is None:
            problem = repository_problem(path)
        if problem is None:
            self._lines.append(f'new repository: {printable(path, 300)}')
        elif is_git_name(os.path.basename(path)):
            self._aside(path, f'a new repository, {problem}')
        else:
            # Other files may have been here before, and without `HEAD` git takes none of them for a repository.
            self._aside(f'{path}/HEAD', f'a new repository, {problem}')

    def _repository(self, common: str) -> None:
        before = self._before
        for path, why in list(odd(common)):
            is_module = why == MODULE
            if path in before.odd:
                continue
            problem = repository_problem(path) if is_module and before.makes else why
            if problem is not None and os.path.lexists(path):
                self._aside(path, problem)
        for git in git_folders(common):
            head = before.heads.get(git, '')
            if not os.path.lexists(f'{git}/HEAD') and HEAD.fullmatch(head) is not None:
                with open(f'{git}/HEAD', 'x') as file:
                    file.write(head)
            for path in (f'{git}/{name}' for name in _STEPS):
                bad = [line for line in bad_steps(path) if line not in before.steps.get(path, ())]
                if bad:
                    self._aside(path, f'git would run, or does not write, the step {bad[0]!r}')
            self._index(git)
            left = [name for name in _UNFINISHED if os.path.lexists(f'{git}/{name}')]
            if before.opened and left:
                self._say(f'a git operation is unfinished in {printable(git, 300)}', left)

    def _index(self, git: str) -> None:
        before = self._before
        try:
            new = gitlinks(git) - frozenset(before.gitlinks.get(git, ()))
        except ValueError as error:
            if git in before.gitlinks:
                self._aside(f'{git}/index', f'it has {error}; `git reset` makes a new one')
            return
        for name in sorted(new):
            control = os.path.join(os.path.dirname(git), name, '.git')
            # A new repository has been judged above. This one was there, and git did not look into it.
            if control in before.known and os.path.isdir(control) and repository_problem(control) is not None:
                self._aside(f'{git}/index', f'it makes git look into {name!r}; `git reset` makes a new one')
                return
        self._say('new submodules in the index', sorted(new))

    def _gone(self, common: str) -> None:
        after = refs(common)
        gone = [f'{name} (was {value})' for name, value in sorted(self._before.refs.items()) if name not in after]
        self._say(f'removed from {printable(common, 300)}', gone)

    def _note_later(self, entry: os.DirEntry[str]) -> None:
        folder = os.path.basename(os.path.dirname(entry.path))
        if _RUN_LATER.fullmatch(entry.name) is not None or folder in _RUN_LATER_IN:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_ctime_ns >= self._before.began_ns:
                    self._later.append(entry.path)

    def _say(self, what: str, names: list[str]) -> None:
        if names:
            more = f' and {len(names) - _MOST_NAMED} more' if len(names) > _MOST_NAMED else ''
            self._lines.append(f'{what}: {", ".join(printable(name, 300) for name in names[:_MOST_NAMED])}{more}')

    def _aside(self, path: str, why: str) -> None:
        """Move a path to the user's state folder; if that is on another file system, rename it where it is."""
        for folder in (os.path.dirname(path), *([path] if os.path.isdir(path) and not os.path.islink(path) else [])):
            # The command may have taken away the permissions that a move needs.
            if not os.access(folder, os.W_OK | os.X_OK):
                os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | stat.S_IRWXU)
        token = secrets.token_hex(4)
        name = os.path.basename(path).lstrip('.')
        try:
            make_private_folder(place := Path(self._state, 'set-aside'))
            os.rename(path, target := f'{place}/{token}-{name}')
        except OSError:
            os.rename(path, target := f'{os.path.dirname(path)}/{name}.set-aside-{token}')
        if os.path.lexists(f'{target}/HEAD'):
            # Without this file, git does not take the folder for a repository, wherever it is.
            os.rename(f'{target}/HEAD', f'{target}/HEAD.set-aside')
        self._lines.append(f'moved {printable(path, 300)} to {printable(target, 300)}: {printable(why, 300)}')


def _look(path: str) -> list[int | str | None]:
    try:
        status = os.lstat(path)
    except OSError:
        return []
    content = read(path)
    return [status.st_dev, status.st_ino, None if content is None else content.decode('latin-1')]
