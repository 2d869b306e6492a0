"""Find the user's toolchains, which confined commands can use but not change.

An environment variable or a file may name any folder. Commands can read the folder only if it has the layout of a
toolchain and belongs to root or the user. The folder must not be or contain the home directory, and must not contain a
workspace. For most kinds of toolchains, commands cannot read configuration and credentials.
"""

from __future__ import annotations

import glob
import os
import posixpath
import pwd
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .derive import system_profile
from .profile import covers
from .toolchain_layouts import CONDA, ENVIRONMENT, MANAGERS, ToolchainLayout, environments_in, has_layout, layout_around

_LONGEST_FILE: Final = 65_536
"""Maximum number of bytes to read from a `pyvenv.cfg`. Normally, the file has a few hundred bytes."""
_OTHERS_WRITE: Final = 0o002
CONFIGURED: Final = 'sandbox.toolchains'
"""Value of `Toolchain.kind` for a folder that the settings name. Messages show this value."""
_WIDE: Final = ('.local', '.local/share', '.local/lib', '.config', '.cache')
"""Folders in the home directory that contain toolchains and other files."""


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """A toolchain that was found."""

    kind: str
    """Kind of toolchain, as shown to the user."""
    folder: str
    """Folder of the toolchain, absolute and without symbolic links."""
    opened: tuple[str, ...]
    """Absolute paths, without symbolic links, that become readable for commands. Empty if commands can read the
    toolchain anyway."""


@dataclass(frozen=True, kw_only=True)
class Toolchains:
    """All toolchains that were found at the start."""

    found: tuple[Toolchain, ...] = ()
    """Toolchains, in the order of the search."""
    ignored: tuple[str, ...] = ()
    """Notes for the user. Each note names a folder that is ignored, and gives the reason."""
    environments: tuple[str, ...] = ()
    """Virtual environments in the roots, as absolute real paths. Without extra access, these environments are
    read-only."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables for commands, including `PATH`."""

    @property
    def opened(self) -> tuple[str, ...]:
        """Paths that become readable for commands."""
        return tuple(dict.fromkeys(path for each in self.found for path in each.opened))


_SINGLE: Final = ('uv', 'uvx', 'mise')
"""Programs that consist of a single file, in a folder that also contains unrelated files."""
_NOT_SET: Final = frozenset({'CARGO_HOME'})
"""Environment variables that have a private value in commands instead of the user's value."""
_CHOICES: Final = ('PYENV_VERSION', 'RUSTUP_TOOLCHAIN')
"""Environment variables that select one of the installed versions."""


def find_toolchains(
    *,
    environment: Mapping[str, str],
    directory: str | None = None,
    roots: Iterable[str] = (),
    configured: Iterable[str] = (),
) -> Toolchains:
    """Look for toolchains. Call this once, before an agent runs.

    Args:
        environment: The environment variables of this process, such as `os.environ`.
        directory: The absolute working directory. A toolchain in this directory is ignored unless it is active.
        roots: The absolute roots of the file tools. For a toolchain in a root, only the settings of the root apply.
        configured: Absolute paths of additional folders. Commands can read these folders, whatever the folders contain.
    """
    finder = _Finder(environment, _homes(environment), directory, roots)
    active = list(finder.active())
    for folder in configured:
        finder.configured(folder)
    for layout in MANAGERS:
        finder.manager(layout)
    # After the managers: the base of an environment may be one of their versions.
    for folder in active:
        finder.base(folder)
    finder.search_path()
    return finder.result()


def configured_problem(folder: str, *, roots: Iterable[str] = ()) -> str | None:
    """Return a message for the user if a folder in the setting `sandbox.toolchains` cannot be used, else `None`."""
    finder = _Finder({}, _homes(os.environ), None, roots)
    finder.configured(folder)
    return next(iter(finder.problems), None)


_INSTALLERS: Final = frozenset({'pip', 'pip3', 'uv', 'poetry', 'pdm', 'pipenv', 'hatch', 'flit', 'maturin'})
_PYTHON: Final = re.compile(r'(python|pip)(3(\.\d+)?)?')


def environment_written(
    words: Sequence[str], *, cwd: str, environments: Sequence[str], active: str | None = None
) -> str | None:
    """Return the environment, inside the workspace, into which a command would install packages. The function does not
    check whether the command installs anything.

    Args:
        words: The program and its arguments. Quotes and expansions are not interpreted.
        cwd: The absolute working directory.
        environments: The environments in the workspace, as in `Toolchains.environments`.
        active: The environment that the variable `VIRTUAL_ENV` names, if the variable is set.

    Returns:
        One of `environments`, or `None` if the command uses none of them or if the environment is unclear.
    """
    folder, name = posixpath.split(words[0])
    if not folder and name in ('uv', 'poetry', 'pdm', 'hatch'):
        # These programs use the project's environment, whatever is active.
        own = posixpath.join(cwd, '.venv')
        wanted = own if own in environments else active
    elif not folder and (name in _INSTALLERS or _PYTHON.fullmatch(name)):
        wanted = active
    elif posixpath.basename(folder) == 'bin':
        wanted = posixpath.dirname(posixpath.normpath(posixpath.join(cwd, folder)))
    else:
        wanted = None
    return wanted if wanted in environments else None


def _homes(environment: Mapping[str, str]) -> list[str]:
    """Return the home directories according to `HOME` and to the user account, or `/` if there are none."""
    try:
        account = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # the user of a container may not have an account
        account = '/'
    given = environment.get('HOME', '')
    return [os.path.realpath(each) for each in (given, account) if each.startswith('/')] or ['/']


class _Finder:
    """Collects the toolchains."""

    def __init__(
        self, environment: Mapping[str, str], homes: list[str], directory: str | None, roots: Iterable[str]
    ) -> None:
        self._given = environment
        self._homes = homes
        self._roots = [os.path.realpath(each) for each in roots]
        self._workspace = [*self._roots, *([] if directory is None else [os.path.realpath(directory)])]
        self._readable = list(system_profile().readable)
        self._found: list[Toolchain] = []
        self._ignored: list[str] = []
        self.problems: list[str] = []
        self._environments: list[str] = []
        self._variables: dict[str, str] = {}
        self._first: list[str] = []
        self._last: list[str] = []

    def active(self) -> Iterator[str]:
        """Let commands read the active virtual and conda environments. Yield only the virtual environment."""
        for root in self._roots:
            self._environments += environments_in(root)
        for variable, layout in (('VIRTUAL_ENV', ENVIRONMENT), ('CONDA_PREFIX', CONDA)):
            given = self._given.get(variable)
            folder = None if given is None else self._checked(variable, given, layout, is_active=True)
            if folder is None:
                continue
            if not covers(self._roots, folder):
                self._open(layout, folder)
            else:
                self._found.append(Toolchain(kind=layout.kind, folder=folder, opened=()))
                # A root that is itself an environment is writable if the settings say so.
                self._environments += [folder] * (folder not in self._roots)
            self._variables[variable] = folder
            self._first.append(posixpath.join(folder, 'bin'))
            if layout is ENVIRONMENT:
                yield folder

    def configured(self, folder: str) -> None:
        """Let commands read a folder that the settings name."""
        layout = ToolchainLayout(kind=CONFIGURED, marks=(), parts=('',))
        real = self._checked(CONFIGURED, folder, layout)
        if real is not None:
            self._open(layout, real)
            self._last += [place for place in (real, posixpath.join(real, 'bin')) if _holds_programs(place)]

    def manager(self, layout: ToolchainLayout) -> None:
        """Let commands read a version manager's folder. Its environment variable may replace the default folder."""
        given = self._given.get(layout.variable)
        place = posixpath.join(self._homes[0], layout.place) if given is None else given
        if given is None and not has_layout(layout, os.path.realpath(place)):
            return
        folder = self._checked(layout.variable, place, layout)
        if folder is None:
            return
        self._open(layout, folder)
        if layout.variable not in _NOT_SET:
            self._variables[layout.variable] = folder
        self._last += [newest for bins in layout.bins for newest in _newest(glob.escape(folder), bins)]

    def search_path(self) -> None:
        """Let commands read the toolchains whose programs are in a folder of `PATH`."""
        for place in self._parts():
            real = os.path.realpath(place)
            if covers(self._readable, real) or covers(self._workspace, real):
                continue
            layout = layout_around(real)
            folder = None if layout is None else self._checked('PATH', posixpath.dirname(real), layout)
            if layout is not None and folder is not None:
                self._open(layout, folder)
                continue
            for name in _SINGLE:
                self._single(posixpath.join(real, name))

    def result(self) -> Toolchains:
        """Return the toolchains and the variables for commands."""
        # Use real paths: inside the sandbox, a link to a toolchain does not exist.
        real = [(place, os.path.realpath(place)) for place in self._parts()]
        parts = [end if covers([*self._readable, *self._environments], end) else place for place, end in real]
        known = {end for _, end in real}
        first = [place for place in self._first if place not in known]
        last = [place for place in self._last if os.path.realpath(place) not in known]
        path = ':'.join(dict.fromkeys([*first, *parts, *last]))
        choices = {name: value for name in _CHOICES if re.fullmatch(r'[\w.:+-]+', value := self._given.get(name, ''))}
        return Toolchains(
            found=tuple(self._found),
            ignored=tuple(dict.fromkeys(self._ignored)),
            environments=tuple(dict.fromkeys(self._environments)),
            variables={**self._variables, **choices, **({'PATH': path} if path else {})},
        )

    def _parts(self) -> list[str]:
        return [place for place in self._given.get('PATH', '').split(':') if place.startswith('/')]

    def base(self, environment: str) -> None:
        """Let commands read a virtual environment's Python. Check the layout, because `pyvenv.cfg` may be forged."""
        named = _home_of(posixpath.join(environment, 'pyvenv.cfg'))
        if named is None:
            return
        bins = os.path.realpath(named)
        if covers(self._readable, bins):
            return
        layout = layout_around(bins)
        label = f'`home` in {posixpath.join(environment, "pyvenv.cfg")}'
        # Attack: the `home` of an environment in a repository is the home directory (test_toolchains.py).
        problem = self._problem(posixpath.dirname(bins))
        if problem or layout is None:
            self._ignore(label, named, problem or 'the folder does not have the layout of a Python installation')
        else:
            self._open(layout, posixpath.dirname(bins))

    def _single(self, file: str) -> None:
        try:
            status = os.lstat(file)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode) and os.access(file, os.X_OK) and not self._owner_problem(status):
            self._add(Toolchain(kind=posixpath.basename(file), folder=file, opened=(file,)))

    def _checked(self, label: str, given: str, layout: ToolchainLayout, *, is_active: bool = False) -> str | None:
        """Return the resolved folder, or record the reason and return `None` if the folder must not be opened."""
        if not given.startswith('/') or '\0' in given:
            self._ignore(label, given, 'the path is not absolute')
            return None
        folder = os.path.realpath(given)
        problem = self._problem(folder, is_active=is_active)
        if not problem and not has_layout(layout, folder):
            problem = f'the folder does not have the layout of a {layout.kind}'
        if problem:
            self._ignore(label, given, problem)
        return None if problem else folder

    def _problem(self, folder: str, *, is_active: bool = False) -> str:
        if any(covers((folder,), home) for home in self._homes):
            return 'the folder is the home directory, or contains it'
        if any(folder == posixpath.join(home, wide) for home in self._homes for wide in _WIDE):
            return 'the folder also contains files that belong to no toolchain'
        if not is_active and covers(self._workspace, folder):
            return 'the folder is in the workspace, where an agent may write'
        if any(root != folder and covers((folder,), root) for root in self._workspace):
            return 'the folder contains the workspace'
        try:
            return self._owner_problem(os.stat(folder))
        except OSError:
            return 'there is no such directory'

    @staticmethod
    def _owner_problem(status: os.stat_result) -> str:
        if status.st_uid not in (0, os.geteuid()):
            return 'the folder belongs to another user'
        return 'every user can write to the folder' if status.st_mode & _OTHERS_WRITE else ''

    def _ignore(self, label: str, given: str, problem: str) -> None:
        self.problems.append(problem)
        self._ignored.append(f'{label}: {given} is ignored: {problem}')

    def _open(self, layout: ToolchainLayout, folder: str) -> None:
        places = [place for part in layout.parts for place in glob.glob(posixpath.join(glob.escape(folder), part))]
        real = [os.path.realpath(place.rstrip('/')) for place in places]
        opened = tuple(
            # Leave out a part that links to a place outside of the toolchain.
            place
            for place in dict.fromkeys(real)
            if covers((folder,), place) and not covers(self._readable, place)
        )
        self._add(Toolchain(kind=layout.kind, folder=folder, opened=opened))

    def _add(self, toolchain: Toolchain) -> None:
        if not toolchain.opened:
            return
        self._found.append(toolchain)
        self._readable += toolchain.opened


def _holds_programs(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_file() and os.access(entry.path, os.X_OK) for entry in entries)
    except OSError:
        return False


def _newest(folder: str, pattern: str) -> list[str]:
    """Return a list with one folder: the match with the highest version. The list is empty if nothing matches."""
    found = glob.glob(posixpath.join(folder, pattern))
    return [max(found, key=lambda path: [int(number) for number in re.findall(r'\d+', path)])] if found else []


def _home_of(config: str) -> str | None:
    """Return the value of `home` in a `pyvenv.cfg`; `None` if the value is missing or not an absolute path."""
    try:
        descriptor = os.open(config, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, _LONGEST_FILE).decode(errors='replace')
    except OSError:
        return None
    finally:
        os.close(descriptor)
    found = re.search(r'^home\s*=\s*(/[^\0\n]*?)\s*$', text, re.MULTILINE | re.IGNORECASE)
    return None if found is None else found[1]
