"""Run commands of the shell tool in the OS sandbox, with the access granted by the settings and by an approval."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from tool_approval.core.errors import ApprovalBlocked, printable
from tool_approval.core.presentation import EXTRA_ACCESS
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.tool_checks import take_approval
from tool_approval.os_sandbox import (
    ACCESS_NAMES,
    Access,
    AccessName,
    ExtraAccess,
    OSProfile,
    OSSandboxBackend,
    OSSandboxError,
    UnconfinedBackend,
)
from tool_approval.os_sandbox.backend import ENV
from tool_approval.os_sandbox.layer import layer_problem, open_layer
from tool_approval.os_sandbox.mounts import as_mounted, plan_mounts
from tool_approval.os_sandbox.names_layer import names_problem
from tool_approval.os_sandbox.profile import lineage
from tool_approval.os_sandbox.toolchain_layouts import environments_in
from tool_approval.os_sandbox.toolchains import environment_written
from tool_approval.tools.file_sandbox import FileAccess, FileSandbox
from tool_approval.tools.shell import Explanation, ShellConfig, ShellResult, ShellTool
from tool_approval.tools.shell.environment import clean_environment
from tool_approval.tools.shell.paths import ShellRoot

REFUSED: Final = (
    'File and shell tools are refused: the settings require an OS sandbox, and none works here. Tell the user, because '
    'no call of yours can change this.'
)
"""Message to the model."""

_NOT_CONFINED: Final = 'The command was not run: the OS sandbox cannot confine it as the settings require.'
_PASSED: Final = ('PATH', 'LC_ALL', 'PAGER', 'GIT_PAGER', 'GIT_TERMINAL_PROMPT', 'TERM')
"""Environment variables that the shell tool sets for commands. Otherwise, commands would get this process's values."""

_NOT_FOUND: Final = 127
"""Exit status of bash for a program that does not exist."""
_UNASKED: Final = (
    'The command ran without approval, so it could not write in this directory. To change a file, use the file tools, '
    'which ask the user.'
)
_SECRET: Final = 'No command can read {}, even with approval or extra access: the file may hold secrets. Tell the user.'
_WHAT_IS_FOUND: Final = (
    'A program was not found. Commands can use programs of the system, of the active environment and of the toolchains '
    'that `tool-approval doctor` lists. Call a program of the project by path, such as `.venv/bin/pytest`. For other '
    'programs, the user can activate an environment and restart the agent, or add a folder to `sandbox.toolchains`.'
)
_NOT_ACTIVE: Final = (
    'This directory has {0}, which looks like a virtual environment, but is not active, and was not checked. '
    'Call its programs by path, such as `{0}/bin/python`.'
)

_MOST_SECRETS: Final = 500
"""Maximum number of secrets to hide. Each hidden secret adds a mount to the command line of the OS sandbox."""
_UNPROTECTED: Final = 'without an OS sandbox, the command can read secrets, such as `.env` and private keys'

T = TypeVar('T')

_log = logging.getLogger('tool_approval')


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """OS sandbox for commands: a backend and its profiles."""

    backend: OSSandboxBackend
    """Backend that confines commands."""
    approved: OSProfile
    """Profile of a command that was approved by an approver, the memory, or the mode `approve_all`."""
    unasked: OSProfile
    """Profile of a pre-approved command. Pre-approved commands cannot access paths for which the file tools need
    approval."""
    secrets: Callable[[], Collection[str]] = tuple
    """Function that returns the files and folders that currently contain secrets."""
    environments: tuple[str, ...] = ()
    """Folders of environments, such as Python's virtual environments, in the workspace. All commands can read these
    folders. Only a command approved with the extra access `environment` can write to the folders."""

    def closed(self, profile: OSProfile) -> OSProfile:
        """Return the profile with all current secrets hidden.

        Raises:
            OSSandboxError: There are too many secrets.
        """
        secrets = [path for path in self.secrets() if profile.access(path) > Access.NONE]
        if len(secrets) > _MOST_SECRETS:
            raise OSSandboxError(
                f'more than {_MOST_SECRETS} files look like secrets; list the harmless ones in `sandbox.visible`'
            )
        return replace(profile, hidden=(*profile.hidden, *secrets))


class ConfinedShell(ShellTool):
    """Shell tool that runs each command in the OS sandbox, with the profile for approved or pre-approved commands.

    An approved command also gets the extra access that was approved with it.
    """

    def __init__(
        self,
        config: ShellConfig,
        confinement: Confinement,
        *,
        cwd: str | os.PathLike[str],
        roots: Mapping[str, ShellRoot] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
    ) -> None:
        """Compile the rules; see `ShellTool`.

        Raises:
            ApprovalConfigError: A rule names a root that does not exist, or contradicts its own examples.
            MissingExtraError: A rule has examples, which need tree-sitter, but tree-sitter is not installed.
        """
        super().__init__(config, cwd=os.fspath(cwd), roots=roots, is_writable=is_writable)
        self._confinement = confinement

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Judge a command; see `ShellTool.check_approval`. Without an OS sandbox, the request contains a warning."""
        request = super().check_approval(ctx)
        if request is None or self.can_be_given_access:
            return request
        return request.model_copy(update={'reason': f'{request.reason}; {_UNPROTECTED}'})

    @property
    def can_be_given_access(self) -> bool:
        """Whether an OS sandbox confines commands. If so, the model can request extra access."""
        return not isinstance(self._confinement.backend, UnconfinedBackend)

    def extra_access(self, explanation: Explanation, asked: object) -> ExtraAccess:
        """Return the access that a command's programs need or the model requests, beyond what the profile gives.

        Raises:
            PermissionError: The model requests an unknown kind of access.
        """
        if not self.can_be_given_access:
            return super().extra_access(explanation, asked)
        names = _access_names(asked)
        paths = (*explanation.named_paths, *(('.',) if 'names' in names else ()))
        environments = () if 'environment' in names else self._written_environments(explanation)
        return self._lacking({*explanation.needs, *names}, paths, environments)

    def _written_environments(self, explanation: Explanation) -> Collection[str]:
        """Return the environments to which a command may write, judging only by the words of the command."""
        active = dict(self._confinement.approved.variables).get('VIRTUAL_ENV')
        known = self._confinement.environments
        commands = [words for part in explanation.parts if (words := part.text.split())]
        found = (environment_written(each, cwd=self.cwd, environments=known, active=active) for each in commands)
        return {each for each in found if each is not None}

    def _lacking(
        self, names: Collection[AccessName], paths: Collection[str] = ('.',), environments: Collection[str] = ()
    ) -> ExtraAccess:
        """Return the part of this access that the profile of approved commands does not grant.

        Args:
            names: The kinds of access.
            paths: Paths at which files may be created or removed.
            environments: The environments to write to; empty for all environments in the workspace.
        """
        has_layers = layer_problem(self._confinement.backend) is None
        environments = (environments or self._confinement.environments) if 'environment' in names else ()
        profile = self._confinement.approved
        wanted = ExtraAccess(
            network='network' in names,
            git=self._work_trees() if 'git' in names and has_layers else (),
            names=tuple(folder for folder, problem in self._frozen(paths).items() if problem is None)
            if 'names' in names and has_layers
            else (),
            # An environment in a root that the settings make read-only stays read-only.
            writes=tuple(path for path in environments if profile.access(os.path.dirname(path)) is Access.WRITE),
        )
        return wanted.beyond(profile)

    def _frozen(self, paths: Collection[str]) -> dict[str, str | None]:
        """Return the paths' frozen folders, each with the reason why it cannot get a layer (`None` if it can)."""
        try:
            frozen = plan_mounts(self._confinement.approved, self.cwd).frozen
            mounted = as_mounted(self._confinement.approved)
        except OSSandboxError:
            # Not the place to fail: the command will be refused, or has already run.
            return {}
        found: set[str] = set()
        for path in paths:
            above = lineage(os.path.normpath(os.path.join(self.cwd, path)))
            if path == '.':
                found.update(folder for folder in above if folder in frozen)
                continue
            # The new path may be several folders deep: `mkdir -p a/b/c`.
            folder = next(folder for folder in (os.path.dirname(each) for each in above) if os.path.isdir(folder))
            found.update({os.path.realpath(folder)} & frozen.keys())
        return {folder: names_problem(folder, mounted) for folder in found}

    def names_problem(self) -> str | None:
        """Return the reason why no command can create or remove files in the working directory, or `None`."""
        return layer_problem(self._confinement.backend) or self._frozen(['.']).get(self.cwd)

    def _control(self) -> str:
        """Return the path of the `.git` that git uses, in the working directory or in a folder above it."""
        controls = [os.path.join(path, '.git') for path in lineage(self.cwd)]
        return next(filter(os.path.lexists, controls), controls[-1])

    def _work_trees(self) -> tuple[str, ...]:
        """Return the repository's work tree in a tuple, which is empty if the repository's `.git` is not a folder."""
        control = self._control()
        return (os.path.dirname(control),) if os.path.isdir(control) and not os.path.islink(control) else ()

    def _git_problem(self) -> str | None:
        """Return why commands cannot get access to the repository, or `None` if they can."""
        control = self._control()
        if not os.path.lexists(control):
            return 'there is no .git in this directory or above it'
        if not self._work_trees():
            return f'{printable(control, 300)} is not a folder, so the repository is elsewhere'
        if self._confinement.approved.access(control) is Access.NONE:
            return f'{printable(control, 300)} is outside of the directories listed in the settings'
        return layer_problem(self._confinement.backend)

    async def run(self, command: str, access: Collection[str] | None = None) -> ShellResult:
        """Run a command; see `ShellTool.run`. The profile for approved commands is used only if this call was approved.

        Args:
            command: The command line.
            access: The access that the model requested. The argument is ignored, because only the approval grants
                access.

        Raises:
            ApprovalBlocked: A rule blocks the command, or the OS sandbox cannot confine the command.
            MissingExtraError: tree-sitter is not installed.
            asyncio.CancelledError: This task was cancelled, and the command has been ended.
        """
        bound_to = take_approval({'command': command, 'access': access}, defaults={'access': None})
        try:
            return await self._run(command, partial(self._confined, bound_to))
        except OSSandboxError as error:
            _log.error('A command was not run: %s', error)
            raise ApprovalBlocked('shell', _NOT_CONFINED) from error

    async def __call__(self, command: str, access: Collection[str] | None = None) -> str:
        """Run a command, and return the result as text for the model."""
        return (await self.run(command, access)).for_model()

    async def _confined(
        self, bound_to: Mapping[str, Any] | None, argv: list[str], explanation: Explanation
    ) -> ShellResult:
        """Run a program with the profile for approved or pre-approved commands."""
        confinement = self._confinement
        if not self.can_be_given_access:
            return await self._started(argv)
        profile, extra = confinement.unasked, ExtraAccess()
        if bound_to is not None:
            extra = ExtraAccess.of_json(bound_to.get(EXTRA_ACCESS, {})).beyond(confinement.approved)
            profile = confinement.approved.with_access(extra)
        base = len(profile.hidden)
        profile = await _to_its_end(partial(confinement.closed, profile))
        values = clean_environment(os.environ)
        # Attack: a relative part of `PATH`, which a backend passes on, finds a program in the workspace.
        passed = {name: values[name] for name in _PASSED} | dict(profile.variables)
        variables = [f'{name}={passed[name]}' for name in _PASSED]
        command = [ENV, *variables, *argv]
        if extra.git or extra.names:
            result = await self._layered(command, profile, extra)
        else:
            result = await self._started(confinement.backend.wrap(command, profile, self.cwd))
        if result.exit_status == _NOT_FOUND:
            result = replace(result, notes=(*result.notes, _WHAT_IS_FOUND, *self._environments()))
        elif result.exit_status:
            unasked = (_UNASKED,) if bound_to is None and self._is_read_only_unasked() else ()
            secrets = self._secrets(result, profile.hidden[base:])
            result = replace(result, notes=(*result.notes, *secrets, *unasked, *self._advice(extra, explanation)))
        return result

    async def _layered(self, command: list[str], profile: OSProfile, extra: ExtraAccess) -> ShellResult:
        """Run a program inside layers, which give it the extra access. Unless the program reaches the time limit, keep
        its permitted changes.
        """
        opened = ExitStack()
        try:
            layer = await _to_its_end(
                partial(opened.enter_context, open_layer(extra, profile, self._confinement.backend))
            )
            result = await self._started(await _to_its_end(partial(layer.wrap, command, self.cwd)))
            if result.is_timed_out:
                lines = ExtraAccess(git=extra.git, names=extra.names).describe(self.cwd)
                return replace(result, notes=(f'The command timed out, so these changes are lost: {"; ".join(lines)}',))
            cancelled = threading.Event()
            return replace(result, notes=await _to_its_end(partial(layer.keep, cancelled), cancelled))
        finally:
            await _to_its_end(opened.close)

    def _secrets(self, result: ShellResult, hidden: Collection[str]) -> tuple[str, ...]:
        """Return a note about a secret that the command could not read. Forged output is harmless, because the note
        grants no access.
        """
        refused = [line for line in f'{result.stdout}\n{result.stderr}'.splitlines() if 'ermission denied' in line]
        names = (os.path.relpath(path, self.cwd) for path in hidden)
        # The longest name: `sub/.env` contains `.env`.
        named = max((name for name in names if any(name in line for line in refused)), key=len, default=None)
        return () if named is None else (_SECRET.format(printable(named, 300)),)

    def _environments(self) -> tuple[str, ...]:
        """If no environment is active, return a note about each environment in the working directory."""
        if 'VIRTUAL_ENV' in dict(self._confinement.approved.variables):
            return ()
        return tuple(_NOT_ACTIVE.format(os.path.basename(path)) for path in environments_in(self.cwd))

    def _is_read_only_unasked(self) -> bool:
        """Whether only approved commands can write to the working directory."""
        here = [profile.access(self.cwd) for profile in (self._confinement.unasked, self._confinement.approved)]
        return here == [Access.READ, Access.WRITE]

    def _advice(self, had: ExtraAccess, explanation: Explanation) -> tuple[str, ...]:
        """Return notes about access that a failed command lacked.

        The notes do not depend on the output, which a command could forge to get more access.
        """
        lacked = {
            name: ', '.join(lines)
            for name in ACCESS_NAMES
            if (lines := set(self._lacking([name]).describe(self.cwd)) - set(had.describe(self.cwd)))
        }
        advice: list[str] = []
        if 'git' in explanation.needs and (problem := self._git_problem()) is not None:
            advice.append(f'The command had no access to .git, and this access cannot be granted: {problem}.')
        if 'names' in explanation.needs and layer_problem(self._confinement.backend) is None:
            for folder, problem in self._frozen(explanation.named_paths or ('.',)).items():
                if problem is not None:
                    advice.append(
                        f'The command could not create, rename or delete files in {printable(folder, 300)}, '
                        f'and this access cannot be granted: {problem}.'
                    )
        if lacked:
            shown = ', '.join(name if name == 'network' else f'{name} ({what})' for name, what in lacked.items())
            advice.append(f'The OS sandbox gave this command no access to: {shown}{self._how(lacked, explanation)}')
        return tuple(advice)

    @staticmethod
    def _how(lacked: Mapping[str, str], explanation: Explanation) -> str:
        """Return a text that says how to request the access."""
        effects = 'and the user is asked; the failed call may have had effects.'
        needed = next((name for name in lacked if name in explanation.needs), None)
        if needed is None:
            return f'. If missing access caused the error, call again with one of these names in `access`, {effects}'
        return f". If missing access caused the error, call again with access=['{needed}'], {effects}"


async def _to_its_end(function: Callable[[], T], cancelled: threading.Event | None = None) -> T:
    """Run a blocking function in a thread, and wait until it ends, even if this task is cancelled.

    Args:
        function: The blocking function.
        cancelled: Event that is set if this task is cancelled, so that the function can end early.
    """
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if cancelled is not None:
            cancelled.set()
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        task.exception()  # retrieved, so that asyncio does not report it as never retrieved
        raise


def _access_names(asked: object) -> Collection[AccessName]:
    """Return the kinds of access that the model requests.

    Raises:
        PermissionError: The value is not a list of known kinds of access.
    """
    if asked is None:
        return ()
    names = cast('Collection[object]', asked) if isinstance(asked, list | tuple) else None
    if names is None or not all(name in ACCESS_NAMES for name in names):
        raise PermissionError(f'`access` must be a list of these names: {", ".join(ACCESS_NAMES)}.')
    return [name for name in ACCESS_NAMES if name in names]


class RefusingShell(ConfinedShell):
    """Shell tool that refuses every command, because an OS sandbox is required but none works."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Refuse the command.

        Raises:
            PermissionError: Raised on every call.
        """
        raise PermissionError(REFUSED)

    async def run(self, command: str, access: Collection[str] | None = None) -> ShellResult:
        """Refuse the command.

        Raises:
            ApprovalBlocked: Raised on every call.
        """
        raise ApprovalBlocked('shell', REFUSED)


class RefusingFiles(FileSandbox):
    """File sandbox that refuses every operation, because an OS sandbox is required but none works."""

    @contextmanager
    def open(
        self, operation: str, path: str, dest: str | None = None, *, is_exact: bool = False
    ) -> Generator[FileAccess]:
        """Refuse the operation.

        Raises:
            PermissionError: Raised on every call.
        """
        raise PermissionError(REFUSED)
        yield  # pragma: no cover - never reached; `contextmanager` needs a generator
