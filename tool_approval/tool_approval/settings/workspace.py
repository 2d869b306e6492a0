"""Create the tools that the settings describe: file sandbox, shell tool, and OS sandbox for commands."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tool_approval.core.errors import printable
from tool_approval.core.policy import ApprovalPolicy
from tool_approval.os_sandbox import (
    Access,
    BubblewrapBackend,
    OSProfile,
    OSSandboxBackend,
    OSSandboxUnavailable,
    RefusingBackend,
    Root,
    UnconfinedBackend,
    choose_backend,
    derive_os_sandbox_profile,
    system_profile,
)
from tool_approval.os_sandbox.before import is_shared
from tool_approval.os_sandbox.mounts import without_missing
from tool_approval.os_sandbox.profile import DEFAULT_ENVIRONMENT, covers
from tool_approval.os_sandbox.toolchains import CONFIGURED, Toolchains, find_toolchains
from tool_approval.tools.file_sandbox import FileSandbox, PathConfig
from tool_approval.tools.file_sandbox.secrets import SecretFiles, SecretRules
from tool_approval.tools.shell import ShellConfig
from tool_approval.tools.shell.environment import CERTIFICATES
from tool_approval.tools.turns import Turns

from .confinement import ConfinedShell
from .files import LoadedSettings, effective, expanded
from .model import DEFAULT_SANDBOX, Settings
from .profiles import Confinement
from .protection import (
    HEAD,
    is_written_unasked,
    is_written_with_access,
    only_files_protected,
    protected_paths,
    root_checks,
    state_folder,
)

RUN_SHELL: Final = 'run_shell'
"""Name of the shell tool in a policy."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Tools of one working directory. `FileToolset(workspace.files)` and `ShellToolset(workspace.shell)` offer the
    tools to an agent.
    """

    settings: Settings
    """Settings that apply. Settings of an untrusted file can only make the defaults stricter."""
    directory: Path
    """Absolute working directory."""
    policy: ApprovalPolicy
    """Policy for the controller."""
    files: FileSandbox
    """File sandbox for the file tools."""
    shell: ConfinedShell
    """Shell tool."""
    backend: OSSandboxBackend
    """Backend that confines commands. If no OS sandbox works, the backend is named `unconfined`, or `refusing` if a
    sandbox is required."""
    protected: tuple[Path, ...]
    """Paths to which neither the file tools nor the shell tool can write."""
    notes: tuple[str, ...]
    """Sentences that tell the user where and why commands can do less than the settings allow."""


def open_workspace(
    settings: Settings | LoadedSettings,
    directory: str | os.PathLike[str] | None = None,
    *,
    protected: Iterable[str | os.PathLike[str]] = (),
    readable: Iterable[str] = (),
    explicit: OSProfile | None = None,
    backend: OSSandboxBackend | None = None,
    caches: bool = True,
) -> Workspace:
    """Create the tools. Paths are resolved once, so this function must be called before an agent runs.

    Args:
        settings: Loaded settings, or settings created in code. Settings created in code are trusted.
        directory: The directory in which commands run, and against which relative paths are resolved. The default is
            the `directory` of `LoadedSettings`, or else the working directory of the process.
        protected: More files that no tool can write, such as the audit log or a memory store at another path. The
            settings file, the user's state directory and `.git` are always protected.
        readable: Additional folders that commands can read, such as the folder of a toolchain.
        explicit: A profile that restricts the access in the OS sandbox further. It cannot grant access.
        backend: The backend that confines commands; by default the best backend that works. `UnconfinedBackend()`
            confines nothing, and is accepted only if the settings do not require an OS sandbox.
        caches: Whether to create cache folders for commands. If `False`, no file is written before a command runs.

    Raises:
        OSSandboxUnavailable: The settings require an OS sandbox, no OS sandbox works, and the fallback is `fail_fast`.
            The message says what to install.
        OSSandboxError: The directory does not exist, or commands cannot be confined to it.
        ApprovalConfigError: Two roots are the same directory, or a shell rule names an unknown root or contradicts its
            examples.
        MissingExtraError: A shell rule has examples, which need tree-sitter, but tree-sitter is not installed.
    """
    loaded = settings if isinstance(settings, LoadedSettings) else None
    source = None if loaded is None else loaded.source
    if directory is None:
        directory = '.' if loaded is None else loaded.directory
    folder = Path(os.path.realpath(directory))
    # Roots of an untrusted file must be in the directory where commands run.
    held = (
        effective(replace(settings, directory=folder)) if isinstance(settings, LoadedSettings) else expanded(settings)
    )
    backend = _backend(held, backend)
    if not isinstance(backend, BubblewrapBackend):
        from .extends import unconfined  # imported late, as in `files`

        held = unconfined(held)
    sandbox = held.sandbox or DEFAULT_SANDBOX
    shell = held.shell or ShellConfig()
    make_files, make_shell = FileSandbox, ConfinedShell
    if isinstance(backend, RefusingBackend):
        from .refusing import RefusingFiles, RefusingShell

        make_files, make_shell = RefusingFiles, RefusingShell
    never = tuple(
        dict.fromkeys([*protected_paths(folder, source, sandbox), *(folder / Path(path) for path in protected)])
    )
    others = only_files_protected(folder, None if loaded is None else loaded.named_as)
    turns = Turns()
    files = make_files(sandbox, folder, protected=(*never, *others), turns=turns)
    confinement, notes = _confinement(held, files, shell, backend, never, tuple(readable), explicit, caches=caches)
    return Workspace(
        settings=held,
        directory=folder,
        policy=held.policy,
        files=files,
        shell=make_shell(
            shell,
            confinement,
            cwd=folder,
            turns=turns,
            can_list_host=not held.require_os_sandbox,
            roots=root_checks(files, is_confined=not isinstance(backend, UnconfinedBackend)),
            is_writable=lambda path: is_written_unasked(files, path),
            needs_write=(
                (lambda path: is_written_with_access(files, path)) if isinstance(backend, BubblewrapBackend) else None
            ),
        ),
        backend=backend,
        protected=never,
        notes=notes,
    )


def _backend(settings: Settings, given: OSSandboxBackend | None) -> OSSandboxBackend:
    if given is None:
        return choose_backend(require=settings.require_os_sandbox, fallback=settings.os_sandbox_fallback)
    if settings.require_os_sandbox and isinstance(given, UnconfinedBackend):
        raise OSSandboxUnavailable('the settings require an OS sandbox, so commands cannot run without one')
    return given


def _confinement(
    settings: Settings,
    files: FileSandbox,
    shell: ShellConfig,
    backend: OSSandboxBackend,
    protected: tuple[Path, ...],
    readable: tuple[str, ...],
    explicit: OSProfile | None,
    *,
    caches: bool,
) -> tuple[Confinement, tuple[str, ...]]:
    paths: dict[str, PathConfig] = {}
    notes: list[str] = []
    for root in files.roots.all:
        # The path of the file tools, so that both mean the same folder. A link in the working directory opens nothing,
        # because the author of the repository could redirect it (test_workspace.py).
        if os.path.realpath(root.place) == str(root.place):
            paths[root.name] = root.config.model_copy(update={'root': root.place})
        else:
            notes.append(f'{root.place} is a symbolic link in the working directory, so commands cannot use it')
    # Attack: a command replaces a link on the way to the settings, and the next start reads another file
    # (test_workspace.py).
    links = [place for place in files.protected if os.path.islink(place)]
    ends = [place for place in files.protected if place not in links and place.name != HEAD]
    state = state_folder()
    folder = '/' + '/'.join(files.roots.base)
    toolchains, cached, credentials = Toolchains(), None, ()
    certificates, authorities = dict[str, str](), list[str]()
    is_confined = not isinstance(backend, UnconfinedBackend | RefusingBackend)
    if is_confined:
        configured = settings.sandbox.toolchains if settings.sandbox is not None else ()
        toolchains = find_toolchains(
            environment=os.environ,
            directory=folder,
            roots=[str(root.place) for root in files.roots.all],
            configured=configured,
        )
        # Active toolchains are expected to work, so their problems are noted; `doctor` lists the others.
        notes += [each for each in toolchains.ignored if each.startswith(('VIRTUAL_ENV:', 'CONDA_PREFIX:'))]
        # Attack: a repository makes the folder with the user's secrets look like an environment, so the rest of the
        # folder is searched (test_hostile_repository.py).
        files.secrets.skip(os.path.join(each, 'lib') for each in toolchains.environments)
        files.secrets.find()
        if not files.secrets.is_complete:
            notes.append('there are too many folders to search for secrets; list secret files in `sandbox.hidden`')
        places = [str(root.place) for root in files.roots.all]
        certificates, authorities = _certificates([*places, *map(os.path.realpath, places)])
        # These folders open as a whole, and the top of one may hold credentials of a program.
        whole = [Path(each.folder) for each in toolchains.found if each.kind == CONFIGURED]
        credentials = SecretFiles(SecretRules(), whole, most_folders=100).find()
        try:
            if caches:
                from tool_approval.os_sandbox.caches import open_caches

                cached = open_caches(folder)
        except (OSError, RuntimeError) as error:
            notes.append(f'commands keep no caches between calls: {printable(str(error), 300)}')

    def profile(*, approved: bool) -> OSProfile:
        derived = derive_os_sandbox_profile(
            files.config.model_copy(update={'paths': paths}),
            shell,
            explicit,
            base=replace(
                system_profile((*readable, *toolchains.opened, *authorities)),
                environment=DEFAULT_ENVIRONMENT | frozenset(shell.environment),
            ),
            directory=folder,
            approved=approved,
            protected=(*protected, *ends),
            held=links,
            hidden=() if state is None else (state,),
        )
        derived = _with_toolchains(derived, toolchains)
        derived = replace(derived, variables=(*certificates.items(), *derived.variables))
        derived = replace(derived, hidden=(*derived.hidden, *credentials))
        return derived if cached is None else cached.open_in(derived, approved=approved)

    confinement = Confinement(
        backend=backend,
        approved=profile(approved=True),
        unasked=profile(approved=False),
        secrets=files.secrets.find,
        roots=tuple(str(each.root) for each in paths.values()),
        state=None if state is None else str(state),
        environments=toolchains.environments,
        written=tuple(
            path
            for root in files.roots.all
            if root.config.mode == 'rw'
            for path in dict.fromkeys([str(root.place), os.path.realpath(root.place)])
        ),
        project_caches=()
        if cached is None
        else tuple(cached.in_project(profile(approved=True), approved=True).items()),
    )
    if state is not None and caches:
        from tool_approval.os_sandbox.journal import finish_all

        try:
            notes += finish_all(str(state))
        except OSError as error:
            notes.append(f'what a command left could not be checked: {printable(str(error), 300)}')
    notes += [
        f'{root} is a home, or shared by many programs, so repositories that commands leave in it are not looked for; '
        'use a directory of its own'
        for root in confinement.roots
        if is_confined and is_shared(root) and confinement.approved.access(root) is Access.WRITE
    ]
    if isinstance(backend, BubblewrapBackend):
        notes += backend.notes(without_missing(confinement.approved)[0], folder)
    return confinement, tuple(notes)


def _certificates(roots: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Return this process's variables for certificate authorities, and the files that have to be opened for them."""
    system, found, opened = system_profile(), dict[str, str](), list[str]()
    absolute = {name: place for name in CERTIFICATES if (place := os.environ.get(name, '')).startswith('/')}
    for name, place in absolute.items():
        real = os.path.realpath(place)
        # Attack: a command puts a link in place of a file in the workspace, and the next start opens its target
        # (test_workspace.py).
        if covers(roots, os.path.normpath(place)) or covers(roots, real):
            found[name] = place
        elif system.access(real) > Access.NONE:
            found[name] = real
        elif place == real and os.path.isfile(real):
            found[name] = real
            opened.append(real)
    return found, opened


def _with_toolchains(profile: OSProfile, toolchains: Toolchains) -> OSProfile:
    """Add the toolchains' environment variables, and deny write access to virtual environments in the workspace."""
    roots = [Root(path=each, access=min(profile.access(each), Access.READ)) for each in toolchains.environments]
    return replace(profile, roots=(*profile.roots, *roots), variables=tuple(toolchains.variables.items()))
