"""Copy the `.git` folder of a repository for a command, and write the safe changes back.

The copy contains no objects. The command reads the repository's objects through git's alternates, and cannot write
them. Changes to objects, refs, logs, the index and files such as `HEAD` are kept. Changes to all other files in `.git`
are dropped, because these changes could make git run programs.
"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from tool_approval.core.errors import printable

from .backend import OSSandboxBackend
from .git_files import File, LayerError, Reader, is_head, is_kept, lines_of, listed, refs_of
from .git_index import plain_index, submodules
from .git_objects import STASH, NewObjects, ids_of
from .git_writes import Kept, PartlyWritten, write_back
from .mounts import Mount
from .profile import Access, OSProfile, OSSandboxError, covers, trail

_GIT: Final = ('/usr/bin/git', '/usr/local/bin/git', '/run/current-system/sw/bin/git')
"""Paths of git. `PATH` is not searched, because a command may be able to write to a folder in `PATH`."""
_COPIED: Final = frozenset({'refs', 'logs', 'info', 'hooks', 'branches', 'rebase-merge', 'rebase-apply', 'sequencer'})
"""Folders to copy. Other folders, such as those of submodules, can be large, so they are mounted read-only instead."""
_OBJECTS: Final = 'objects-before'
"""Folder in the copied `.git` where the repository's objects are mounted."""
_ALTERNATES: Final = f'../{_OBJECTS}\n'.encode()
_GLOBAL: Final = 'config-of-the-user'
"""File in the copied `.git` from which git reads the user's name and email address."""
_WRITTEN: Final = frozenset({'objects', 'refs', 'logs', 'index', 'packed-refs', 'shallow', 'COMMIT_EDITMSG'})
_STATE: Final = frozenset({'rebase-merge', 'rebase-apply', 'sequencer', 'MERGE_MSG'})
_FINISHED: Final = frozenset({'MERGE_MSG', 'MERGE_MODE', 'MERGE_RR', 'SQUASH_MSG'})
"""Files of a git operation in progress, such as a merge. The command that ends the operation may remove these files."""
_SETTINGS: Final = r'^(user\.(name|email)|init\.defaultbranch|safe\.directory|extensions\..*)$'
_EXTENSIONS: Final = frozenset({'extensions.worktreeconfig', 'extensions.noop', 'extensions.preciousobjects'})
_DERIVED: Final = frozenset({'packed-refs', 'info/refs', 'AUTO_MERGE'})
_LONGEST: Final = 1000
_MOST_REMOVED: Final = 20
"""Maximum number of removed refs. The result lists all removed refs, so that the user can restore them."""


class GitLayer:
    """The copied `.git` of one repository, for one command."""

    def __init__(self, tree: str, staging: str, profile: OSProfile) -> None:
        """Copy the `.git`.

        Args:
            tree: The work tree.
            staging: An empty folder that no command can access.
            profile: The profile of the command.

        Raises:
            LayerError: The repository cannot have a layer.
            OSError: The folder `.git` cannot be read.
        """
        self._tree = tree
        self._git = os.path.join(tree, '.git')
        self._profile = profile
        self._copy = os.path.join(staging, 'git')
        self._check_folder = os.path.join(staging, 'check')
        _check_profile(self._git, profile)
        program = next((path for path in _GIT if os.path.isfile(path)), None)
        if program is None:
            raise LayerError('git is not installed in a system folder')
        self._program = program
        self._old, self._others = self._read(self._git)
        settings = self._settings()
        _check_repository(self._git, self._old, self._others, settings)
        self._make(settings)

    def variables(self) -> dict[str, str]:
        """Return the environment variable that makes git read its global settings from `_GLOBAL`."""
        return {'GIT_CONFIG_GLOBAL': os.path.join(self._git, _GLOBAL)}

    def change(self, mounts: Iterable[Mount]) -> Iterator[Mount]:
        """Return the mounts of a command, with the copy in place of the original `.git`."""
        yield Mount(kind='write', path=self._git, source=self._copy)
        yield Mount(kind='read', path=os.path.join(self._git, _OBJECTS), source=os.path.join(self._git, 'objects'))
        yield from (Mount(kind='read', path=os.path.join(self._git, name)) for name in sorted(self._others))
        # These come later, because the mounts that cover hidden files must be on top.
        yield from (mount for mount in mounts if mount.path != self._git)

    def keep(self, backend: OSSandboxBackend, cancelled: threading.Event) -> tuple[str, ...]:
        """Write the safe changes to the repository, after the command has ended. Drop the changes if `cancelled` is
        set.

        Returns:
            Lines that list dropped changes and removed refs, or the reason why no change was kept.
        """
        try:
            return tuple(self._kept(backend, cancelled))
        except PartlyWritten as error:
            return (f'{self._shown()}: not all changes were kept: {printable(str(error))}',)
        except (LayerError, OSError, OSSandboxError, ValueError) as error:
            return (f'no change to {self._shown()} was kept: {printable(str(error), _LONGEST)}',)

    def _shown(self) -> str:
        return printable(self._git)

    def _read(self, folder: str) -> tuple[dict[str, File], set[str]]:
        """Return the files of a `.git` folder by name, and the names of the folders that were not read."""
        reader = Reader()
        files: dict[str, File] = {}
        others: set[str] = set()
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda each: each.name)
        for each in entries:
            if not each.is_dir(follow_symlinks=False):
                names = [each.name]
            elif each.name in _COPIED:
                names = [f'{each.name}/{name}' for name in reader.below(each.path)]
            else:
                names = []
                others.add(each.name)
            for name in names:
                # The copy must not contain files that are hidden from the command.
                path = os.path.join(folder, name)
                if folder == self._git and (name.endswith('.lock') or self._profile.access(path) is Access.NONE):
                    continue
                # Another git process may remove a file meanwhile.
                with suppress(FileNotFoundError):
                    files[name] = reader.file(path)
        return files, others - {'objects', _OBJECTS}

    def _settings(self) -> list[tuple[str, str]]:
        """Return the git settings that a layer needs, such as the user's name and the repository's format."""
        environment = {name: os.environ[name] for name in ('HOME', 'XDG_CONFIG_HOME') if name in os.environ}
        command = [self._program, '-C', self._tree, 'config', '-z', '--get-regexp', _SETTINGS]
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
        lines = (line.partition('\n') for line in os.fsdecode(done.stdout).split('\0') if line)
        return [(key, value) for key, _, value in lines]

    def _make(self, settings: Sequence[tuple[str, str]]) -> None:
        for folder in ('', 'objects/info', 'objects/pack', _OBJECTS, 'refs/heads', 'refs/tags', *self._others):
            os.makedirs(os.path.join(self._copy, folder), exist_ok=True)
        for name, file in self._old.items():
            path = os.path.join(self._copy, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if file.target:
                os.symlink(file.target, path)
            elif file.data is not None:
                _write(path, file.data)
                os.chmod(path, file.mode | stat.S_IRUSR | stat.S_IWUSR)
        _write(os.path.join(self._copy, 'objects/info/alternates'), _ALTERNATES)
        lines = (
            '[{}]\n\t{} = "{}"\n'.format(*key.split('.'), value.translate(_QUOTED))
            for key, value in settings
            if not key.startswith('extensions.')
        )
        _write(os.path.join(self._copy, _GLOBAL), os.fsencode(''.join(lines)))

    def _kept(self, backend: OSSandboxBackend, cancelled: threading.Event) -> Iterator[str]:
        new, others = self._read(self._copy)
        new.pop(_GLOBAL, None)
        before, after = _kept_names(self._old), _kept_names(new)
        if 'HEAD' not in after:
            raise LayerError('HEAD is missing or invalid')
        branch = os.fsdecode(after['HEAD'].removeprefix(b'ref: ').rstrip(b'\n'))
        if branch in before.keys() - after.keys():
            raise LayerError('the branch that HEAD points to was removed')
        dropped = _lengthen(before, after)
        kept = before.keys() | after.keys()
        differing = {name for name in kept if before.get(name) != after.get(name)}
        changes = {name: after.get(name) for name in differing if _may_change(name, before, after, new)}
        dropped += [*(differing - changes.keys()), *(f'{name}/' for name in others - self._others)]
        dropped += [
            name for name in (self._old.keys() | new.keys()) - kept - _DERIVED if self._old.get(name) != new.get(name)
        ]
        unfinished = sorted(name for name in dropped if name.split('/')[0] in _STATE or name.startswith('BISECT_'))
        if unfinished:
            raise LayerError(f'a git operation is unfinished ({listed(unfinished)}); run all its steps in one command')
        removed = _removed(before, changes)
        objects = NewObjects(
            os.path.join(self._copy, 'objects'), os.path.join(self._git, 'objects'), self._check_folder
        )
        dropped += [f'objects/{name}' for name in objects.take(_ALTERNATES)]
        if changes:
            index = changes.get('index')
            if index is not None:
                changes['index'] = plain_index(index)
            committed = objects.check(backend, self._program, before, changes, cancelled)
            # Attack: `git status` runs git in a submodule, with the configuration of the repository there. `git reset`
            # copies a submodule of a commit into the index.
            for where, paths in (('index', submodules(index or b'')), ('commit', committed)):
                if added := paths - submodules(before.get('index', b'')):
                    raise LayerError(
                        f'the {where} adds a submodule ({listed(sorted(added))}), '
                        'whose configuration git would use; only the user can add submodules'
                    )
            write_back(
                self._git,
                changes,
                before,
                read=self._now,
                objects=objects.folder,
                index_time_ns=0 if index is None else os.lstat(os.path.join(self._copy, 'index')).st_mtime_ns,
            )
        if dropped:
            yield f'dropped from {self._shown()}: {listed(sorted(dropped))}'
        if removed:
            yield f'removed from {self._shown()}: {", ".join(removed)}'

    def _now(self) -> tuple[dict[str, bytes], bytes]:
        files, _ = self._read(self._git)
        packed = files.get('packed-refs', File(b'')).data
        return _kept_names(files), packed or b''


_QUOTED: Final = str.maketrans({'"': r'\"', '\\': r'\\', '\n': r'\n', '\t': r'\t'})


def _write(path: str, data: bytes) -> None:
    with open(path, 'xb') as opened:
        opened.write(data)


def _check_profile(git: str, profile: OSProfile) -> None:
    inner = [path for path in (*(root.path for root in profile.roots), *profile.protected) if path != git]
    if profile.access(os.path.dirname(git)) is not Access.WRITE or profile.access(git) is not Access.READ:
        raise LayerError('the folder that contains `.git` is not writable')
    if any(covers((git,), path) for path in inner) or any(covers((f'{git}/objects',), path) for path in profile.hidden):
        raise LayerError('the settings have a rule for a path inside `.git`')
    if any(step.kind != 'folder' for step in trail(git)[0]):
        raise LayerError('`.git` is not a folder: the repository is elsewhere, as in a linked work tree or a submodule')


def _check_repository(
    git: str, files: Mapping[str, File], others: set[str], settings: Sequence[tuple[str, str]]
) -> None:
    if any(file.data is None for name, file in files.items() if is_head(name) or name.split('/')[0] in _WRITTEN):
        raise LayerError('a file that git writes in `.git` is a symbolic link, or not a regular file')
    if 'HEAD' not in files or not os.path.isdir(os.path.join(git, 'objects')):
        raise LayerError('`.git` is not a repository')
    if 'commondir' in files:
        raise LayerError('the work tree shares the repository of another work tree')
    found = {key for key, _ in settings if key.startswith('extensions.')} - _EXTENSIONS
    if found or 'reftable' in others:
        raise LayerError(f'the format of the repository is not supported ({listed(sorted(found)) or "reftable"})')
    if any(name.startswith('sharedindex.') for name in files):
        raise LayerError('the git index is split, which is not supported')


def _kept_names(files: Mapping[str, File]) -> dict[str, bytes]:
    """Return the files that a layer can write back to `.git`, as a mapping from name to content."""
    contents = {name: file.data for name, file in files.items() if file.data is not None}
    others = {
        name: data for name, data in contents.items() if name == 'index' or name in _FINISHED or is_kept(name, data)
    }
    return refs_of(files) | others


def _may_change(name: str, before: Kept, after: Kept, files: Mapping[str, File]) -> bool:
    """Whether a layer keeps a command's change to the file `name`."""
    data = after.get(name)
    if data is None and name in files:
        # Attack: a ref whose file has invalid content would be treated as deleted.
        return False
    if name in _FINISHED:
        return data is None
    if name == 'index':
        return data is not None
    if not name.startswith('logs/'):
        return True
    ref = name.removeprefix('logs/')
    if ref != 'HEAD' and ref not in after:
        return data is None
    return data is not None


def _lengthen(before: Kept, after: dict[str, bytes]) -> list[str]:
    """Restore lines that a command removed from reflogs, and return the names of these reflogs. The reflog of the stash
    is not restored. Without the reflogs, commits that are on no branch could not be found, and `git gc` would
    delete them.
    """
    shortened = [
        name
        for name, data in after.items()
        if name.startswith('logs/') and name != STASH and not data.startswith(before.get(name, b''))
    ]
    for name in shortened:
        old = dict.fromkeys(lines_of(before[name]))
        new = [line for line in lines_of(after[name]) if line not in old]
        after[name] = before[name] + b''.join(new)
    return shortened


def _removed(before: Kept, changes: Mapping[str, bytes | None]) -> list[str]:
    """Return the removed refs and stashes that were the last reference to an object, each with the object's name.

    Raises:
        LayerError: More refs and stashes were removed than the result can list.
    """
    logged = {
        each
        for name, data in changes.items()
        if data is not None and name.startswith('logs/')
        for line in lines_of(data[len(before.get(name, b'')) :])
        for each in (line[:40], line[41:81])
    }
    refs = [name for name in changes if name.startswith('refs/') and not name.startswith('refs/remotes/')]
    gone = {(name, each) for name in refs for each in ids_of({name: before.get(name)})}
    if STASH in changes:
        gone |= {('refs/stash', each) for each in ids_of({STASH: before.get(STASH)})}
    left = ids_of({name: data for name, data in {**before, **changes}.items() if name.startswith(('refs/', STASH))})
    found = sorted(f'{name} (was {each.decode()})' for name, each in gone if each not in left and each not in logged)
    if len(found) > _MOST_REMOVED:
        raise LayerError(f'{len(found)} branches, tags or stashes would be removed, too many to list')
    return found
