"""Run commands of the shell tool in the OS sandbox, with the access granted by the settings and by an approval."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from tool_approval.core.errors import ApprovalBlocked, printable
from tool_approval.core.presentation import EXTRA_ACCESS
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.tool_checks import take_approval
from tool_approval.os_sandbox import (
    ACCESS_NAMES,
    Access,
    AccessName,
    BubblewrapBackend,
    ExtraAccess,
    OSProfile,
    OSSandboxError,
    UnconfinedBackend,
)
from tool_approval.os_sandbox.backend import ENV
from tool_approval.os_sandbox.before import is_shared
from tool_approval.os_sandbox.git_mounts import (
    Repository,
    git_problem,
    hide_credentials,
    repository_at,
    tracks,
)
from tool_approval.os_sandbox.mounts import plan_mounts, without_missing
from tool_approval.os_sandbox.profile import covers
from tool_approval.os_sandbox.shared import SharedNamespaces, mounts_at
from tool_approval.os_sandbox.toolchains import environment_written
from tool_approval.os_sandbox.tree import Tree
from tool_approval.tools.shell import Explanation, ShellConfig, ShellTool
from tool_approval.tools.shell.environment import clean_environment
from tool_approval.tools.shell.paths import ShellRoot
from tool_approval.tools.turns import Turns

from .background import (
    AT_THE_END,
    BACKGROUND,
    BEFORE_HOST,
    NO_HOST,
    NOT_HERE,
    ONLY_NETWORK,
    BackgroundProcesses,
    in_background,
    less,
)
from .profiles import HOST, MAY_BE_REMOTE, Confinement
from .remembering import Remembering

if TYPE_CHECKING:
    from tool_approval.tools.shell.running import Limits, ShellResult

    from .host import HostCall, HostCommands
    from .sweeping import Sweeping

_NOT_CONFINED: Final = 'The command was not run: the OS sandbox cannot confine it as the settings require: {}.'
_PASSED: Final = ('PATH', 'LC_ALL', 'PAGER', 'GIT_PAGER', 'GIT_TERMINAL_PROMPT', 'TERM')
"""Environment variables that the shell tool sets for commands. Otherwise, commands would get this process's values."""

_MOST_PROCESSES: Final = 4000
"""Maximum number of processes and threads of a command. Builds and browsers use some hundred."""
_MOST_DISK_BYTES: Final = 32 << 30
"""Maximum bytes that a command writes to disk, several times what large builds write. Other programs count, too."""
_MOST_DISK_FILES: Final = 2_000_000
"""Maximum number of files that a command makes, several times what the installation of many packages makes."""
_UNPROTECTED: Final = 'without an OS sandbox, the command can read secrets, such as `.env` and private keys'

BY_A_PERSON: Final = 'A command runs outside of the sandbox only if a person has approved exactly this call.'

_log = logging.getLogger('tool_approval')


class ConfinedShell(ShellTool):
    """Shell tool that runs each command in the OS sandbox, with the profile for approved or pre-approved commands.

    An approved command also gets the extra access that was approved with it. The object is for one conversation: its
    commands share a private `/tmp` and a loopback, and their background processes end with it.
    """

    def __init__(
        self,
        config: ShellConfig,
        confinement: Confinement,
        *,
        cwd: str | os.PathLike[str],
        roots: Mapping[str, ShellRoot] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
        needs_write: Callable[[str], bool] | None = None,
        turns: Turns | None = None,
        can_list_host: bool = True,
    ) -> None:
        """Compile the rules; see `ShellTool`.

        Raises:
            ApprovalConfigError: A rule names a root that does not exist, or contradicts its own examples.
            MissingExtraError: A rule has examples, which need tree-sitter, but tree-sitter is not installed.
        """
        super().__init__(config, cwd=os.fspath(cwd), roots=roots, is_writable=is_writable, needs_write=needs_write)
        self._confinement = confinement
        self._tree = Tree()
        self._turns = turns or Turns()
        self._can_list_host = can_list_host
        self._background = BackgroundProcesses(self._max_output_bytes)
        self._lock = threading.Lock()
        self._shared: SharedNamespaces | OSSandboxError | None = None
        self._mounts: tuple[str, ...] = ()

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Judge a command; see `ShellTool.check_approval`. Without an OS sandbox, the request contains a warning."""
        call = self.host_call(ctx.args)
        if call is not None:
            # One that starts later changes the mark, so the call is refused.
            self._background.end_all(BEFORE_HOST)
            from .host_run import host_request

            return host_request(ctx, call, cwd=self.cwd, mark=self._turns.mark)
        request = super().check_approval(ctx)
        if request is not None and ctx.args.get(BACKGROUND):
            return in_background(request, timeout_s=self.config.timeout_s)
        if request is None or self.can_be_given_access:
            return request
        return request.model_copy(update={'reason': f'{request.reason}; {_UNPROTECTED}'})

    @cached_property
    def _host(self) -> HostCommands:
        from .host import HostCommands

        return HostCommands(self.config.host, self._confinement, cwd=self.cwd, can_be_listed=self._can_list_host)

    def host_call(self, args: Mapping[str, Any]) -> HostCall | None:
        """Return the call that runs outside of the sandbox if a person approves it; `None` for any other call.

        Raises:
            PermissionError: The command requests to run outside, and cannot, or git cannot reach its remote in the
                sandbox. The message says what to do instead.
        """
        command, asked = args.get('command'), _access_names(args.get('access')) if self.can_be_given_access else ()
        if not self.can_be_given_access or not isinstance(command, str):
            return None
        if HOST not in asked and MAY_BE_REMOTE.search(command) is None:
            return None
        if self.explain(command).decision == 'block':
            return None
        call = self._host.find(command, asked)
        if call is not None and args.get(BACKGROUND):
            raise PermissionError(NO_HOST)
        return call

    @property
    def limits(self) -> Limits | None:
        """Limits of a confined command. Only a PID namespace makes sure that all its processes are seen."""
        if self._confinement.backend.name != 'bubblewrap':
            return None
        from tool_approval.tools.shell.running import Limits

        return Limits(
            processes=_MOST_PROCESSES,
            memory_bytes=_memory_of_machine() * 3 // 4,
            folders=tuple({*self._confinement.approved.writable, *self._confinement.unasked.writable}),
            disk_bytes=_MOST_DISK_BYTES,
            disk_files=_MOST_DISK_FILES,
        )

    @property
    def can_be_given_access(self) -> bool:
        """Whether an OS sandbox confines commands. If so, the model can request extra access."""
        return not isinstance(self._confinement.backend, UnconfinedBackend)

    @property
    def can_run_in_background(self) -> bool:
        """Whether commands can run in the background: where a PID namespace ends all their processes."""
        return self._confinement.backend.name == 'bubblewrap'

    def extra_access(self, explanation: Explanation, args: Mapping[str, Any]) -> ExtraAccess:
        """Return the access that a command's words show or the model requests, beyond what the base profile gives.

        If a rule asks about the command, it also gets access to the files of the workspace, unless its programs are
        known only to read. So what a person approves works. In the background, a command gets nothing but the network.

        Raises:
            PermissionError: The model requests an unknown kind of access, or one that the call cannot be given.
        """
        is_in_background = args.get(BACKGROUND, False)
        if not isinstance(is_in_background, bool):
            raise PermissionError('`background` must be true or false.')
        if is_in_background and not self.can_run_in_background:
            raise PermissionError(NOT_HERE)
        if not self.can_be_given_access:
            return super().extra_access(explanation, args)
        requested: list[AccessName] = [name for name in _access_names(args.get('access')) if name != 'host']
        # A server of the same conversation needs no access. If another is meant, the result names the access.
        free: frozenset[AccessName] = frozenset(['network'] if explanation.is_local else ())
        names: set[AccessName] = {*requested, *(explanation.needs - free)}
        if is_in_background:
            if not {'network'}.issuperset(requested):
                raise PermissionError(ONLY_NETWORK)
            return self._lacking([name for name in names if name == 'network'])
        is_asked = explanation.decision == 'ask'
        if is_asked and not explanation.only_reads:
            names.add('write')
        environments = () if 'environment' in requested else self._written_environments(explanation)
        extra = self._lacking(names, environments)
        confinement = self._confinement
        closed = [
            path for path in confinement.reads if path in extra.files or is_asked or self._names(explanation, path)
        ]
        written = [path for path in closed if path in confinement.files] if 'write' in names else []
        return replace(extra, reads=tuple(closed), files=(*extra.files, *written))

    def covers_more_than_one_call(self, extra: ExtraAccess) -> bool:
        """See `ShellTool.covers_more_than_one_call` and `Remembering.covers_more_than_one_call`."""
        return super().covers_more_than_one_call(extra) and self._remembering.covers_more_than_one_call(extra)

    def can_be_remembered(self, explanation: Explanation, extra: ExtraAccess) -> bool:
        """See `ShellTool.can_be_remembered` and `Remembering.can_be_remembered`."""
        return self._remembering.can_be_remembered(explanation, extra)

    def defined_by(self, explanation: Explanation, extra: ExtraAccess) -> Mapping[str, str]:
        """See `ShellTool.defined_by` and `Remembering.defined_by`."""
        return {**super().defined_by(explanation, extra), **self._remembering.defined_by(explanation, extra)}

    @property
    def _remembering(self) -> Remembering:
        return Remembering(confinement=self._confinement, cwd=self.cwd)

    def _names(self, explanation: Explanation, folder: str) -> bool:
        """Whether the words of a command name a path in a folder that is closed to commands without approval.

        The working directory itself needs no naming, so nothing is concluded from it.
        """
        if covers((folder,), self.cwd):
            return False
        words = [word.strip('\'"') for part in explanation.parts for word in part.text.split()]
        # `HEAD:closed/x` names a path, too.
        paths = (each for word in words for each in (word, word.partition(':')[2]) if each)
        is_named = any(covers((folder,), os.path.normpath(os.path.join(self.cwd, path))) for path in paths)
        return is_named or ('git' in words and self._history_of((folder,)) is not None)

    def _history_of(self, folders: Collection[str]) -> str | None:
        """Return the folder of the objects of the repository here, if it tracks a file in one of the folders."""
        found = repository_at(self.cwd) if folders else None
        return None if found is None or not tracks(found, folders) else f'{found.common}/objects'

    def _written_environments(self, explanation: Explanation) -> Collection[str]:
        """Return the environments to which a command may write, judging only by the words of the command."""
        active = dict(self._confinement.approved.variables).get('VIRTUAL_ENV')
        known = self._confinement.environments
        commands = [words for part in explanation.parts if (words := part.text.split())]
        found = (environment_written(each, cwd=self.cwd, environments=known, active=active) for each in commands)
        return {each for each in found if each is not None}

    def _lacking(self, names: Collection[AccessName], environments: Collection[str] = ()) -> ExtraAccess:
        """Return the part of this access that commands do not have without approval.

        Args:
            names: The kinds of access.
            environments: The environments to write to; empty for all environments in the workspace.
        """
        environments = (environments or self._confinement.environments) if 'environment' in names else ()
        profile = self._confinement.approved
        repositories = self._repositories() if 'git' in names else ()
        is_written = 'write' in names or bool(repositories)
        closed = self._confinement.reads
        wanted = ExtraAccess(
            network='network' in names,
            files=tuple(
                path
                for path in self._confinement.files
                if is_written and (path not in closed or covers((path,), self.cwd))
            ),
            git=tuple(each.common for each in repositories),
            # An environment in a root that the settings make read-only stays read-only.
            writes=tuple(path for path in environments if profile.access(os.path.dirname(path)) is Access.WRITE),
        )
        return wanted.beyond(profile)

    def _repositories(self) -> tuple[Repository, ...]:
        """Return the repository of the working directory in a tuple, which is empty if no command can get access."""
        found = repository_at(self.cwd)
        return () if found is None or git_problem(self._confinement.approved, self.cwd) is not None else (found,)

    async def run(self, command: str, access: Collection[str] | None = None, background: bool = False) -> ShellResult:
        """Run a command; see `ShellTool.run`. The profile for approved commands is used only if this call was approved.

        Args:
            command: The command line.
            access: The access that the model requested. The argument is ignored, because only the approval grants
                access.
            background: Whether to start the command and return what it prints at once. It can write only in a
                `/tmp` of its own, and ends with this object at the latest; see `background_processes`.

        Raises:
            ApprovalBlocked: A rule blocks the command, or the OS sandbox cannot confine the command.
            MissingExtraError: tree-sitter is not installed.
            asyncio.CancelledError: This task was cancelled, and the command has been ended.
        """
        # Imported here, as in all that runs commands, because asyncio is slow to import, and judging does not need it.
        import asyncio

        from .sweeping import LOOK_AGAIN_S

        called = {'command': command, 'access': access, BACKGROUND: background}
        bound_to = take_approval(called, defaults={'access': None, BACKGROUND: False})
        host = None if bound_to is None else bound_to.get(EXTRA_ACCESS, {}).get(HOST)
        if host is None and HOST in (access or ()):
            raise ApprovalBlocked('shell', BY_A_PERSON)
        if background and not self.can_run_in_background:
            raise ApprovalBlocked('shell', NOT_HERE)
        try:
            if host is not None:
                result = await self._outside(called, host)
            else:
                while not self._turns.begin():
                    await asyncio.sleep(LOOK_AGAIN_S)
                try:
                    result = await self._run(command, partial(self._confined, bound_to, background))
                finally:
                    self._turns.end(could_change=background or bound_to is not None or self._writes_unasked)
            return replace(result, notes=(*result.notes, *self._background.news()))
        except OSSandboxError as error:
            _log.error('A command was not run: %s', error)
            raise ApprovalBlocked('shell', _NOT_CONFINED.format(printable(error.problem, 300))) from error

    @property
    def _writes_unasked(self) -> bool:
        """Whether a command can change files without approval."""
        profile = self._confinement.unasked
        is_confined = self.can_be_given_access
        return not is_confined or any(profile.access(path) is Access.WRITE for path in self._confinement.roots)

    async def _outside(self, args: Mapping[str, Any], approved: Mapping[str, Any]) -> ShellResult:
        """Run an approved call outside of the sandbox, after the sweep of commands that have ended.

        Raises:
            ApprovalBlocked: Something has changed since the question, or the call cannot run alone.
            OSSandboxError: There is no state folder.
        """
        from tool_approval.tools.shell.running import run_command

        from .host_run import alone, confirmed
        from .sweeping import to_its_end

        repository = repository_at(self.cwd)
        folders = sorted({self.cwd, *(() if repository is None else (repository.common,))})
        async with alone(self._turns, timeout_s=self.config.timeout_s):
            with ExitStack() as opened:
                for folder in folders:
                    journal = await self._sweeping.journal(folder)
                    opened.callback(journal.close)
                    await to_its_end(partial(journal.finish, self._tree))
                argv, environment = await to_its_end(
                    lambda: confirmed(
                        lambda: self.host_call(args), approved, mark=self._turns.mark, state=self._confinement.state
                    )
                )
                return await run_command(
                    argv,
                    cwd=self.cwd,
                    env=environment,
                    timeout_s=self.config.timeout_s,
                    max_bytes=self._max_output_bytes,
                    on_output=self.on_output,
                )

    async def __call__(self, command: str, access: Collection[str] | None = None, background: bool = False) -> str:
        """Run a command, and return the result as text for the model."""
        return (await self.run(command, access, background)).for_model()

    async def background_processes(self, number: int | None = None, *, ends: bool = False) -> str:
        """Return what a background process has printed since the last time, as text for the model. The call needs no
        approval.

        Args:
            number: Number of the process; `None` for a list of all.
            ends: Whether to end the process.
        """
        import asyncio

        return await asyncio.to_thread(self._background.read, number, ends=ends)

    def end_conversation(self) -> tuple[str, ...]:
        """End the background processes, and empty the private `/tmp`. Call this while no other call runs.

        Returns:
            A line about each process that was ended.
        """
        ended = self._background.end_all(AT_THE_END)
        self._background = BackgroundProcesses(self._max_output_bytes)
        with self._lock:
            self._shared = None
        return ended

    @property
    def keeps_tmp(self) -> bool:
        """Whether the private `/tmp` of a command still has what earlier commands of the conversation wrote there."""
        profile, _ = without_missing(self._confinement.unasked)
        return self.shared is not None and plan_mounts(profile, self.cwd).has_own_tmp

    @property
    def shared(self) -> SharedNamespaces | None:
        """Namespaces of the conversation; `None` if each command has a loopback and a `/tmp` of its own."""
        backend = self._confinement.backend
        if not isinstance(backend, BubblewrapBackend):
            return None
        with self._lock:
            mounts = mounts_at(tuple(root.path for root in self._confinement.approved.roots))
            if self._shared is None or mounts != self._mounts:
                self._mounts = mounts
                try:
                    self._shared = backend.share()
                except OSSandboxError as error:
                    _log.warning('%s', error)
                    self._shared = error
            return self._shared if isinstance(self._shared, SharedNamespaces) else None

    @property
    def inherited(self) -> Collection[int]:
        """See `ShellTool.inherited`."""
        shared = self.shared
        return () if shared is None else shared.descriptors

    def _wrapped(self, command: list[str], profile: OSProfile, *, own_tmp: bool = False) -> list[str]:
        """Return the confined command line."""
        backend = self._confinement.backend
        if isinstance(backend, BubblewrapBackend):
            return backend.wrap(command, profile, self.cwd, self.shared, own_tmp=own_tmp)
        return backend.wrap(command, profile, self.cwd)

    async def _confined(
        self, bound_to: Mapping[str, Any] | None, background: bool, argv: list[str], explanation: Explanation
    ) -> ShellResult:
        """Run a program with the profile for approved or pre-approved commands."""
        from tool_approval.tools.shell.running import run_command

        from .result_notes import Place, notes_on
        from .sweeping import to_its_end

        confinement = self._confinement
        if not self.can_be_given_access:
            return await self._started(argv)
        profile, extra = confinement.unasked, ExtraAccess()
        if bound_to is not None:
            extra = ExtraAccess.of_json(bound_to.get(EXTRA_ACCESS, {})).beyond(confinement.approved)
            profile = confinement.given(extra)
        closed = [path for path in confinement.roots if profile.access(path) is Access.NONE]
        # Attack: `git show HEAD:closed/x`, or a script that unpacks an object (`test_git_access.py`).
        history = None if extra.git else self._history_of([path for path in closed if not covers((path,), self.cwd)])
        if history is not None:
            profile = replace(profile, hidden=(*profile.hidden, history))
        base = len(profile.hidden)
        profile = await to_its_end(lambda: self._without_credentials(confinement.closed(profile)))
        values = clean_environment(os.environ)
        # Attack: a relative part of `PATH`, which a backend passes on, finds a program in the workspace.
        passed = {name: values[name] for name in _PASSED} | dict(profile.variables)
        variables = [f'{name}={passed[name]}' for name in _PASSED]
        command = [ENV, *variables, *argv]
        if background:
            # Attack: while an approved command runs, it changes files of that command, such as those that `pip install`
            # unpacks in `/tmp` (test_background.py).
            profile = replace(
                profile, roots=tuple(replace(root, access=min(root.access, Access.READ)) for root in profile.roots)
            )
            # Without this object, which would otherwise live as long as the process.
            run = partial(
                run_command,
                self._wrapped(command, profile, own_tmp=True),
                cwd=self.cwd,
                env=self._env,
                timeout_s=self.config.timeout_s,
                max_bytes=self._max_output_bytes,
                limits=less(self.limits),
                inherited=self.inherited,
            )
            return await self._background.start(explanation.command, run)
        if any(profile.access(path) is Access.WRITE for path in confinement.roots):
            repository = next((each for each in self._repositories() if each.common in extra.git), None)
            result = await self._sweeping.run(
                command, profile, explanation, repository, wrap=self._wrapped, start=self._started
            )
        else:
            result = await self._started(self._wrapped(command, profile))
        place = Place(cwd=self.cwd, approved=confinement.approved, hidden=profile.hidden[base:], lacking=self._lacking)
        notes = notes_on(result, explanation, extra, place, hides_history=history is not None)
        if result.exit_status:
            notes += self._host.note_on(explanation.command, f'{result.stdout}\n{result.stderr}')
        return replace(result, notes=(*result.notes, *notes))

    @property
    def _sweeping(self) -> Sweeping:
        from .sweeping import Sweeping

        return Sweeping(confinement=self._confinement, tree=self._tree, cwd=self.cwd, timeout_s=self.config.timeout_s)

    def _without_credentials(self, profile: OSProfile) -> OSProfile:
        # Attack: a clone below the working directory has the user's token in its address (test_git_access.py).
        roots = [path for path in self._confinement.roots if not is_shared(path)]
        return hide_credentials(profile, self._confinement.state, self._tree.look(roots).repositories)


def _memory_of_machine() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')


def _access_names(asked: object) -> Sequence[AccessName | Literal['host']]:
    """Return the kinds of access that the model requests.

    Raises:
        PermissionError: The value is not a list of known kinds of access.
    """
    if asked is None:
        return ()
    known = (*ACCESS_NAMES, HOST)
    names = cast('Collection[object]', asked) if isinstance(asked, list | tuple) else None
    if names is None or not all(name in known for name in names):
        raise PermissionError(f'`access` must be a list of these names: {", ".join(known)}.')
    return [name for name in known if name in names]
