"""Let a command write to the `.git` of a repository, except for what decides which programs git runs.

Files and folders that decide this, such as `config` and `hooks`, are mounted read-only. Names that must not appear
cannot be mounted, so `sweep` looks for them after the command. A copy of the repository, from which checked changes are
written back, could not let a merge or a rebase go on in a second command, nor work with linked work trees.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import subprocess
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tool_approval.storage.private_file import make_private_folder

from .git_forms import MOST_INDEX_BYTES, TOP, inside, is_git_name, modules, read, text
from .profile import Access, OSProfile, OSSandboxError, Root, covers, lineage

_GIT: Final = ('/usr/bin/git', '/usr/local/bin/git', '/run/current-system/sw/bin/git')
"""Paths of git. `PATH` is not searched, because a command may be able to write to a folder in `PATH`."""
DECIDES: Final = ('config', 'config.worktree', 'hooks', 'commondir', 'remotes', 'branches', 'objects/info/alternates')
"""Names in a repository that decide which programs git runs, and which files it takes for the repository."""
LINKED: Final = ('commondir', 'gitdir', 'config.worktree')
"""The same, in the folder of a linked work tree."""
HOLDER: Final = b'.\n'
"""Content of a `commondir` that means what its absence means. It holds the name, so that no command can make it."""
MAKES: Final = re.compile(r'\bgit\b.*\s(?:clone|init|worktree|submodule)\b', re.DOTALL)
"""Commands that may make a repository with a remote, or one that is elsewhere."""
PACKS: Final = re.compile(r'\bgit\b.*\s(?:gc|repack|prune-packed|maintenance|multi-pack-index)\b', re.DOTALL)
"""Commands that may change existing packs."""
_MOST_PACKS: Final = 200
_SETTINGS: Final = (
    r'^(user\.(name|email)|init\.defaultbranch|core\.(autocrlf|eol|excludesfile)'
    r'|filter\..*\.(clean|smudge|process|required))$'
)
_PATIENCE_S: Final = 10


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository, as git finds it from a folder."""

    tree: str
    """Top of the work tree."""
    git: str
    """Folder of the work tree: `.git`, or a folder in `worktrees` or `modules` of a repository."""
    common: str
    """Folder with the objects, refs and configuration. For a submodule, that of the outermost repository around it."""

    @property
    def is_linked(self) -> bool:
        """Whether the repository is elsewhere and names this work tree. The author of a work tree cannot forge this."""
        named = text(f'{self.git}/gitdir').strip()
        return self.git.startswith(f'{self.common}/worktrees/') and named == f'{self.tree}/.git'

    @property
    def folders(self) -> tuple[str, ...]:
        """The repository, and those of its submodules."""
        return (self.common, *modules(self.common))


def repository_at(folder: str) -> Repository | None:
    """Return the repository that git uses in a folder, without running git; `None` if there is none."""
    tree = next(
        (each for each in lineage(os.path.realpath(folder)) if os.path.lexists(os.path.join(each, '.git'))), None
    )
    if tree is None or os.path.islink(f'{tree}/.git'):
        return None
    git = f'{tree}/.git'
    if os.path.isfile(git):
        git = os.path.join(tree, text(git).strip().removeprefix('gitdir: '))
    git = os.path.realpath(git)
    common = os.path.realpath(os.path.join(git, text(f'{git}/commondir').strip()))
    outer, is_module, _ = common.partition('/.git/modules/')
    common = f'{outer}/.git' if is_module else common
    return Repository(tree=tree, git=git, common=common) if os.path.isdir(f'{common}/objects') else None


def tracks(repository: Repository, folders: Collection[str]) -> bool:
    """Return whether the index of a repository has a file in one of the folders, or cannot be read.

    Files that only earlier commits have are not found.
    """
    below = [os.path.relpath(path, repository.tree) for path in folders if covers((repository.tree,), path)]
    index = f'{repository.git}/index'
    if not below or not os.path.lexists(index):
        return False
    data = read(index, MOST_INDEX_BYTES)
    # Version 4 leaves out the beginning of a path that the one before it has. A split index is in two files.
    is_whole = data is not None and data[4:8] in (b'\0\0\0\2', b'\0\0\0\3') and b'link' not in data[-400:]
    return (
        not is_whole or data is None or any(os.fsencode(path) + end in data for path in below for end in (b'/', b'\0'))
    )


def git_problem(profile: OSProfile, folder: str) -> str | None:
    """Return why commands in a folder cannot be given access to its repository; `None` if they can."""
    found = repository_at(folder)
    if found is None:
        return 'there is no repository in this directory or above it, or its `.git` is a symbolic link or broken'
    if profile.access(found.tree) is not Access.WRITE:
        return f'the repository is in {found.tree}: start in that directory, or add it to `sandbox.paths`'
    # A root may be read-only, blocked or hidden inside of `.git`: the settings are never weakened.
    inner = next((each.path for each in profile.roots if covers((found.common,), each.path)), None)
    hidden = next((path for path in profile.hidden if covers((found.common,), path)), None)
    if inner is not None or hidden is not None or covers(profile.hidden, found.common):
        return f'the settings have a rule for {inner or hidden or found.common}'
    if profile.access(found.common) is Access.NONE and not found.is_linked:
        return f'the repository is in {found.common}, which is outside of the directories in the settings'
    link = next((path for path in guards(found.folders) if os.path.islink(path)), None)
    return None if link is None else f'{link} is a symbolic link'


def guards(folders: Iterable[str]) -> Iterator[str]:
    """Yield the paths in repositories that no command may change: those that decide, and what is not git's own."""
    for folder in folders:
        if not os.path.isdir(folder) or os.path.islink(folder):
            yield folder
            continue
        yield from (f'{folder}/{name}' for name in DECIDES)
        # Other programs may keep a configuration there, or the user an included file.
        yield from (path for path in inside(folder) if TOP.fullmatch(os.path.basename(path)) is None)


_LEADS: Final = re.compile(
    r'\s*(?:\[(?:[^\]"]|"[^"]*")*\]\s*)?(hookspath|path)\s*=\s*"?([^"#;]+?)"?\s*(?:[#;].*)?', re.IGNORECASE
)
_MOST_INCLUDED: Final = 50


def led_to(folder: str) -> Iterator[str]:
    """Yield the folders of hooks and the included files that the configuration of a repository names, and the targets
    of linked hooks.

    The configuration of the user counts for paths in the work tree.
    """
    tree = folder.removesuffix('/.git')
    seen: set[str] = set()
    for name in ('config', 'config.worktree'):
        yield from _led_to(f'{folder}/{name}', tree, seen)
    # Attack: the user has `core.hooksPath = .githooks` for all repositories (test_git_mounts.py).
    base = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')
    for config in ('/etc/gitconfig', f'{base}/git/config', os.path.expanduser('~/.gitconfig')):
        yield from (path for path in _led_to(config, tree, seen) if covers((tree,), path))
    yield from (os.path.realpath(path) for path in inside(f'{folder}/hooks') if os.path.islink(path))


def _led_to(config: str, tree: str, seen: set[str]) -> Iterator[str]:
    config = os.path.realpath(config)
    if config in seen or len(seen) > _MOST_INCLUDED:
        return
    seen.add(config)
    for line in text(config).replace('\\\n', '').split('\n'):
        if (found := _LEADS.fullmatch(line)) is not None:
            # Relative to the work tree for hooks, and to the file itself for an included file.
            is_hooks = found[1].casefold() == 'hookspath'
            path = os.path.join(tree if is_hooks else os.path.dirname(config), os.path.expanduser(found[2]))
            yield os.path.normpath(path)
            if not is_hooks:
                yield from _led_to(path, tree, seen)


def opened(profile: OSProfile, repository: Repository, *, packs: bool) -> OSProfile:
    """Return a profile with the repository writable, except for what decides which programs git runs.

    Args:
        profile: The profile of the command.
        repository: The repository. `git_problem` has accepted it.
        packs: Whether the command may also change existing packs, as `git gc` does.
    """
    common = repository.common
    # A settings file inside of `.git` keeps its protection.
    inner = (f'{common}/modules/', f'{common}/worktrees/')
    own = {path for path in profile.protected if path == common or path.startswith(inner)}
    kept = [path for path in guards(repository.folders) if os.path.lexists(path)]
    stored = f'{common}/objects/pack'
    if not packs:
        kept += [path for path in inside(stored) if path.endswith(('.pack', '.idx'))][:_MOST_PACKS]
    roots = () if profile.root_of(common) is not None else (Root(path=common, access=Access.WRITE),)
    return replace(profile, protected=(*(set(profile.protected) - own), *kept), roots=(*profile.roots, *roots))


_IN_URL: Final = re.compile(r'(?i)\b((?:https?|ftps?)://)[^/\s"]*@')
_SECRET: Final = re.compile(r'(?im)^(.*?\b(?:extraheader|\w*(?:password|token|secret))\s*=).*$')


def without_credentials(config: str) -> str:
    """Return the text of a configuration without user names and passwords in URLs, headers, passwords and tokens."""
    return _SECRET.sub(r'\1', _IN_URL.sub(r'\1', config))


def hide_credentials(profile: OSProfile, state: str | None, repositories: Iterable[str] = ()) -> OSProfile:
    """Return the profile with a copy in place of each configuration of a repository that has credentials.

    Args:
        profile: The profile of a command.
        state: The user's state folder, to which no command has access; `None` if there is none.
        repositories: Repositories beside those that the profile protects.

    Raises:
        OSSandboxError: A copy cannot be made.
    """
    copies: list[tuple[str, str]] = []
    protected = (path for path in profile.protected if is_git_name(os.path.basename(path)))
    # Attack: `x/.git` is a link to `~/.aws`, whose `config` commands could then read (test_git_mounts.py).
    real = (
        path for path in repositories if os.path.isdir(path) and not any(map(os.path.islink, (path, f'{path}/modules')))
    )
    for git in dict.fromkeys((*protected, *real)):
        for path in (f'{folder}/{name}' for folder in (git, *modules(git)) for name in ('config', 'config.worktree')):
            config = text(path)
            shown = without_credentials(config)
            if shown == config:
                continue
            try:
                copies.append((path, _copy(path, os.fsencode(shown), state)))
            except OSError as error:
                raise OSSandboxError(f'its credentials cannot be hidden: {error}', path=path) from error
    return replace(profile, copies=tuple(copies))


def _copy(path: str, content: bytes, state: str | None) -> str:
    if state is None:
        raise FileNotFoundError('there is no home directory')
    make_private_folder(folder := Path(state, 'configs'))
    copy = f'{folder}/{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}'
    if read(copy) != content:
        # Commands that run now keep the old file.
        new = f'{copy}.{secrets.token_hex(4)}'
        with open(new, 'xb', opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
        os.replace(new, copy)
    return copy


def user_settings(repository: Repository) -> tuple[list[tuple[str, str]], str | None]:
    """Return the user's git settings that a command needs, as pairs of key and value, and the user's ignore file.

    Raises:
        OSError: Git cannot be started.
        subprocess.TimeoutExpired: Git does not answer.
    """
    program = next((path for path in _GIT if os.path.isfile(path)), None)
    if program is None:
        return [], None
    environment = {name: os.environ[name] for name in ('HOME', 'XDG_CONFIG_HOME') if name in os.environ}
    command = [program, '-C', repository.tree, 'config', '-z', '--get-regexp', _SETTINGS]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False
    )
    lines = (line.partition('\n') for line in os.fsdecode(done.stdout).split('\0') if line)
    pairs = [(key, value) for key, _, value in lines]
    base = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')
    ignored = dict(pairs).get('core.excludesfile', f'{base}/git/ignore')
    ignored = os.path.realpath(os.path.expanduser(ignored))
    # `git gc` would rewrite packs that are read-only.
    pairs = [pair for pair in pairs if pair[0] != 'core.excludesfile'] + [
        ('gc.auto', '0'),
        ('maintenance.auto', 'false'),
    ]
    if read(ignored) is None:
        return pairs, None
    return [*pairs, ('core.excludesfile', ignored)], ignored
