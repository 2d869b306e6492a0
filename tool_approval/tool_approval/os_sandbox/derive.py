"""Derive the profile from the system and from the configuration of the file and shell tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

from tool_approval.core.errors import ApprovalConfigError

from .profile import Access, OSProfile, Root

_LINUX = (
    '/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store', '/etc/alternatives',
    '/etc/group', '/etc/hosts', '/etc/ld.so.cache', '/etc/localtime', '/etc/nsswitch.conf', '/etc/os-release',
    '/etc/passwd', '/etc/pki/tls/certs', '/etc/resolv.conf', '/etc/ssl/certs', '/etc/ssl/openssl.cnf',
)  # fmt: skip
"""Chosen file by file: all of `/etc` would show what only root may read to a command that runs as root. And few of
them, since each is a mount, which costs a command a quarter of a millisecond."""

_MACOS = (
    '/System', '/usr', '/bin', '/sbin', '/opt/homebrew', '/Library/Apple', '/Library/Developer/CommandLineTools',
    '/Library/Frameworks', '/private/etc/hosts', '/private/etc/localtime', '/private/etc/passwd',
    '/private/etc/protocols', '/private/etc/resolv.conf', '/private/etc/services', '/private/etc/ssl',
    '/private/var/db/timezone', '/private/var/select',
)  # fmt: skip


def system_profile(readable: Iterable[str] = (), *, platform: str = sys.platform) -> OSProfile:
    """The system for reading alone, without home folders, temporary files and what runs.

    Args:
        readable: More folders and files that commands need, such as where a toolchain is installed.
        platform: As `sys.platform` has it.

    Returns:
        A profile with the real paths of what exists.
    """
    wanted = _MACOS if platform == 'darwin' else _LINUX
    found = {os.path.realpath(path) for path in (*wanted, *readable) if os.path.exists(path)}
    return OSProfile(roots=tuple(Root(path=path, access=Access.READ) for path in found))


GIT_CONTROL_NAMES = ('.git',)
"""Names below a writable root that decide what Git executes on the host later.

All of `.git` and not only its `config` and `hooks`: a new `.git/commondir` leads Git to another `config`, and a
`.git/config` that the host replaces by renaming would lose its mask in a command that is running
(`test_git_follows_a_commondir_to_another_config`).
"""


class ConfiguredPath(Protocol):
    """One entry of `sandbox.paths`."""

    @property
    def root(self) -> str | Path:
        """The folder; a relative one starts at the working directory."""
        ...

    @property
    def mode(self) -> str:
        """`ro` or `rw`."""
        ...

    @property
    def suffixes(self) -> Collection[str] | None:
        """Endings of the files that are open; `None` means any, an empty collection means none."""
        ...

    @property
    def write_approval(self) -> bool:
        """Whether a person is asked before the tools write."""
        ...

    @property
    def read_approval(self) -> bool | Literal['blocked']:
        """Whether a person is asked before the tools read, or reading is `blocked`."""
        ...


class ConfiguredSandbox(Protocol):
    """The part `sandbox` of the configuration."""

    @property
    def paths(self) -> Mapping[str, ConfiguredPath]:
        """The roots, by the names the model knows them by."""
        ...


class ConfiguredShell(Protocol):
    """The part `shell` of the configuration."""

    @property
    def network(self) -> bool:
        """Whether commands reach the network."""
        ...


def derive_os_sandbox_profile(
    sandbox: ConfiguredSandbox,
    shell: ConfiguredShell,
    explicit: OSProfile | None = None,
    *,
    base: OSProfile | None = None,
    directory: str | Path | None = None,
    approved: bool = True,
    protected: Iterable[str | Path] = (),
    hidden: Iterable[str | Path] = (),
    held: Iterable[str | Path] = (),
    control_names: Iterable[str] = GIT_CONTROL_NAMES,
) -> OSProfile:
    """What a command may touch that runs beside the file tools: never more than they could.

    Call it once, at start: relative paths and symbolic links are followed here, and a root that leads elsewhere later
    is refused.

    Args:
        sandbox: The roots of the file tools.
        shell: Whether there is a network.
        explicit: Narrows all this further; it widens nothing. The base stays, unless it is hidden there.
        base: What every command needs of the system, by default `system_profile()`. It is added for reading, where no
            root of the tools says otherwise for the same path; what it could write is ignored.
        directory: Where relative roots start, by default the process's working directory.
        approved: Whether a person has approved the very command. If not, as for a pre-approved command, it neither
            reads nor writes where the file tools would have to ask.
        protected: Control files that are never written: policy, memory store, audit log.
        hidden: Files that are not even read.
        held: Symbolic links that are not replaced, where what they lead to may be written.
        control_names: Paths below each writable root that are never written either.

    Raises:
        ApprovalConfigError: A mode is neither `ro` nor `rw`.
        OSSandboxError: A path holds a NUL.
    """
    start = Path.cwd() if directory is None else Path(directory)
    tools = OSProfile(
        roots=tuple(_root(name, each, start, approved=approved) for name, each in sandbox.paths.items()),
        # Only `True` opens the network: a text such as "no" is true as well.
        network=shell.network is True,
        environment=(base or OSProfile()).environment,
    )
    tools = tools if explicit is None else tools.intersect(explicit)
    names = tuple(control_names)
    folders = (root.rstrip('/') for root in tools.writable if not os.path.isfile(root))
    control = [f'{folder}/{name}' for folder in folders for name in names]
    named = {root.path for root in tools.roots}
    system = system_profile() if base is None else base
    return OSProfile(
        roots=(*tools.roots, *(_read_only(root) for root in system.roots if root.path not in named)),
        hidden=(*tools.hidden, *system.hidden, *(_absolute(path, start) for path in hidden)),
        protected=(*tools.protected, *system.protected, *control, *(_absolute(path, start) for path in protected)),
        held=(*tools.held, *system.held, *(_absolute(path, start) for path in held)),
        network=tools.network,
        environment=tools.environment,
    )


def _root(name: str, settings: ConfiguredPath, start: Path, *, approved: bool) -> Root:
    if settings.mode not in ('ro', 'rw'):
        raise ApprovalConfigError(f'{settings.mode!r} is neither ro nor rw', key=f'sandbox.paths.{name}.mode')
    access = Access.WRITE if settings.mode == 'rw' else Access.READ
    # Anything but a plain `False` asks, so that a mistyped value asks too.
    if not approved and settings.write_approval is not False:
        access = min(access, Access.READ)
    if settings.read_approval == 'blocked' or (not approved and settings.read_approval is not False):
        access = Access.NONE
    return Root(
        path=os.path.realpath(start / Path(settings.root).expanduser()),
        access=access,
        suffixes=None if settings.suffixes is None else frozenset(settings.suffixes),
    )


def _read_only(root: Root) -> Root:
    return replace(root, access=min(root.access, Access.READ))


def _absolute(path: str | Path, start: Path) -> str:
    # Links are kept: both what they are called and what they lead to has to be protected, whenever it runs.
    return os.path.abspath(start / Path(path).expanduser())
