"""A repository, and commands that an approver lets run in it with access to `.git`, as root or as an ordinary user."""

import asyncio
import multiprocessing
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tool_approval.os_sandbox import BubblewrapBackend
from tool_approval.settings import RUN_SHELL, open_workspace, parse_settings

from tests.approval.os_sandbox.house import NOBODY, identity
from tool_approval import ApprovalController, ApprovalRefused, execute_tool

GIT = '/usr/bin/git'
LIMIT_S = 60
CONFIG = """\
[user]
    name = Ann
    email = ann@example.org
[init]
    defaultBranch = main
[protocol "file"]
    allow = always
"""
EVIL = '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {}; false\\n'
"""A configuration with which `git status` makes a file, for `printf`."""


class Yard:
    """`work` is a repository with three commits. `pwned` exists if something has run on the host."""

    def __init__(self, folder: Path, *, user: str) -> None:
        _load_all()
        self.user, self.path = user, folder
        self.path.chmod(0o755)
        self.work, self.home, self.state = (folder / name for name in ('work', 'home', 'state'))
        self.pwned = folder / 'pwned'
        for each in (self.work, self.home, self.state):
            each.mkdir(mode=0o700)
        (self.home / '.gitconfig').write_text(CONFIG)
        self.own()
        self.new(self.work)

    @property
    def git_folder(self) -> Path:
        return self.work / '.git'

    @property
    def evil(self) -> str:
        return EVIL.format(self.pwned)

    def own(self) -> None:
        if identity(self.user):
            for folder, folders, files in os.walk(self.path):
                for name in ('.', *folders, *files):
                    os.lchown(os.path.join(folder, name), NOBODY, NOBODY)

    def new(self, folder: Path) -> None:
        """Make a repository with three commits on the host."""
        folder.mkdir(exist_ok=True)
        self.own()
        self.host(
            'git init -q; for i in 1 2 3; do echo $i > f; echo $i > g$i; git add -A; git commit -qm c$i; done', folder
        )

    def host(self, script: str, folder: Path | None = None, *, fails: bool = False) -> str:
        """What the user's shell prints."""
        done = subprocess.run(
            ['/bin/bash', '-c', script],
            cwd=folder or self.work,
            env={'HOME': str(self.home), 'PATH': '/usr/bin:/bin', 'GIT_EDITOR': 'true', 'PWNED': str(self.pwned)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
            **identity(self.user),
        )
        assert fails or done.returncode == 0, (script, done.stdout)
        return done.stdout.strip()

    def run(self, script: str, folder: Path | None = None, **options: object) -> str:
        """What the model gets of a command that was approved with access to `.git`."""
        return self.start(script, folder, **options)()

    def start(
        self,
        script: str,
        folder: Path | None = None,
        *,
        access: tuple[str, ...] = ('git',),
        settings: str = '',
        timeout_s: float = LIMIT_S,
        cancel: Path | None = None,
    ) -> Callable[[], str]:
        """Begin such a command in another process. Return a function that waits for its result."""
        ours, theirs = multiprocessing.Pipe()

        def work() -> None:
            user = identity(self.user)
            if user:
                os.setgroups([])
                os.setgid(user['group'])
                os.setuid(user['user'])
            os.environ.update(HOME=str(self.home), XDG_STATE_HOME=str(self.state), XDG_CACHE_HOME=str(self.home / 'c'))
            os.environ['XDG_CONFIG_HOME'] = str(self.home / '.config')
            try:
                theirs.send(asyncio.run(_call(script, folder or self.work, access, settings, timeout_s, cancel)))
            except BaseException as error:
                theirs.send(f'{type(error).__name__}: {error}')

        process = multiprocessing.get_context('fork').Process(target=work)
        with warnings.catch_warnings():
            # Newer Pythons warn of threads that other tests, or the runner, have; the child uses none of their locks.
            warnings.simplefilter('ignore', DeprecationWarning)
            process.start()
        self.process = process
        theirs.close()

        def result() -> str:
            try:
                return ours.recv()
            finally:
                process.join(LIMIT_S)

        return result

    def use(self) -> None:
        """Use git on the host, as users and their prompts do."""
        commands = (
            'git status', 'for each in $(find . -name .git -prune -o -type d -print); do (cd $each; git status); done',
            'git diff', 'git log -1 --stat', 'git commit --allow-empty -m host', 'git checkout .', 'git fetch --all',
            'git rebase --continue', 'git cherry-pick --continue', 'git submodule status', 'git stash', 'git gc',
            'git worktree list', 'git branch -a', 'git reset --hard',
            '. /usr/lib/git-core/git-sh-prompt; __git_ps1 a b; echo "${PS1@P}"',
        )  # fmt: skip
        for command in commands:
            self.host(f'timeout 10 bash -c {_quoted(command)}', fails=True)


@cache
def _load_all() -> None:
    """Import what a call needs: the ordinary user may not be able to read these files."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ('HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'):
            patch.setenv(name, folder)
        asyncio.run(_call('git log; false', Path(folder), (), '', LIMIT_S, None))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


async def _call(script, folder, access, settings, timeout_s, cancel) -> str:
    text = f'sandbox:\n  paths:\n    project: {{root: ., mode: rw}}\n{settings}shell: {{timeout_s: {timeout_s}}}\n'
    workspace = open_workspace(parse_settings(text), folder, backend=BubblewrapBackend())
    arguments = {'command': script, **({'access': list(access)} if access else {})}
    try:
        call = asyncio.ensure_future(
            execute_tool(workspace.shell, RUN_SHELL, arguments, ApprovalController('approve_all'))
        )
        while cancel is not None and not cancel.exists():
            await asyncio.sleep(0.02)
        if cancel is not None:
            call.cancel()
        said = await call
    except ApprovalRefused as error:
        said = str(error)
    except asyncio.CancelledError:
        said = 'cancelled'
    return '\n'.join([*(f'note: {note}' for note in workspace.notes), said])
