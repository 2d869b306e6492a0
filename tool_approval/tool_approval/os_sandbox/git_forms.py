"""Tell what git itself writes into a repository from what a command has planted there.

Everything is recognised by its form, never by a list of known attacks. Formats: gitrepository-layout(5),
gitformat-index(5), git-config(1), git-rebase(1), and the state files in git's `sequencer.c`.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

MOST_INDEX_BYTES: Final = 1 << 26
"""Maximum size of an index in bytes, enough for half a million files."""
_MOST_BYTES: Final = 1 << 20
"""Maximum number of bytes to read from any other file. Git writes none of these files longer."""

TOP: Final = re.compile(
    r'HEAD|[A-Z][A-Z_]*_(?:HEAD|MSG|EDITMSG|MODE|RR)|EDIT_DESCRIPTION|AUTO_MERGE|MERGE_AUTOSTASH|BISECT_[A-Z_]+'
    r'|NOTES_MERGE_\w+|index|sharedindex\.[0-9a-f]+|config|config\.worktree|commondir|gitdir|locked|description|hooks'
    r'|packed-refs|shallow|objects|refs|reftable|logs|info|modules|worktrees|branches|remotes|lfs|rr-cache|rebase-merge'
    r'|rebase-apply|sequencer|gc\.(?:log|pid)|addp-hunk-edit\.diff|[\w.-]+\.lock'
)
"""The names that git, or git-lfs, gives to the files and folders directly in a repository."""
_VALUE: Final = r'[^\s$`"\'\\;&|<>()!*?]{1,500}'
"""One word that no shell prompt runs or expands."""
_STEP: Final = (
    r'\s*(?:#.*|(?:pick|p|reword|r|edit|e|squash|s|fixup|f|drop|d|merge|m|label|l|reset|t|update-ref|u|revert)\s.*'
    r'|noop|break|b)?'
)
_STEPS: Final = ('rebase-merge/git-rebase-todo', 'rebase-apply/git-rebase-todo', 'sequencer/todo')
_FORMS: Final = {
    **dict.fromkeys(('msgnum', 'end', 'next', 'last'), r'\d{1,9}\n?'),
    **dict.fromkeys(('head-name', 'onto_name'), rf'(?:detached HEAD|{_VALUE})\n?'),
    **dict.fromkeys(('onto', 'orig-head', 'head', 'stopped-sha', 'amend'), r'[0-9a-f]{4,64}\n?'),
    'strategy': r'(?:ort|recursive|resolve|octopus|ours|subtree)\n?',
    'strategy_opts': r"(?: '--(?:ours|theirs|patience|(?:no|find)-renames(?:=\d+%?)?)'| )*\n?",
    'gpg_sign_opt': r'-S[\w@.+-]*\n?',
    'apply-opt': r"(?: '(?:-[CpN]?\d*|--(?:3way|whitespace=\w+))')*\n?",
    'opts': r'\[options\]\n(?:\t(?!strategy|gpg)[\w-]+ = \w+\n)*',
}
"""The files of an unfinished operation that a shell prompt prints, or that give git a program or its options."""
HEAD: Final = rf'(?:ref: refs/{_VALUE}|[0-9a-f]{{40,64}})\n?'
_HEADS: Final = r'(?:[0-9a-f]{40,64}(?:\t[^\n]*)?\n?)*'
_SAFE_LINE: Final = (
    r'\[(?:core|init|user|submodule|extensions|(?:remote|branch|submodule) "[^"\\\n]*")\]'
    r'|\t(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|objectformat'
    r'|defaultbranch|fetch|tagOpt|remote|merge|rebase|active|name|email) = [^\\\r]*'
    r'|\turl = (?:(?:https?|ssh|git|file)://|[/.]|[\w.-]+@[\w.-]+:(?!:))[^\\\r]*|'
)
_WRONG_PATH: Final = re.compile(rb'[/\\\0](?:\.{0,2}|(?:\.git|git~[0-9])[ .]*)[/\\:\0]', re.IGNORECASE)
_SUBMODULE: Final = 0o160000


def folded(name: str) -> str:
    """Remove differences that some file systems ignore, such as case, invisible characters and trailing dots."""
    if not name.isascii():
        name = ''.join(each for each in unicodedata.normalize('NFKC', name) if unicodedata.category(each) != 'Cf')
    return name.casefold().rstrip(' .')


def is_git_name(name: str) -> bool:
    """Whether some file system takes a name for `.git`."""
    if name[:1] not in '.gG' and name.isascii():
        return False
    return (not name.isascii() or name[:4].casefold() in ('.git', 'git~')) and folded(name) in ('.git', 'git~1')


def read(path: str, most: int = _MOST_BYTES) -> bytes | None:
    """Return the content of a regular file; `None` if there is none, or if the file is longer than `most` bytes."""
    try:
        with open(path, 'rb', opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW)) as file:
            status = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= most else None
    except OSError:
        return None


def text(path: str) -> str:
    """Return the content of a regular file as text; `''` if it cannot be read."""
    return os.fsdecode(read(path) or b'')


def is_repository(folder: str) -> bool:
    """Whether git takes a folder for a repository."""
    there = [os.path.lexists(f'{folder}/{name}') for name in ('HEAD', 'objects', 'refs', 'commondir')]
    return there[0] and (all(there[1:3]) or there[3])


def unsafe_line(config: str, old: str = '') -> str | None:
    """Return a line of a configuration that is neither in an old one nor written by git for each repository.

    Args:
        config: The text of the configuration.
        old: The text of the old configuration.
    """
    known = {*_in_sections(old)}
    new = (pair for pair in _in_sections(config) if pair not in known)
    return next((line for pair in new for line in pair if re.fullmatch(_SAFE_LINE, line) is None), None)


def _in_sections(config: str) -> Iterator[tuple[str, str]]:
    section = ''
    for line in config.split('\n'):
        section = line if line.startswith('[') else section
        yield section, line


def repository_problem(folder: str, *, is_asked_for: bool) -> str | None:
    """Return why a repository is not as `git init` or `git clone` makes it, or `None` if it is.

    Args:
        folder: A folder `.git`, a bare repository, or the repository of a submodule, for which git also writes the
            place of the work tree.
        is_asked_for: Whether a command was to make it. Otherwise, a remote is a problem: the user may take the
            repository for another, and push to it.
    """
    config = read(f'{folder}/config')
    if config is None or os.path.islink(folder) or not is_repository(folder):
        return 'it is a link, or incomplete'
    # Attack: a later command writes to another name of the file (test_git_attacks.py).
    if os.stat(f'{folder}/config').st_nlink > 1:
        return 'its configuration has another name, too'
    tree, is_module, _ = folder.partition('/.git/modules/')
    lines = os.fsdecode(config).split('\n')
    for line in list(lines):
        place = os.path.normpath(os.path.join(folder, line.removeprefix('\tworktree = ')))
        if is_module and line.startswith('\tworktree = ') and place.startswith(f'{tree}/'):
            lines.remove(line)
    if (line := unsafe_line('\n'.join(lines))) is not None:
        return f'its configuration has the line {line.strip()!r}'
    if not is_asked_for and (remote := next((line for line in lines if line.startswith('[remote')), None)):
        return f'no command was to make it, and it has {remote}'
    names = [os.path.basename(path) for path in inside(folder)]
    wrong = [name for name in names if TOP.fullmatch(name) is None or name in _LEADS_ELSEWHERE]
    wrong += [] if has_only_samples(f'{folder}/hooks') else ['hooks']
    wrong += [name for name in ('objects/info/alternates',) if os.path.lexists(f'{folder}/{name}')]
    return f'it has {", ".join(wrong)}' if wrong else None


_LEADS_ELSEWHERE: Final = ('commondir', 'gitdir', 'config.worktree', 'remotes', 'worktrees')


def has_only_samples(hooks: str) -> bool:
    """Whether a folder of hooks has none that git runs, or does not exist."""
    return not os.path.islink(hooks) and all(path.endswith('.sample') for path in inside(hooks))


def _misfits(git: str) -> Iterator[str]:
    """Yield the state files of a repository whose content git does not write: heads, and an unfinished operation."""
    for path in inside(git):
        name = os.path.basename(path)
        form = HEAD if name == 'HEAD' else _HEADS if name.endswith('_HEAD') else None
        if form is not None and re.fullmatch(form, text(path)) is None:
            yield path
        elif name in ('rebase-merge', 'rebase-apply', 'sequencer'):
            forms = ((each, _FORMS.get(os.path.basename(each))) for each in inside(path))
            yield from (each for each, form in forms if form is not None and re.fullmatch(form, text(each)) is None)


def git_folders(common: str) -> tuple[str, ...]:
    """Return the repository, and the folders of its linked work trees."""
    return (common, *inside(f'{common}/worktrees'))


def modules(common: str) -> Iterator[str]:
    """Yield the repositories of submodules, and of their submodules, in a repository."""
    for folder, folders, files in os.walk(f'{common}/modules'):
        if 'HEAD' in files:
            yield folder
            folders[:] = [name for name in folders if name == 'modules']


def inside(folder: str) -> list[str]:
    """Return the paths in a folder, sorted; an empty list if there is no such folder, or if it cannot be read."""
    try:
        return [f'{folder}/{name}' for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def submodules(data: bytes, id_bytes: int = 20) -> tuple[frozenset[str], bool]:
    """Return the paths of the submodules in an index, and whether git would write all paths of the index.

    Attack: after `git checkout`, a path such as `.git/config` would be a file (`git_attacks.toml`).

    Args:
        data: The content of the index.
        id_bytes: Length of an object's name: 20 for SHA-1, 32 for SHA-256.

    Raises:
        ValueError: Git cannot read the data as an index.
    """
    paths: list[bytes] = []
    found: set[str] = set()
    try:
        magic, version, count = struct.unpack_from('>4sLL', data)
        if magic != b'DIRC' or version not in (2, 3, 4) or len(data) > MOST_INDEX_BYTES:
            raise ValueError('no index')
        place, path, last = 12, b'', (b'', 0)
        entry = struct.Struct(f'>24xL{12 + id_bytes}xH')
        for _ in range(count):
            start, (mode, flags) = place, entry.unpack_from(data, place)
            place += entry.size + (2 if flags & 0x4000 else 0)
            kept = 0
            if version == 4:
                strip, place = _offset(data, place)
                kept = max(len(path) - strip, 0)
            end = data.index(b'\0', place)
            path = path[:kept] + data[place:end]
            place = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
            # Attack: git takes the end of a name from this length.
            this = (path, flags & 0x3000)
            if flags & 0xFFF != min(len(path), 0xFFF) or len(path) > 4096 or (this <= last and path):
                raise ValueError('no entry')
            last = this
            # Without a path, it replaces an entry of the shared part of a split index.
            if path:
                # A folder that is not checked out has one entry, with a slash at its end.
                paths.append(path[:-1] if mode & 0o170000 == 0o040000 else path)
                if mode & 0o170000 == _SUBMODULE:
                    found.add(os.fsdecode(path))
    except (IndexError, struct.error):
        raise ValueError('no index') from None
    return frozenset(found), _WRONG_PATH.search(b'\0'.join([b'', *paths, b''])) is None


def _offset(data: bytes, place: int) -> tuple[int, int]:
    value = data[place] & 0x7F
    while data[place] & 0x80:
        place += 1
        value = ((value + 1) << 7) | (data[place] & 0x7F)
        if value > MOST_INDEX_BYTES:  # Attack: a number without an end takes quadratic time.
            raise ValueError('no entry')
    return value, place + 1


def entries(top: str) -> Iterator[os.DirEntry[str]]:
    """Yield everything below a folder, without following links. Folders that cannot be searched count as empty."""
    todo = [top]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as found:
            for each in found:
                yield each
                if each.is_dir(follow_symlinks=False):
                    todo.append(each.path)


def findings(common: str) -> Iterator[tuple[str, str]]:
    """Yield the paths in a repository that git does not write, and that it could run or follow, each with the reason.

    The repositories of submodules in it are left out.
    """
    if not os.path.isdir(common) or os.path.islink(common):
        return
    for each in entries(common):
        if not each.is_dir(follow_symlinks=False) and not each.is_file(follow_symlinks=False):
            yield each.path, 'git makes no link or special file here'
    # A bare repository that was there before may have other files of the user beside it.
    if os.path.basename(common) == '.git' or '/.git/modules/' in common:
        names = (path for path in inside(common) if TOP.fullmatch(os.path.basename(path)) is None)
        yield from ((path, 'git makes no file of this name') for path in names)
    for tree in inside(f'{common}/worktrees'):
        if text(f'{tree}/commondir').strip() != '../..' or os.path.lexists(f'{tree}/config.worktree'):
            yield tree, 'it makes git use another configuration'
    for git in git_folders(common):
        yield from ((path, 'git does not write this content') for path in _misfits(git))
        for path in (f'{git}/{name}' for name in _STEPS):
            bad = (line for line in text(path).split('\n') if re.fullmatch(_STEP, line) is None)
            yield from ((path, f'git would run, or does not write, the step {line!r}') for line in bad)
        yield from _in_index(git)


def _in_index(git: str) -> Iterator[tuple[str, str]]:
    try:
        names = gitlinks(git)
    except ValueError as error:
        yield f'{git}/index', f'it has {error}; `git reset` makes a new one'
        return
    for name in sorted(names):
        # Attack: `git status` looks into the repository (`git_attacks.toml`).
        control = os.path.join(os.path.dirname(git), name, '.git')
        if os.path.isdir(control) and repository_problem(control, is_asked_for=True) is not None:
            yield f'{git}/index', f'it makes git look into {name!r}; `git reset` makes a new one'


def gitlinks(git: str) -> frozenset[str]:
    """Return the submodules in the index, and in the parts of a split one.

    Raises:
        ValueError: An index has what git does not write.
    """
    found: set[str] = set()
    for path in inside(git):
        if os.path.basename(path).startswith(('index', 'sharedindex.')) and not path.endswith('.lock'):
            data = read(path, MOST_INDEX_BYTES)
            if data is None:
                raise ValueError('more than 64 MiB, or is not a file')
            names, is_right = submodules(data, 32 if 'sha256' in text(f'{git}/config') else 20)
            if not is_right:
                raise ValueError('a path that git never writes')
            found |= names
    return frozenset(found)


def refs(common: str) -> dict[str, str]:
    """Return the branches, the tags and the stash of a repository."""
    lines = (line.split(' ', 1) for line in text(f'{common}/packed-refs').split('\n'))
    found = {line[1]: line[0] for line in lines if len(line) == 2 and line[0] != '#'}
    for folder, _, files in os.walk(f'{common}/refs'):
        found |= {os.path.relpath(path, common): text(path).strip() for path in (f'{folder}/{name}' for name in files)}
    return {
        name: value for name, value in found.items() if name.startswith(('refs/heads/', 'refs/tags/', 'refs/stash'))
    }
