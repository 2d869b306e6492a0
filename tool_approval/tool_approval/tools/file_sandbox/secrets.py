"""Which files usually hold secrets, by their names, and for some by what is in them; and where such files are now."""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .names import components, fold

LooksLike = Literal['secret', 'maybe', 'other']
"""What a name says: a secret, one if its content says so, or anything else."""

_ENV: Final = re.compile(r'\.env(~|\..+)?')
_EXAMPLES: Final = ('.example', '.sample', '.template', '.dist')
_KEY: Final = re.compile(r'id_(rsa|dsa|ecdsa|ed25519|xmss)(?!.*\.pub$).*')
_NAMES: Final = frozenset({'.netrc', '_netrc', '.pgpass', '.git-credentials', 'application_default_credentials.json'})
_IN_FOLDERS: Final = {
    '.aws': ('credentials', 'sso', 'cli'),
    '.azure': (
        'accesstokens.json',
        'msal_token_cache.bin',
        'msal_token_cache.json',
        'service_principal_entries.bin',
        'service_principal_entries.json',
    ),
    '.cargo': ('credentials', 'credentials.toml'),
    '.docker': ('config.json',),
    '.kube': ('config', 'cache'),
    'gcloud': ('access_tokens.db', 'credentials.db', 'legacy_credentials'),
}
"""By the name of a folder, what in it holds secrets."""
_FOLDERS: Final = frozenset({'.gnupg', '.ssh'})
"""Folders of secrets alone."""
_PRIVATE_KEY: Final = re.compile(rb'-----BEGIN [A-Z ]*PRIVATE KEY-----')
# A variable in place of a token is none.
_TOKEN: Final = re.compile(
    rb'(?i)(_authtoken|_auth|_password|npmauthtoken|npmauthident|^\s*password)["\']?\s*[:=]\s*["\']?(?!\$\{)[^\s"\']',
    re.MULTILINE,
)
_LOGIN: Final = re.compile(rb'://[^/@\s:]+:[^/@\s]+@')
_CONTENT: Final = {
    '.npmrc': _TOKEN,
    '.pypirc': _TOKEN,
    '.yarnrc.yml': _TOKEN,
    'pip.conf': _LOGIN,
    '.condarc': _LOGIN,
}
"""By name, what a file has in it that holds a secret."""
_KEY_SUFFIXES: Final = ('.pem', '.key')
_TESTS: Final = frozenset({'test', 'tests', 'testing', 'testdata', 'fixtures', 'examples'})
"""Folders whose keys are made up: a test that serves TLS needs its key."""
_READ_BYTES: Final = 65_536
"""Chosen: a bundle of certificates before a key is shorter."""


_EXACT: Final = frozenset({*_FOLDERS, *_NAMES, *_CONTENT, *_IN_FOLDERS})
_BEGINNINGS: Final = ('.env', 'id_')


class SecretRules:
    """The names of secrets: those that are known, more of them, and exceptions; compared as `fold` has them."""

    def __init__(self, hidden: Iterable[str] = (), visible: Iterable[str] = ()) -> None:
        """Take globs as in `SandboxConfig`."""
        self._hidden = [_compiled(each) for each in hidden]
        self._visible = [_compiled(each) for each in visible]

    def look(self, root: Sequence[str], names: Sequence[str], *, is_folder: bool = False) -> LooksLike:
        """What a name says.

        Args:
            root: The names of the root that it lies in, from the top of the file system. Globs begin there.
            names: Its own, likewise.
            is_folder: Whether it is that of a folder; all that is in a folder of secrets is one.
        """
        *folder, name = names[len(root) :] or ['']
        return self.within(root[-1:], folder)(name, is_folder)

    def within(self, root: Sequence[str], folder: Sequence[str]) -> Callable[[str, bool], LooksLike]:
        """What names in one folder say, given a name and whether it is that of a folder.

        Args:
            root: The last name of the root. It may be `~/.aws` itself.
            folder: The names of the folder in the root.
        """
        inside, around = list(map(_folded, folder)), list(map(_folded, (*root, *folder)))
        is_ordinary = not self._hidden and all(map(_is_ordinary, around))

        def look(name: str, is_folder: bool) -> LooksLike:
            last = _folded(name)
            if is_ordinary and _is_ordinary(last):
                return 'other'
            path = '/'.join((*inside, last))
            if any(each.fullmatch(path) for each in self._visible):
                return 'other'
            if any(each.fullmatch(path) for each in self._hidden):
                return 'secret'
            return _known([*around, last], is_folder=is_folder)

        return look


def _folded(name: str) -> str:
    # What `fold` makes of it, without looking up each character: there are many names.
    return name.lower().rstrip(' .') if name.isascii() else fold(name)


def _is_ordinary(folded: str) -> bool:
    """Whether a name is none of those that are known, as far as can be said at once."""
    return not (folded in _EXACT or folded.startswith(_BEGINNINGS) or folded.endswith(_KEY_SUFFIXES))


def _known(names: list[str], *, is_folder: bool) -> LooksLike:
    *folders, name = names
    inner = zip(folders, names[1:], strict=True)
    if not _FOLDERS.isdisjoint(names) or any(each in _IN_FOLDERS.get(folder, ()) for folder, each in inner):
        return 'secret'
    if is_folder:
        return 'other'
    if name in _NAMES or _KEY.fullmatch(name) or (_ENV.fullmatch(name) and not name.endswith(_EXAMPLES)):
        return 'secret'
    is_key = name.endswith(_KEY_SUFFIXES) and _TESTS.isdisjoint(folders)
    return 'maybe' if is_key or name in _CONTENT else 'other'


def holds_secret(name: str, content: bytes) -> bool:
    """Whether the beginning of a file whose name says `maybe` has a secret in it."""
    return (_CONTENT.get(fold(name)) or _PRIVATE_KEY).search(content) is not None


def _compiled(pattern: str) -> re.Pattern[str]:
    """A glob, for a path within the root: it matches all that is below what it names."""
    parts = [part for part in pattern.split('/') if part]
    text = '' if '/' in pattern.rstrip('/') else '(?:.*/)?'
    for at, part in enumerate(parts):
        is_last = at == len(parts) - 1
        if part == '**':
            text += '.*' if is_last else '(?:.*/)?'
        else:
            pieces = (re.escape(fold(piece)) if piece not in '*?' else piece for piece in re.split('([*?])', part))
            text += ''.join({'*': '[^/]*', '?': '[^/]'}.get(piece, piece) for piece in pieces) + '/' * (not is_last)
    return re.compile(f'{text}(?:/.*)?', re.DOTALL)


MOST_FOLDERS: Final = 20_000
"""Chosen: of each root so many are looked through, those at the top first. See docs/explanation/os-sandbox.md."""
_NOT_SEARCHED: Final = frozenset({'.git', '__pycache__', 'node_modules'})
"""Folders of programs, which no person puts secrets into."""
_UNSETTLED_NS: Final = 2_000_000_000
"""Chosen: within one tick of a file system's clock, which is at most two seconds (FAT), a change may not show."""


def glob_problem(glob: str) -> str | None:
    """Why a glob of `hidden` or `visible` does not match what it seems to, for a person; `None` if it does."""
    parts = [part for part in glob.split('/') if part]
    if not all(map(fold, parts)):
        return 'it matches nothing: names have no part that is `.`, dots or blanks'
    if re.search(r'[\[{]', glob):
        return 'it matches only names with brackets: `[...]` and `{...}` have no other meaning here'
    folder = next((part for part in parts[:-1] if part in _NOT_SEARCHED), None)
    return None if folder is None else f'it hides nothing from commands: no `{folder}` is searched'


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """One that was looked through."""

    state: tuple[int, ...]
    """What changes whenever an entry is made, renamed or deleted. The last time in it cannot be set by a program."""
    is_settled: bool
    """Whether the state had been so for a while."""
    folders: list[str]
    """The folders in it that are searched."""
    found: list[tuple[str, LooksLike]]
    """What in it has a name that says `secret` or `maybe`."""


class SecretFiles:
    """Where the secrets are in the roots. Folders are read again when they have changed. Safe to share."""

    def __init__(self, rules: SecretRules, roots: Iterable[Path], *, most_folders: int = MOST_FOLDERS) -> None:
        """Look at nothing yet.

        Args:
            rules: What counts.
            roots: The folders to search, absolute and without symbolic links.
            most_folders: How many folders of each root are looked through.
        """
        self._rules = rules
        self._roots = tuple(str(root) for root in roots)
        self._skipped = {*self._roots}
        self._most = most_folders
        self._lock = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._contents: dict[str, tuple[tuple[int, ...], bool]] = {}
        self.known: tuple[str, ...] = ()
        """What was found the last time."""
        self.is_complete = True
        """Whether everything was looked through, the last time."""

    def skip(self, folders: Iterable[str]) -> None:
        """Search some folders no longer, such as the libraries of virtual environments."""
        self._skipped.update(folders)

    def find(self) -> tuple[str, ...]:
        """The files and folders that hold secrets now, absolute and without symbolic links, sorted.

        What a link with such a name leads to counts, if it is in a root, and so do other names of the same file.
        """
        with self._lock:
            folders: dict[str, _Folder] = {}
            found: set[str] = set()
            are_complete = [self._search(root, folders, found) for root in self._roots]
            self.is_complete = all(are_complete)
            if not self.is_complete:
                # Attack: a command makes more folders than are looked through, so that the next one reads what was
                # found further down (test_secrets.py).
                found.update(path for path in self.known if os.path.lexists(path))
            self._folders = folders
            self.known = tuple(sorted(found | set(_other_names(found, folders))))
            return self.known

    def _search(self, root: str, folders: dict[str, _Folder], found: set[str]) -> bool:
        """Whether all of a root was looked through."""
        waiting = [root]
        at = 0
        while at < len(waiting) and at < self._most:
            path = waiting[at]
            at += 1
            folder = self._folder(path, root)
            if folder is None:
                continue
            folders[path] = folder
            waiting += folder.folders
            for place, looks in folder.found:
                real = self._secret(place, looks)
                found.update([] if real is None else [real])
        return at == len(waiting)

    def _folder(self, path: str, root: str) -> _Folder | None:
        try:
            status = os.lstat(path)
            state = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
            known = self._folders.get(path)
            if known is not None and known.is_settled and known.state == state:
                return known
            with os.scandir(path) as entries:
                # A link to a folder is one by its name alone: it is not searched.
                listed = [(entry.name, _leads_to_folder(entry), entry.is_symlink()) for entry in entries]
        except OSError:
            # It is gone, or closed to us, and so to commands.
            return None
        look = self._rules.within(components(root)[-1:], components(path[len(root) :]))
        prefix = path.rstrip('/')
        looks: dict[str, LooksLike] = {f'{prefix}/{name}': look(name, is_folder) for name, is_folder, _ in listed}
        folders = [
            f'{prefix}/{name}'
            for name, is_folder, is_link in listed
            if is_folder and not is_link and name not in _NOT_SEARCHED
        ]
        return _Folder(
            state=state,
            is_settled=time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _UNSETTLED_NS,
            folders=[each for each in folders if looks[each] == 'other' and each not in self._skipped],
            found=[(place, each) for place, each in looks.items() if each != 'other'],
        )

    def _secret(self, path: str, looks: LooksLike) -> str | None:
        """Where the secret is that a name stands for; `None` if there is none."""
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                path = os.path.realpath(path)
                status = os.lstat(path)
                # In circles, it leads to itself.
                within = any(path.startswith(f'{root.rstrip("/")}/') for root in self._roots)
                if stat.S_ISLNK(status.st_mode) or not within:
                    return None
            if looks == 'secret' or not stat.S_ISREG(status.st_mode):
                return path if looks == 'secret' else None
            state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known, is_secret = self._contents.get(path, ((), False))
            if known != state:
                is_secret = holds_secret(os.path.basename(path), read_beginning(None, path))
                self._contents[path] = state, is_secret
        except OSError:
            return None
        return path if is_secret else None


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # Attack: a link in a circle beside a secret, for which nothing in its folder would be looked at.
        return False


def read_beginning(folder: int | None, name: str) -> bytes:
    """The beginning of a regular file, by its name in an open folder, or by its path.

    Raises:
        OSError: There is none, or it cannot be read.
    """
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, _READ_BYTES)
    finally:
        os.close(descriptor)


def _other_names(found: Iterable[str], folders: Iterable[str]) -> Iterator[str]:
    """Other names (hard links) of files among those that were found."""
    shared: set[tuple[int, int]] = set()
    for path in found:
        with suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                shared.add((status.st_dev, status.st_ino))
    for folder in folders if shared else ():
        with suppress(OSError), os.scandir(folder) as entries:
            device = os.lstat(folder).st_dev
            yield from (entry.path for entry in entries if (device, entry.inode()) in shared)
