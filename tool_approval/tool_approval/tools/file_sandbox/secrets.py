"""Search the roots for files that usually contain secrets. Files are judged by name, and some also by content."""

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
"""Whether a file is a secret, judged by its name. For `maybe`, the content of the file decides."""

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
"""Names of files and folders with secrets. Each key is the name of the folder that contains these files and folders."""
_FOLDERS: Final = frozenset({'.gnupg', '.ssh'})
"""Folders that contain only secrets."""
_PRIVATE_KEY: Final = re.compile(rb'-----BEGIN [A-Z ]*PRIVATE KEY-----')
# A variable such as `${TOKEN}` in place of a token is not a secret.
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
"""Patterns by file name. A file with this name contains a secret if its content matches."""
_KEY_SUFFIXES: Final = ('.pem', '.key')
_TESTS: Final = frozenset({'test', 'tests', 'testing', 'testdata', 'fixtures', 'examples'})
"""Folders in which `.pem` and `.key` files are test data, not secrets."""
_READ_BYTES: Final = 65_536
"""Maximum number of bytes to search at the beginning of a file. A key file may begin with certificates, which are
shorter than this limit."""


_EXACT: Final = frozenset({*_FOLDERS, *_NAMES, *_CONTENT, *_IN_FOLDERS})
_BEGINNINGS: Final = ('.env', 'id_')


class SecretRules:
    """Recognises secrets by file name, with built-in rules and configured globs. Names are compared in folded form."""

    def __init__(self, hidden: Iterable[str] = (), visible: Iterable[str] = ()) -> None:
        """Compile the globs `hidden` and `visible` of a `SandboxConfig`."""
        self._hidden = [_compiled(each) for each in hidden]
        self._visible = [_compiled(each) for each in visible]

    def look(self, root: Sequence[str], names: Sequence[str], *, is_folder: bool = False) -> LooksLike:
        """Judge a path.

        Args:
            root: Parts of the path of the root. Globs are relative to this root.
            names: Parts of the path.
            is_folder: Whether the path is a folder. Everything in a folder of secrets is a secret.
        """
        *folder, name = names[len(root) :] or ['']
        return self.within(root[-1:], folder)(name, is_folder)

    def within(self, root: Sequence[str], folder: Sequence[str]) -> Callable[[str, bool], LooksLike]:
        """Return a function that judges an entry of one folder, given the name of the entry and whether the entry is
        a folder.

        Args:
            root: The last part of the root's path. This part matters, because the root may be a folder such as `.aws`.
            folder: Parts of the folder's path, relative to the root.
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
    # Same result as `fold`, but faster: ASCII needs no look-up of each character.
    return name.lower().rstrip(' .') if name.isascii() else fold(name)


def _is_ordinary(folded: str) -> bool:
    """Return true if no built-in rule can match the name."""
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
    """For a file whose name was classified as `maybe`, return whether its first bytes contain a secret."""
    return (_CONTENT.get(fold(name)) or _PRIVATE_KEY).search(content) is not None


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a glob into a pattern for paths relative to the root. The pattern also matches everything in a matching
    folder.
    """
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
"""Maximum number of folders to search in each root. Folders near the root are searched first. See
docs/explanation/os-sandbox.md."""
_NOT_SEARCHED: Final = frozenset({'.git', '__pycache__', 'node_modules'})
"""Folders that programs generate and that contain no secrets of the user."""
_UNSETTLED_NS: Final = 2_000_000_000
"""A file system such as FAT rounds times to two seconds, so two changes can have the same time."""


def glob_problem(glob: str) -> str | None:
    """Return a warning if a glob of `hidden` or `visible` is probably a mistake, else `None`."""
    parts = [part for part in glob.split('/') if part]
    if not all(map(fold, parts)):
        return 'the glob matches nothing: no name consists of only dots or blanks'
    if re.search(r'[\[{]', glob):
        return '`[...]` and `{...}` have no special meaning here, so the glob matches only names with these brackets'
    folder = next((part for part in parts[:-1] if part in _NOT_SEARCHED), None)
    return None if folder is None else f'the OS sandbox ignores this glob: it never searches folders named `{folder}`'


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """Result of the search of one folder."""

    state: tuple[int, ...]
    """Device, inode, mtime and ctime. Programs cannot set the ctime."""
    is_settled: bool
    """Whether every later change will alter `state`. Two changes in quick succession may get the same timestamp."""
    folders: list[str]
    """Paths of the subfolders to search."""
    found: list[tuple[str, LooksLike]]
    """Paths in the folder that are or may be secrets, each with `secret` or `maybe`."""


class SecretFiles:
    """Finds the secrets in the roots. A folder is read again only if it changed. The object is thread-safe."""

    def __init__(self, rules: SecretRules, roots: Iterable[Path], *, most_folders: int = MOST_FOLDERS) -> None:
        """Create the finder without starting the search.

        Args:
            rules: Rules that decide which names are secrets.
            roots: The folders to search, absolute and without symbolic links.
            most_folders: Maximum number of folders to search in each root.
        """
        self._rules = rules
        self._roots = tuple(str(root) for root in roots)
        self._skipped = {*self._roots}
        self._most = most_folders
        self._lock = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._contents: dict[str, tuple[tuple[int, ...], bool]] = {}
        self.known: tuple[str, ...] = ()
        """Result of the last search."""
        self.is_complete = True
        """Whether the last search covered every folder."""

    def skip(self, folders: Iterable[str]) -> None:
        """Exclude folders such as virtual environments from later searches."""
        self._skipped.update(folders)

    def find(self) -> tuple[str, ...]:
        """Find the files and folders that now contain secrets, and return their absolute resolved paths, sorted.

        If a link is named like a secret and its target is in a root, the result includes the target. The result also
        includes every hard link to a secret.
        """
        with self._lock:
            folders: dict[str, _Folder] = {}
            found: set[str] = set()
            are_complete = [self._search(root, folders, found) for root in self._roots]
            self.is_complete = all(are_complete)
            if not self.is_complete:
                # Attack: a command creates more folders than are searched, so that secrets found earlier drop out and
                # the next command can read them (test_secrets.py).
                found.update(path for path in self.known if os.path.lexists(path))
            self._folders = folders
            self.known = tuple(sorted(found | set(_other_names(found, folders))))
            return self.known

    def _search(self, root: str, folders: dict[str, _Folder], found: set[str]) -> bool:
        """Search a root, and return whether all of its folders were searched."""
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
                # A link to a folder is judged by its name and not searched.
                listed = [(entry.name, _leads_to_folder(entry), entry.is_symlink()) for entry in entries]
        except OSError:
            # The folder is gone, or neither this process nor commands can read it.
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
        """Return the path of the secret that a name refers to; `None` if the name is not a secret."""
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                path = os.path.realpath(path)
                status = os.lstat(path)
                # A link in a loop resolves to itself.
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
        # Attack: a looping link next to a secret, whose error would hide the whole folder from the search.
        return False


def read_beginning(folder: int | None, name: str) -> bytes:
    """Return the beginning of the regular file `name` in the open `folder`. If `folder` is `None`, `name` is a path.

    Raises:
        OSError: The file is missing or cannot be read.
    """
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, _READ_BYTES)
    finally:
        os.close(descriptor)


def _other_names(found: Iterable[str], folders: Iterable[str]) -> Iterator[str]:
    """Yield paths in these folders that are hard links to files in `found`."""
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
