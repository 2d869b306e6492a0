"""Derive the profile of a command from the system and from the settings of the file and shell tools."""

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
"""Mounting all of `/etc` would let a command that runs as root see files that only root may read. Each entry is a
mount, and each mount delays a command by a quarter of a millisecond."""

_MACOS = (
    '/System', '/usr', '/bin', '/sbin', '/opt/homebrew', '/Library/Apple', '/Library/Developer/CommandLineTools',
    '/Library/Frameworks', '/private/etc/hosts', '/private/etc/localtime', '/private/etc/passwd',
    '/private/etc/protocols', '/private/etc/resolv.conf', '/private/etc/services', '/private/etc/ssl',
    '/private/var/db/timezone', '/private/var/select',
)  # fmt: skip


def system_profile(readable: Iterable[str] = (), *, platform: str = sys.platform) -> OSProfile:
    """Return a profile that lets commands read system folders, but no home folders or temporary files.

    Args:
        readable: Additional folders and files that commands need, such as the folder of a toolchain.
        platform: The platform, in the form of `sys.platform`.

    Returns:
        A profile with the real paths of those folders and files that exist.
    """
    wanted = _MACOS if platform == 'darwin' else _LINUX
    found = {os.path.realpath(path) for path in (*wanted, *readable) if os.path.exists(path)}
    return OSProfile(roots=tuple(Root(path=path, access=Access.READ) for path in found))


GIT_CONTROL_NAMES = ('.git',)
"""Names that are protected in every writable root. The content of `.git` can make Git start programs on the host.

Protecting only `.git/config` and `.git/hooks` is not enough. A new `.git/commondir` makes Git read another `config`. If
a program outside of the sandbox renames another file to `.git/config`, a mount over the old file does not protect the
new file (`test_git_follows_a_commondir_to_another_config`).
"""


class ConfiguredPath(Protocol):
    """One entry of the setting `sandbox.paths`."""

    @property
    def root(self) -> str | Path:
        """The folder. A relative path starts in the working directory."""
        ...

    @property
    def mode(self) -> str:
        """Access of the file tools: `ro` or `rw`."""
        ...

    @property
    def suffixes(self) -> Collection[str] | None:
        """Suffixes of the files that can be used; `None` allows every file, and an empty collection allows no file."""
        ...

    @property
    def write_approval(self) -> bool:
        """Whether the file tools need approval to write."""
        ...

    @property
    def read_approval(self) -> bool | Literal['blocked']:
        """Whether the file tools need approval to read. The value `blocked` forbids reading altogether."""
        ...


class ConfiguredSandbox(Protocol):
    """The settings under the key `sandbox`."""

    @property
    def paths(self) -> Mapping[str, ConfiguredPath]:
        """Roots that the file tools may use. Each key is the name of a root."""
        ...


class ConfiguredShell(Protocol):
    """The settings under the key `shell`."""

    @property
    def network(self) -> bool:
        """Whether commands can use the network."""
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
    """Return the profile of a command. In the roots of `sandbox`, commands get at most the access of the file tools.

    Call this function once, at startup, because it resolves relative paths and symbolic links. If the path of a root
    later resolves to another folder, commands are refused.

    Args:
        sandbox: The roots of the file tools.
        shell: The settings of the shell, which say whether commands can use the network.
        explicit: A profile that restricts the result. Paths of `base` stay readable unless `explicit` hides them.
        base: The parts of the system that every command needs, by default `system_profile()`. These parts are
            read-only. A root of `sandbox` with the same path takes precedence.
        directory: The folder that relative paths are resolved against, by default the working directory of the process.
        approved: Whether an approver approved this particular command. A pre-approved command can neither read nor
            write a path for which the file tools need approval.
        protected: Control files that a command can never write: policy, memory store, audit log.
        hidden: Files that a command can neither read nor write.
        held: Symbolic links that a command cannot replace, although it may write to their targets.
        control_names: Relative paths. In each writable root, a command can never write these paths.

    Raises:
        ApprovalConfigError: A mode is neither `ro` nor `rw`.
        OSSandboxError: A path contains a NUL.
    """
    start = Path.cwd() if directory is None else Path(directory)
    tools = OSProfile(
        roots=tuple(_root(name, each, start, approved=approved) for name, each in sandbox.paths.items()),
        # Only `True` opens the network: a string such as "no" is truthy.
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
        raise ApprovalConfigError(f'the mode must be ro or rw, not {settings.mode!r}', key=f'sandbox.paths.{name}.mode')
    access = Access.WRITE if settings.mode == 'rw' else Access.READ
    # Any value except `False` requires approval, even a mistyped value.
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
    # Links are kept: a command must not reach the link itself, nor its current target.
    return os.path.abspath(start / Path(path).expanduser())
