"""After a command, move away what it has left for git, or for a shell prompt, to run on the host later.

Only what was made during the command, in a folder to which it could write, is moved.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tool_approval.core.errors import printable
from tool_approval.storage.private_file import make_private_folder

from .before import Before, locks_of, look, repositories, submodules_of
from .git_forms import (
    HEAD,
    findings,
    folded,
    git_folders,
    has_only_samples,
    inside,
    is_git_name,
    is_repository,
    read,
    refs,
    repository_problem,
    text,
    unsafe_line,
)
from .git_mounts import HOLDER
from .profile import covers
from .tree import Tree

_UNFINISHED: Final = ('MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'BISECT_LOG', 'rebase-merge', 'rebase-apply')
_MOST_NAMED: Final = 20


def sweep(before: Before, state: str, tree: Tree, *, is_late: bool) -> tuple[str, ...]:
    """Sweep after a command that has ended.

    Args:
        before: The state of the workspace before the command.
        state: The user's state folder.
        tree: The search of the roots.
        is_late: Whether it is not known when the command ended, because the process that ran it died.

    Returns:
        Lines for the user and the model about what was moved away, and what they should know.

    Raises:
        OSError: Something could not be checked or moved.
    """
    return _Sweep(before, state, is_late=is_late).lines(tree)


class _Sweep:
    """The sweep after one command."""

    def __init__(self, before: Before, state: str, *, is_late: bool) -> None:
        self._before = before
        self._state = state
        self._is_late = is_late
        self._lines: list[str] = []

    def lines(self, tree: Tree) -> tuple[str, ...]:
        before = self._before
        for path in before.holders:
            if read(path) == HOLDER:
                os.unlink(path)
        for path, old in before.guarded.items():
            self._restore(path, old)
        found = tree.look(before.roots)
        new = dict.fromkeys(path for path in repositories(before, found.repositories) if path not in before.known)
        for path in self._appeared():
            if is_git_name(os.path.basename(path)):
                new[path] = None
            else:
                self._aside(path, 'no command may make it')
        for path in filter(os.path.isdir, new):
            self._new(path)
        for each in filter(os.path.isdir, before.repositories):
            self._repository(each)
        # The repositories to which these lead have been judged.
        for path in new:
            if os.path.lexists(path) and not os.path.isdir(path):
                self._new(path)
        if before.opened is not None:
            self._opened(before.opened)
        self._say('files that run later outside of the sandbox have changed', self._changed(found.run_later))
        self._say('these folders could not be searched for repositories', self._changed(found.closed))
        return tuple(self._lines)

    def _appeared(self) -> list[str]:
        """Return the guarded paths that did not exist before, and other spellings of them that were made meanwhile."""
        before = self._before
        folders = {os.path.dirname(path) for path in before.absent}
        guarded = {(os.path.dirname(path), folded(os.path.basename(path))) for path in before.absent}
        there = [path for folder in folders for path in inside(folder)]
        same = [path for path in there if (os.path.dirname(path), folded(os.path.basename(path))) in guarded]
        return [path for path in same if path in before.absent or self._changed([path])]

    def _changed(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that have changed since the command began."""
        found: list[str] = []
        for path in paths:
            with suppress(OSError):
                if os.lstat(path).st_ctime_ns >= self._before.began_ns:
                    found.append(path)
        return found

    def _is_later(self, path: str) -> bool:
        """Whether something was made after the command, of whose end only the latest time is known.

        The user may have made it before the next start.
        """
        if not self._is_late:
            return False
        parts = (path, *(() if os.path.islink(path) else inside(path)))
        return min(os.lstat(each).st_ctime_ns for each in parts) > self._before.ends_ns

    def _restore(self, path: str, old: list[int | str | None]) -> None:
        now = look(path)
        if now == old or not os.path.isdir(os.path.dirname(path)):
            return
        content = old[2] if old else ''
        if now and self._is_harmless(path, now, content):
            return
        if now:
            self._aside(path, 'it was made or replaced while the command ran')
        if old and isinstance(content, str) and not os.path.lexists(path):
            with open(path, 'xb') as file:
                file.write(content.encode('latin-1'))

    def _is_harmless(self, path: str, now: list[int | str | None], content: int | str | None) -> bool:
        """Whether the change of a guarded path is one that git itself makes, such as `git remote add` on the host."""
        name = os.path.basename(path)
        if name in ('config', 'config.worktree') and isinstance(new := now[2], str) and isinstance(content, str):
            return unsafe_line(new, content) is None
        return name == 'hooks' and os.path.isdir(path) and has_only_samples(path)

    def _new(self, path: str) -> None:
        """Judge a repository that was not there before."""
        before = self._before
        if os.path.isdir(path):
            problem = repository_problem(path, is_asked_for=before.makes)
            problem = problem or next((f'{os.path.basename(each)}: {why}' for each, why in findings(path)), None)
        else:
            led = os.path.realpath(os.path.join(os.path.dirname(path), text(path).strip().removeprefix('gitdir: ')))
            around = tuple(f'{each}/{name}/' for each in before.known for name in ('worktrees', 'modules'))
            is_ours = before.makes and led.startswith(around) and is_repository(led)
            problem = None if is_ours else 'it leads git elsewhere'
        if problem is None:
            self._lines.append(f'new repository: {printable(path, 300)}')
        elif is_git_name(os.path.basename(path)) or '/.git/modules/' in path:
            self._aside(path, f'a new repository, {problem}')
        else:
            # Other files may have been here before, and without `HEAD` git takes none of them for a repository.
            self._aside(f'{path}/HEAD', f'a new repository, {problem}')

    def _repository(self, common: str) -> None:
        before = self._before
        for path, why in list(findings(common)):
            if [path, why] not in before.findings and os.path.lexists(path):
                self._aside(path, why)
        for git in git_folders(common):
            head = before.heads.get(git, '')
            if not os.path.lexists(f'{git}/HEAD') and re.fullmatch(HEAD, head) is not None:
                with open(f'{git}/HEAD', 'x') as file:
                    file.write(head)
        locks = [path for path in locks_of(common) if path not in before.locks and not self._is_later(path)]
        if locks and _may_be_used(common):
            self._say('git runs here; if no git does, remove these locks', locks)
        elif locks:
            for path in locks:
                os.unlink(path)
            self._say('removed locks that the command left', locks)

    def _opened(self, common: str) -> None:
        for git in git_folders(common):
            left = [name for name in _UNFINISHED if os.path.lexists(f'{git}/{name}')]
            self._say(f'a git operation is unfinished in {printable(git, 300)}', left)
        after = refs(common)
        gone = [f'{name} (was {value})' for name, value in sorted(self._before.refs.items()) if name not in after]
        self._say(f'removed from {printable(common, 300)}', gone)
        new = [name for name in submodules_of(common) if name not in self._before.submodules]
        self._say('new submodules in the index', new)

    def _say(self, what: str, names: list[str]) -> None:
        if names:
            more = f' and {len(names) - _MOST_NAMED} more' if len(names) > _MOST_NAMED else ''
            self._lines.append(f'{what}: {", ".join(printable(name, 300) for name in names[:_MOST_NAMED])}{more}')

    def _aside(self, path: str, why: str) -> None:
        """Move a path to the user's state folder; if that is on another file system, rename it where it is."""
        if self._is_later(path):
            self._lines.append(f'left {printable(path, 300)}, which was made after the command: {printable(why, 300)}')
            return
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


def _may_be_used(common: str) -> bool:
    """Whether git may be running on the host in a repository or in one of its work trees."""
    trees = [os.path.dirname(text(f'{tree}/gitdir').strip()) for tree in inside(f'{common}/worktrees')]
    trees.append(common.partition('/.git/modules/')[0].removesuffix('/.git'))
    for process in inside('/proc'):
        if text(f'{process}/comm').startswith('git'):
            try:
                is_here = covers(trees, os.readlink(f'{process}/cwd'))
            except OSError:
                # It is another user's, or has just ended.
                is_here = os.path.exists(process)
            if is_here:
                return True
    # Only Linux has this folder. Elsewhere, the command itself may have left a process.
    return not os.path.exists('/proc/self/comm')
