"""A repository in a house, and commands that run on a layer of it, as the house's user."""

import multiprocessing
import os
import subprocess
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tool_approval.os_sandbox import OSProfile
from tool_approval.os_sandbox.access import ExtraAccess
from tool_approval.os_sandbox.layer import open_layer

from .house import LIMIT_S, House, identity

GIT = Path('/usr/bin/git')


def as_user(house: House, work: Callable):
    """What `work` returns, run by the house's user."""
    if not identity(house.user):
        return work()
    ours, theirs = multiprocessing.Pipe()

    def run() -> None:
        os.setgroups([])
        os.setgid(identity(house.user)['group'])
        os.setuid(identity(house.user)['user'])
        theirs.send(work())

    process = multiprocessing.get_context('fork').Process(target=run)
    with warnings.catch_warnings():
        # Newer Pythons warn of threads that other tests, or the runner, have; the child uses none of their locks.
        warnings.simplefilter('ignore', DeprecationWarning)
        process.start()
    theirs.close()
    try:
        return ours.recv()
    finally:
        process.join(LIMIT_S)


def run_on_layer(
    house: House,
    command: list[str],
    extra: ExtraAccess,
    profile: OSProfile,
    *,
    meanwhile: Callable[[], object],
    keep: bool,
) -> tuple[int, str, tuple[str, ...]]:
    """The status and output of a command that the user runs on a layer, and what `keep` says."""

    def work():
        with open_layer(extra, profile, house.backend) as layer:
            done = subprocess.run(
                layer.wrap(command, str(house.work)),
                cwd=house.work,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
            )
            meanwhile()
            return done.returncode, done.stdout, layer.keep(threading.Event()) if keep else layer.problems

    return as_user(house, work)


class Repository:
    """`house.work` with two commits, a home with the user's name, and a bare repository in `house.lib`."""

    def __init__(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        if not GIT.is_file():
            pytest.skip('git is not installed below /usr')
        self.house = house
        self.path = house.work / '.git'
        home = house.path / 'home'
        home.mkdir()
        (home / '.gitconfig').write_text(
            '[user]\n\tname = Ann \\"A\\" \\\\ Other\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n'
        )
        monkeypatch.setenv('HOME', str(home))
        for name in ('XDG_CONFIG_HOME', 'GIT_CONFIG_GLOBAL'):
            monkeypatch.delenv(name, raising=False)
        house.own()
        self.git('init', '-q')
        for text in ('one', 'two'):
            (house.work / 'file.txt').write_text(f'{text}\n')
            self.git('add', '-A')
            self.git('commit', '-qm', text)
        self.git('clone', '-q', '--bare', str(house.work), str(house.lib / 'bare'))

    @property
    def profile(self) -> OSProfile:
        return self.house.profile(protected=(str(self.path),))

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        """What git prints on the host, run by the user."""
        return self._host([str(GIT), *arguments], folder)

    def shell(self, script: str) -> None:
        """Run a script on the host, as the user."""
        self._host(['/bin/sh', '-c', script])

    def _host(self, command: list[str], folder: Path | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=folder or self.house.work,
            env={'HOME': os.environ['HOME'], 'PATH': '/usr/bin:/bin', 'GIT_CONFIG_NOSYSTEM': '1'},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            **identity(self.house.user),
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def run(
        self,
        script: str,
        *arguments: object,
        meanwhile: Callable[[], object] = lambda: None,
        keep: bool = True,
        profile: OSProfile | None = None,
        trees: tuple[Path, ...] | None = None,
    ) -> tuple[int, str, tuple[str, ...]]:
        """The status and output of a script that runs on a layer, and what `keep` says."""
        extra = ExtraAccess(git=tuple(str(tree) for tree in trees or (self.house.work,)))
        command = ['/bin/bash', '-c', script, 'script', *map(str, arguments)]
        return run_on_layer(self.house, command, extra, profile or self.profile, meanwhile=meanwhile, keep=keep)

    def files(self, *below: str) -> dict[str, object]:
        """What is in `.git`, or in some folders of it: content by name."""
        found = {}
        for path in self.path.rglob('*'):
            name = str(path.relative_to(self.path))
            if not below or name.split('/')[0] in below:
                is_file = path.is_file() and not path.is_symlink()
                found[name] = path.read_bytes() if is_file else path.is_symlink() and os.readlink(path)
        return found
