"""Find what git would run outside of the sandbox, and refuse what cannot be shown.

Everything is allowed by name: sub-commands, options, forms of addresses, and keys of the repository's configuration.
A list of dangerous keys would have to be complete, and each version of git adds some. Keys of the user in the sandbox,
or a socket of the agent that holds them, could sign anything for any host, not only the push that was shown.
Sources: git-config(1), git-push(1), git-fetch(1), githooks(5), and `enter_repo`, `get_remote_url` in git's source.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .git_forms import read
from .git_mounts import Repository, repository_at
from .host_program import ASKS_FOR_PASSWORDS, HostPlace, Run

_QUIET: Final = ('-q', '--quiet', '-v', '--verbose', '--progress', '--no-progress', '-4', '--ipv4', '-6', '--ipv6')
_DRY: Final = ('--dry-run', '--porcelain', '--atomic', '--tags', '-f', '--force', *_QUIET)
OPTIONS: Final = {
    'push': re.compile(
        r'-[dnu]|--(?:set-upstream|delete|all|branches|follow-tags|no-follow-tags|prune|force-if-includes'
        r'|force-with-lease(?:=[\w./:^-]+)?)|' + '|'.join(_DRY)
    ),
    'fetch': re.compile(
        r'-[pPtn]|--(?:prune|prune-tags|no-tags|unshallow|no-auto-gc|depth=\d+|deepen=\d+|shallow-since=[\w:. -]+)|'
        + '|'.join(_DRY)
    ),
    'ls-remote': re.compile(r'-[ht]|--(?:heads|branches|tags|refs|symref|exit-code)|' + '|'.join(_QUIET)),
}
"""Sub-commands that can run outside of the sandbox, with their options. An option has to be written in full."""
_KEYS: Final = re.compile(
    r'core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol'
    r'|safecrlf|longpaths|quotepath|sparsecheckout|sparsecheckoutcone|untrackedcache|splitindex|commitgraph|hidedotfiles)'
    r'|extensions\.(?:objectformat|worktreeconfig|refstorage)|index\.\w+|feature\.\w+|init\.defaultbranch'
    r'|user\.(?:name|email|signingkey)|commit\.gpgsign|tag\.gpgsign|color\..*|gui\..*|lfs\.repositoryformatversion'
    r'|remote\.pushdefault|remote\..+\.(?:url|pushurl|fetch|tagopt|prune|gh-resolved)'
    r'|branch\..+\.(?:remote|pushremote|merge|rebase|description|vscode-merge-base|github-pr-\S+|gh-merge-base)'
    r'|branch\.auto\w+|push\.(?:default|followtags|autosetupremote|recursesubmodules)'
    r'|fetch\.(?:prune|prunetags|recursesubmodules)|pull\.(?:rebase|ff)|merge\.(?:ff|conflictstyle)|rerere\.\w+'
    r'|rebase\.(?:autosquash|autostash)|submodule\.(?:recurse|active|.+\.(?:url|active|branch))|core\.hookspath',
    re.DOTALL,
)
"""Keys of a repository's configuration with which git runs no program. Addresses are shown, hooks are looked for."""
_REFSPEC: Final = re.compile(r'[+^]?refs/[\w./*-]+(?::refs/(?:remotes|tags|notes)/[\w./*-]+)?')
_NAME: Final = re.compile(r'[A-Za-z0-9_][\w./-]*')
_REF: Final = re.compile(r'[+^]?[\w@][\w./@{}~^+*-]*(?::[\w][\w./*-]*)?|:[\w][\w./*-]*')
_WEB: Final = re.compile(r'https?://(?:[^@/\\?#\s]*@)?[\w.-]+(?::\d+)?(?:/[!-~]*)?')
_USER: Final = re.compile(r'^(https?://)[^@/\\?#]*@')
"""The part of an address that may be a password. Everything else is shown: it says where git goes."""
_SSH: Final = re.compile(r'ssh://(?:[\w.-]+@)?\w[\w.-]*(?::\d+)?/[!-~]*|(?:[\w.][\w.-]*@)?\w[\w.-]*:(?!:|//)[!-~]*')
_ELSEWHERE: Final = re.compile(rb'hookspath|worktreeconfig|\[\s*include', re.IGNORECASE)
"""Found in a configuration whose hooks may be anywhere."""
PAIRS: Final = (
    ('core.fsmonitor', 'false'),
    ('core.alternateRefsCommand', 'true'),
    ('safe.bareRepository', 'explicit'),
    ('gc.auto', '0'),
    ('maintenance.auto', 'false'),
    ('submodule.recurse', 'false'),
    ('push.recurseSubmodules', 'no'),
    ('fetch.recurseSubmodules', 'no'),
    ('push.gpgSign', 'false'),
)
"""Settings that hold for every git that runs outside of the sandbox, also if another program runs it."""
TOLD: Final = 'Ask the user to run it.'


class Setting(NamedTuple):
    """One setting of git."""

    scope: str
    """`system`, `global`, `local` or `worktree`."""
    origin: str
    """File that has the setting, after `file:`."""
    key: str
    """Key, such as `remote.origin.url`."""
    value: str
    """Value as it is written."""


@dataclass(frozen=True, kw_only=True)
class Remote:
    """The remote of a command."""

    name: str
    """Name in the configuration."""
    urls: tuple[str, ...]
    """Addresses that git would use, with credentials."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The addresses, without credentials."""
        return tuple(_USER.sub(r'\1', url) for url in self.urls)

    def needs_the_user(self, *, pushes: bool) -> bool:
        """Whether git cannot reach an address without the user's keys and logins, as far as the address shows it."""
        return any(_needs_the_user(url, pushes=pushes) for url in self.urls)

    @property
    def folders(self) -> tuple[str, ...]:
        """Addresses that are folders of this machine."""
        return tuple(url.removeprefix('file://') for url in self.urls if _kind(url) == 'folder')


def _kind(url: str) -> str | None:
    if _WEB.fullmatch(url) is not None:
        return 'web'
    path = url.removeprefix('file://')
    if path.startswith('/') and '\n' not in path:
        return 'folder'
    return 'ssh' if _SSH.fullmatch(url) is not None else None


def _needs_the_user(url: str, *, pushes: bool) -> bool:
    kind = _kind(url)
    return kind == 'ssh' or (kind == 'web' and (pushes or '@' in url.partition('://')[2].partition('/')[0]))


@dataclass(frozen=True, kw_only=True)
class HostGit:
    """Git in one repository, as it would run outside of the sandbox."""

    repository: Repository
    """The repository of the working directory."""
    place: HostPlace
    """Where git runs."""
    run: Run
    """Runs git."""

    def settings(self) -> list[Setting]:
        """Return all settings that git would use, in the order in which the last one of a key counts.

        Raises:
            PermissionError: Git finds another repository here, or cannot read the configuration.
        """
        status, told = self.run(['rev-parse', '--absolute-git-dir', '--git-common-dir', '--is-bare-repository'])
        lines = os.fsdecode(told).split('\n')
        here = self.repository
        # Attack: a folder of the workspace looks like a bare repository, so that git reads its configuration.
        is_same = status == 0 and [os.path.realpath(os.path.join(self.place.cwd, each)) for each in lines[:2]] == [
            here.git,
            here.common,
        ]
        if not is_same or lines[2] != 'false':
            raise PermissionError(f'Git uses another repository here than the one of the working directory. {TOLD}')
        status, listed = self.run(['config', '--list', '-z', '--show-scope', '--show-origin', '--includes'])
        fields = os.fsdecode(listed).split('\0')[:-1]
        if status or len(fields) % 3:
            raise PermissionError(f'The configuration of the repository cannot be read. {TOLD}')
        found: list[Setting] = []
        for scope, origin, pair in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
            key, _, value = pair.partition('\n')
            # Those of this process hold for every command.
            found += [Setting(scope, origin, key, value)] if scope != 'command' else []
        return found

    def check(self, settings: Sequence[Setting]) -> None:
        """Refuse a repository whose configuration could make git run a program, or use an address that is not shown.

        Raises:
            PermissionError: A key is not known to be harmless.
        """
        for scope, origin, key, value in settings:
            if self._is_users(scope, origin):
                continue
            is_wrong = _KEYS.fullmatch(key) is None or (key.endswith('.fetch') and _REFSPEC.fullmatch(value) is None)
            if is_wrong:
                raise PermissionError(
                    f'The configuration of the repository has `{key}`, so git could run a program or use an address '
                    f'that no question shows. {TOLD}'
                )
        common = self.repository.common
        for name in ('remotes', 'branches'):
            if os.path.isdir(f'{common}/{name}') and os.listdir(f'{common}/{name}'):
                raise PermissionError(f'{common}/{name} has remotes in an old form, which no question shows. {TOLD}')

    def _is_users(self, scope: str, origin: str) -> bool:
        path = origin.removeprefix('file:')
        return scope in ('system', 'global') and path.startswith('/') and not self.place.is_written(path)

    def programs(self, settings: Sequence[Setting], kinds: Sequence[str | None]) -> Iterator[str]:
        """Yield a line for each program of the user that connects or gives credentials for addresses of these kinds.

        Raises:
            PermissionError: Commands can write to such a program.
        """
        users = [(key, value) for scope, origin, key, value in settings if self._is_users(scope, origin)]
        commands: list[tuple[str, str]] = []
        if 'web' in kinds:
            helpers = [value for key, value in users if re.fullmatch(r'credential\.(?:.*\.)?helper', key, re.DOTALL)]
            commands += [('credential helper', value) for value in dict.fromkeys(helpers) if value]
        if 'ssh' in kinds:
            self.place.check_configuration('ssh')
            given = self.place.environment
            last = dict(users)
            connects = given.get('GIT_SSH_COMMAND') or last.get('core.sshcommand') or given.get('GIT_SSH')
            commands.append(('connects with', connects or self.place.program('ssh')))
        asks = [self.place.environment[name] for name in ASKS_FOR_PASSWORDS if self.place.environment.get(name)]
        asks += [value for key, value in users if key == 'core.askpass']
        commands += [('asks for passwords with', each) for each in dict.fromkeys(asks) if kinds and kinds != ['folder']]
        for what, command in commands:
            if (path := next(self.place.named_paths(command), None)) is not None:
                raise PermissionError(f'The program {path!r} of {what!r} is where commands can write. {TOLD}')
            yield f'{what}: {command}'

    def hook(self, settings: Sequence[Setting]) -> tuple[str, bytes] | None:
        """Return the path and the content of the hook `pre-push`; `None` if there is none.

        Raises:
            PermissionError: A command could have written the hook, or it cannot be read.
        """
        named = [value for _, _, key, value in settings if key == 'core.hookspath']
        common = self.repository.common
        folder = os.path.expanduser(named[-1]) if named else f'{common}/hooks'
        path = os.path.join(self.repository.tree, folder, 'pre-push')
        if not os.path.lexists(path) or (os.path.isfile(path) and not os.access(path, os.X_OK)):
            return None
        # No command can write to `hooks`, also with access to `.git`.
        is_own = path == f'{common}/hooks/pre-push' and not os.path.islink(f'{common}/hooks')
        content = read(path)
        if content is None or not (is_own or not self.place.is_written(path)):
            raise PermissionError(f'The hook {path} is where commands can write, or cannot be read. {TOLD}')
        return path, content

    def remote(self, words: Sequence[str], settings: Sequence[Setting]) -> Remote:
        """Return the remote of a command.

        Args:
            words: The words of `git push`, for example, from the sub-command.
            settings: The result of `settings`.

        Raises:
            PermissionError: The command names no remote of the configuration.
        """
        kind, operands = words[0], [each for each in words[1:] if not each.startswith('-')]
        values = {key: value for _, _, key, value in settings}
        if operands:
            name = operands[0]
        else:
            status, head = self.run(['symbolic-ref', '-q', '--short', 'HEAD'])
            branch = os.fsdecode(head).strip() if status == 0 else ''
            keys = [f'branch.{branch}.pushremote', 'remote.pushdefault'] if kind == 'push' else []
            name = next((values[key] for key in (*keys, f'branch.{branch}.remote') if key in values), 'origin')
        if _NAME.fullmatch(name) is None or f'remote.{name}.url' not in values:
            raise PermissionError(f'{name!r} is not the name of a remote here, and only a remote of the repository can '
                                  f'be used outside of the sandbox. {TOLD}')  # fmt: skip
        push = ['--push'] if kind == 'push' else []
        status, found = self.run(['remote', 'get-url', '--all', *push, name])
        if status:
            raise PermissionError(f'The address of the remote {name!r} cannot be read. {TOLD}')
        return Remote(name=name, urls=tuple(os.fsdecode(found).split('\n')[:-1]))

    def checked(self, words: Sequence[str], remote: Remote, settings: Sequence[Setting]) -> list[str]:
        """Check the words of a command, and return them with the remote named, and without submodules.

        Args:
            words: The words of `git push`, for example, from the sub-command.
            remote: The remote of the command.
            settings: The result of `settings`.

        Raises:
            PermissionError: An option is not known to be harmless, or an address is of another form.
        """
        kind = words[0]
        options = [each for each in words[1:] if each.startswith('-')]
        operands = [each for each in words[1:] if not each.startswith('-')] or [remote.name]
        wrong = [each for each in options if OPTIONS[kind].fullmatch(each) is None]
        wrong += [each for each in operands[1:] if _REF.fullmatch(each) is None]
        if wrong:
            raise PermissionError(
                f'`git {kind}` takes no {wrong[0]!r} outside of the sandbox. Options have to be written in '
                'full, and values with `=`.'
            )
        for url, shown in zip(remote.urls, remote.shown, strict=True):
            if _kind(url) is None:
                raise PermissionError(f'The address {shown!r} of {remote.name!r} is of an unknown form. {TOLD}')
        for folder in remote.folders:
            self._check_folder(folder, settings)
            if self.place.is_written(folder):
                raise PermissionError(
                    f'The repository {folder} is where commands can write, and git would run its hooks. Use '
                    "access=['git'] instead."
                )
        return [kind, *options, *([] if kind == 'ls-remote' else ['--no-recurse-submodules']), '--', *operands]

    def _check_folder(self, folder: str, settings: Sequence[Setting]) -> None:
        """Refuse a repository of this machine whose hooks would be others than those that the question shows.

        Git runs them by the configuration of that repository and of the user, not by that of this repository.
        """
        inner = f'{folder}/.git' if os.path.lexists(f'{folder}/.git') else folder
        config = read(f'{inner}/config')
        is_plain = os.path.isdir(inner) and not os.path.islink(inner) and os.path.isfile(f'{inner}/HEAD')
        is_users = any(key == 'core.hookspath' and self._is_users(scope, origin) for scope, origin, key, _ in settings)
        if not is_plain or config is None or is_users or _ELSEWHERE.search(config) is not None:
            raise PermissionError(f'It cannot be shown which hooks git would run in {folder}. {TOLD}')


def kinds_of(remote: Remote) -> list[str | None]:
    """Return the kind of each address of a remote: `web`, `ssh` or `folder`."""
    return [_kind(url) for url in remote.urls]


def hooks_in(folder: str) -> list[str]:
    """Return the names of the hooks of a repository on this machine that a push can run."""
    inner = f'{folder}/.git/hooks' if os.path.isdir(f'{folder}/.git') else f'{folder}/hooks'
    names = sorted(os.listdir(inner)) if os.path.isdir(inner) else []
    return [name for name in names if not name.endswith('.sample') and os.access(f'{inner}/{name}', os.X_OK)]


def digest_of(settings: Sequence[Setting], hook: tuple[str, bytes] | None) -> str:
    """Return a digest of everything that decides what git does."""
    found = hashlib.sha256(repr(list(settings)).encode(errors='surrogateescape'))
    found.update(b'' if hook is None else b'\0'.join([os.fsencode(hook[0]), hook[1]]))
    return found.hexdigest()


def repository_here(place: HostPlace) -> Repository | None:
    """Return the repository of the working directory, or `None`.

    Raises:
        PermissionError: There is something that git might take for a repository.
    """
    found = repository_at(place.cwd)
    if found is None or (found.common != f'{found.tree}/.git' and not found.is_linked):
        folder = place.cwd
        while folder != os.path.dirname(folder):
            if os.path.lexists(f'{folder}/.git') or os.path.lexists(f'{folder}/HEAD'):
                raise PermissionError(f'The repository in {folder} is of a form that no question can show. {TOLD}')
            folder = os.path.dirname(folder)
        return None
    return found
