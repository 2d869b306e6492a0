"""Find a program that runs outside of the sandbox as the user, and that no command can have written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .git_forms import read
from .profile import OSSandboxError, covers, trail

_CODE: Final = re.compile(
    r'(?:GIT|LD|DYLD|BASH|CONDA|LUA|MALLOC|GLIBC|GCONV|TOOL_APPROVAL|DIRENV|NPM_CONFIG|npm_config)(?:_.*)?'
    r'|(?:PYTHON|PERL|RUBY)[A-Z0-9].*|PERL_.*|NODE_(?:OPTIONS|PATH|REPL_.*)'
    r'|(?:_?JAVA_TOOL|_?JAVA|JDK_JAVA)_OPTIONS|CLASSPATH|ENV|IFS|CDPATH|SHELLOPTS|PS4|PROMPT_COMMAND|VIRTUAL_ENV'
    r'|LOCPATH|NLSPATH|HOSTALIASES|(?:[A-Z]+_)?(?:EDITOR|PAGER|BROWSER)|VISUAL|PWD|OLDPWD|PATH'
)
"""Environment variables that decide which code programs run, or for which folder they were set."""
ASKS_FOR_PASSWORDS: Final = ('GIT_ASKPASS', 'SSH_ASKPASS')
"""Variables that name the user's programs that git and ssh get passwords from."""
_CONNECTS: Final = ('GIT_SSH', 'GIT_SSH_COMMAND', 'GIT_SSH_VARIANT')
_MOST_FILES: Final = 10_000
"""Maximum number of files in a program's configuration."""
_SPLITS: Final = re.compile(r'[\s!"\'`$(){};&|<>=]+')


@dataclass(frozen=True, kw_only=True)
class HostPlace:
    """Where a program runs outside of the sandbox, and what commands in the sandbox can write."""

    cwd: str
    """Working directory."""
    written: tuple[str, ...]
    """Folders and files to which the file tools or a command with any access can write."""
    environment: Mapping[str, str]
    """The user's environment."""

    def is_written(self, path: str) -> bool:
        """Whether something on the way to a path, such as a link, or the path itself can be written.

        Attack: a folder of `PATH` is a link, and a part of its way is in the workspace (`test_host.py`).
        """
        try:
            steps, end = trail(os.path.join(self.cwd, path))
        except OSSandboxError:
            return True
        return any(covers(self.written, each) for each in (*(step.path for step in steps), end))

    def search_path(self) -> tuple[str, ...]:
        """Return the folders of `PATH` that exist and to which only the user can write, without links."""
        folders = [each for each in self.environment.get('PATH', '').split(':') if each.startswith('/')]
        kept = [os.path.realpath(each) for each in folders if os.path.isdir(each) and not self.is_written(each)]
        return tuple(dict.fromkeys(kept))

    def program(self, name: str) -> str:
        """Return the path of a program.

        Raises:
            PermissionError: There is no such program, or a command could have written it.
        """
        for folder in self.search_path():
            path = f'{folder}/{name}'
            if os.path.isfile(path) and os.access(path, os.X_OK):
                if self.is_written(path) or any(map(self.is_written, _interpreter(path))):
                    raise PermissionError(f'{path} leads to a place to which commands can write, so it cannot run.')
                return path
        raise PermissionError(f'{name!r} is in no folder of PATH to which no command can write. Tell the user.')

    def variables(self) -> dict[str, str]:
        """Return the user's environment, without variables that decide which code runs, or name what commands write.

        Raises:
            PermissionError: Commands can write to the user's home, so no program can run there as the user.
        """
        given = self.environment
        if 'HOME' not in given or self.is_written(given['HOME']):
            raise PermissionError('Commands can write to the home directory, so no program can run outside of them.')
        kept = {
            name: value
            for name, value in given.items()
            if (_CODE.fullmatch(name) is None or name in (*_CONNECTS, *ASKS_FOR_PASSWORDS))
            and not any(self._leads_to_written(part) for part in value.split(':'))
        }
        return {**kept, 'PATH': ':'.join(self.search_path())}

    def check_configuration(self, name: str) -> None:
        """Refuse a program if commands can write to its configuration in the user's home.

        Attack: the workspace has the user's dotfiles, and `~/.ssh/config` is a link to one of them; the agent adds a
        `ProxyCommand` (`test_host.py`).

        Raises:
            PermissionError: Commands can write to the configuration.
        """
        home = self.environment.get('HOME', '')
        places = [f'{home}/.{name}', f'{home}/.config/{name}']
        given = self.environment.get('XDG_CONFIG_HOME', '')
        if given.startswith('/') and not self._leads_to_written(given):  # otherwise, no program gets the variable
            places.append(f'{given}/{name}')
        for place in places:
            # In a folder to which no command can write, only a link leads to what one can write.
            for path in (place, *_links(place), *_included(f'{home}/.ssh/config' if name == 'ssh' else '')):
                if self.is_written(path):
                    raise PermissionError(f'{path} is where commands can write, so {name!r} cannot run as the user.')

    def _leads_to_written(self, value: str) -> bool:
        path = os.path.expanduser(value)
        # Attack: `DOCKER_CONFIG=conf`, where the agent writes `conf/config.json` (`test_host.py`).
        is_path = path.startswith(('/', './', '../')) or bool(value and os.path.exists(os.path.join(self.cwd, path)))
        return is_path and self.is_written(path)

    def named_paths(self, command: str) -> Iterator[str]:
        """Yield the paths in a command of the user's configuration that commands can write, or that are relative."""
        for word in _SPLITS.split(command):
            path = os.path.expanduser(word)
            if '/' not in path:
                found = (
                    f'{folder}/{each}' for folder in self.search_path() for each in (path, f'git-credential-{path}')
                )
                if any(os.path.lexists(each) and self.is_written(each) for each in found):
                    yield word
            elif not re.match(r'[a-z][a-z0-9+.-]*://', path) and self.is_written(path):
                yield word


def _interpreter(path: str) -> list[str]:
    """Return the paths in the first line of a script."""
    with open(path, 'rb') as program:
        line = program.readline(1000)
    return [word for word in os.fsdecode(line[2:]).split() if '/' in word] if line.startswith(b'#!') else []


def _links(folder: str) -> Iterator[str]:
    """Yield the links in a folder, at any depth.

    Raises:
        PermissionError: There are too many files to look at.
    """
    count = 0
    for parent, folders, names in os.walk(folder):
        count += len(names)
        if count > _MOST_FILES:
            raise PermissionError(f'{folder} has too many files to be looked at.')
        yield from (path for name in (*folders, *names) if os.path.islink(path := f'{parent}/{name}'))


def _included(config: str) -> Iterator[str]:
    """Yield the paths that a configuration of ssh includes, up to the first wildcard; ssh_config(5)."""
    text = read(config) if config else None
    for line in re.findall(rb'(?im)^[ \t]*include[ \t=]+(.+)$', text or b''):
        for word in os.fsdecode(line).replace('"', ' ').split():
            path = os.path.join(os.path.dirname(config), os.path.expanduser(word))
            yield re.split(r'[*?\[]', path)[0].rstrip('/')


def identity_of(path: str) -> str:
    """Return a text that changes if a file is replaced or written."""
    found = os.stat(path)
    return f'{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}'


Run = Callable[[list[str]], tuple[int, bytes]]
"""Function that runs git with these arguments, and returns its exit status and its output."""
