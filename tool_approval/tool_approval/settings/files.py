"""Find and read the settings file: whether it is trusted, what holds of it, and how the audit log names it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tool_approval.core.canonical import whole_characters
from tool_approval.core.config import ToolRule, parse_document
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.core.protocols import AuditSink
from tool_approval.tools.shell import ShellConfig, ShellDefault, ShellRule

from .model import DEFAULT_SANDBOX, PathSettings, SandboxSettings, Settings, read_settings
from .trust import CHANGED, TrustError, TrustStore

NAMES = ('approvals.yaml', 'approvals.yml', 'approvals.toml')
"""What the file may be called. One in TOML is not read: finding it is an error, and no tool writes it."""

MAX_BYTES = 400_000
"""Chosen: the longest text that is parsed, in the widest letters."""


@dataclass(frozen=True, kw_only=True)
class LoadedSettings:
    """Settings, where they come from, and whether they may loosen anything."""

    settings: Settings
    """As the file says them. What holds is `effective(loaded)`."""
    source: Path | None
    """The file, absolute, its folder without symbolic links; `None` if there is none, and nothing is configured."""
    directory: Path
    """The working directory, absolute: where relative roots begin."""
    digest: str
    """SHA-256 of the file's bytes, in hexadecimal; of no bytes if there is no file. Where it extends presets, of its
    bytes and of the rules as expanded."""
    trusted: bool
    """Whether the user has trusted these bytes at this place, or has named the file; true if there is none."""
    why_untrusted: str | None = None
    """Why not, in words for a person."""
    named_as: Path | None = None
    """The file as the user would write it, absolute, with the links on the way."""
    line_of: Callable[[tuple[str | int, ...]], int | None] = lambda path: None
    """The line of the value at a path of keys, such as `('shell', 'rules', 0)`, from 1; `None` if it is not known."""


def find_settings(directory: str | os.PathLike[str]) -> Path | None:
    """The file in a directory, and in none above it. It may be anything that has the name, a broken link too.

    Raises:
        ApprovalConfigError: There are two, and nobody can tell which is meant; or nobody can tell whether there is one.
    """
    found = [path for name in NAMES if _is_there(path := Path(directory, name))]
    if len(found) > 1:
        names = ' and '.join(f'`{path.name}`' for path in found)
        raise ApprovalConfigError(f'there are {names}; keep one of them', source=str(Path(directory)))
    return found[0] if found else None


def load_settings(
    path: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    trust: TrustStore | None = None,
    named: bool = False,
) -> LoadedSettings:
    """Read the settings, once.

    Args:
        path: The file; if `None`, the one in `directory`, if there is one.
        directory: The working directory; the process's if `None`.
        trust: What the user has trusted; by default the store in the user's state directory.
        named: Whether the user has named the file, as on a command line. Such a file is trusted, and may be a symbolic
            link; one that was merely found may not.

    Raises:
        ApprovalConfigError: It cannot be read, is no settings file, or has a mistake; the error names key, file and
            line.
        MissingExtraError: PyYAML is not installed.
    """
    given = Path(directory if directory is not None else '')
    folder = Path(os.path.abspath(given))
    # As the user would write it: errors are shorter so.
    shown = given / path if path is not None else find_settings(given)
    if shown is None:
        return LoadedSettings(
            settings=Settings(),
            source=None,
            directory=folder,
            digest=hashlib.sha256().hexdigest(),
            trusted=True,
        )
    if shown.suffix.lower() == '.toml':
        problem = f'TOML is not read; write the same keys as YAML into `{shown.stem}.yaml` instead'
        raise ApprovalConfigError(problem, source=str(shown))
    content = _read(shown, follows_links=named)
    document, line_of = parse_document(_text(content, shown), source=str(shown))
    settings = read_settings(document, source=str(shown), line_of=line_of)
    digest = hashlib.sha256(content)
    if settings.extends:
        try:
            # An upgrade may change what a preset says; the user has looked at what it said before (test_extends.py).
            rules = expanded(settings).model_dump_json(exclude_defaults=True)
            digest = hashlib.sha256(digest.digest() + rules.encode())
        except ApprovalConfigError as error:
            line = line_of(tuple((error.key or '').split('.')))
            raise ApprovalConfigError(error.problem, key=error.key, source=str(shown), line=line) from None
    loaded = LoadedSettings(
        settings=settings,
        # Not made shorter as text: `link/../approvals.yaml` lies where the link leads.
        source=Path(os.path.realpath(shown.parent), shown.name),
        named_as=Path.cwd() / shown,
        directory=folder,
        digest=digest.hexdigest(),
        trusted=named,
        line_of=line_of,
    )
    if named:
        return loaded
    why = _why_untrusted(loaded, trust)
    return replace(loaded, trusted=why is None, why_untrusted=why)


def with_defaults(loaded: LoadedSettings) -> LoadedSettings:
    """Take the preset `default` where no file was found, as `tool-approval run` does."""
    return loaded if loaded.source is not None else replace(loaded, settings=Settings(extends=('default',)))


def trust_settings(loaded: LoadedSettings, trust: TrustStore) -> LoadedSettings:
    """Trust what was loaded, once the user has seen it and said so: these bytes, whatever the file holds by now.

    Raises:
        TrustError: It cannot be kept.
        ValueError: There is no file.
    """
    if loaded.source is None:
        raise ValueError('there is no file to trust')
    trust.trust(loaded.source, loaded.digest)
    return replace(loaded, trusted=True, why_untrusted=None)


def _is_there(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # Not as if there were none: what it blocks would not be blocked.
        raise ApprovalConfigError(f'it cannot be looked for: {error.strerror}', source=str(path)) from None
    return True


def _why_untrusted(loaded: LoadedSettings, trust: TrustStore | None) -> str | None:
    assert loaded.source is not None, 'it was read'
    try:
        why = (trust if trust is not None else TrustStore()).why_untrusted(loaded.source, loaded.digest)
    except TrustError as error:
        return str(error)
    if why == CHANGED and loaded.settings.extends:
        return 'it, or a preset that it extends, has changed since it was trusted'
    return why


def _read(source: Path, *, follows_links: bool) -> bytes:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follows_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(source, flags)
    except ValueError:
        raise ApprovalConfigError('a path cannot hold a NUL', source=repr(str(source))) from None
    except OSError as error:
        raise ApprovalConfigError(_why(error, source), source=str(source)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ApprovalConfigError('it is not a regular file', source=str(source))
        with os.fdopen(descriptor, 'rb', closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ApprovalConfigError(_why(error, source), source=str(source)) from None
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise ApprovalConfigError(f'larger than {MAX_BYTES} bytes', source=str(source))
    return content


def _why(error: OSError, source: Path) -> str:
    if error.errno == errno.ELOOP and source.is_symlink():
        # Attack: what it leads to is not in the working tree, and changes without it.
        return 'it is a symbolic link; name the file itself to use it'
    return f'it cannot be read: {error.strerror}'


def _text(content: bytes, source: Path) -> str:
    try:
        return content.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = content.count(b'\n', 0, error.start) + 1
        raise ApprovalConfigError('not UTF-8', source=str(source), line=line) from None


def effective(loaded: LoadedSettings) -> Settings:
    """The settings to work under, with what they extend written out; see `expand`.

    Those of a file that is not trusted only tighten: under them nothing runs unasked that would be asked about without
    the file, nothing outside of the working directory is within reach, and what the file blocks is blocked.

    - `mode`, `require_os_sandbox` and `os_sandbox_fallback` hold as they are.
    - `default: none` and each `approval: none` are as if they were not there, and so is `auto_grant`.
    - Every `description` is gone: it would be in the question to the user.
    - `visible` and `toolchains` are as if they were not there; what is `hidden` is.
    - Roots outside of the working directory are gone; the rest is asked about, for reading too.
    - Shell rules that let a command run unasked are gone, so the rules behind them decide, or the default, which asks
      or blocks. A rule that asks no longer holds in roots that are gone; one that blocks there blocks everywhere.
    - There is no network, and the time limit is that of the file or the default one, whichever is shorter.
    """
    settings = expanded(loaded.settings)
    if loaded.trusted:
        return settings
    sandbox = None if settings.sandbox is None else _sandbox(settings.sandbox, loaded.directory)
    known = frozenset((sandbox or DEFAULT_SANDBOX).paths)
    return Settings(
        mode=settings.mode,
        default=None if settings.default == 'none' else settings.default,
        tools={name: _rule(rule) for name, rule in settings.tools.items()},
        custom_tools={name: _rule(rule) for name, rule in settings.custom_tools.items()},
        sandbox=sandbox,
        shell=None if settings.shell is None else _shell(settings.shell, known),
    )


def expanded(settings: Settings) -> Settings:
    """The settings with the presets that they extend written out; see `expand`.

    Raises:
        ApprovalConfigError: A name that a preset has for a directory is that of another one.
        MissingExtraError: PyYAML is not installed.
    """
    if not settings.extends:
        return settings
    from .extends import expand  # starting is to be quick, and not every file extends something

    return expand(settings)


def _rule(rule: ToolRule) -> ToolRule:
    return ToolRule(approval=None if rule.approval == 'none' else rule.approval)


def _sandbox(sandbox: SandboxSettings, directory: Path) -> SandboxSettings:
    top = Path(os.path.realpath(directory))
    paths = {
        name: PathSettings(
            root=path.root,
            mode=path.mode,
            suffixes=path.suffixes,
            write_approval=True,
            read_approval=path.read_approval or True,
        )
        for name, path in sandbox.paths.items()
        if Path(os.path.realpath(top / path.root)).is_relative_to(top)
    }
    return SandboxSettings(
        paths=paths,
        hidden=sandbox.hidden,
        require_os_sandbox=sandbox.require_os_sandbox,
        os_sandbox_fallback=sandbox.os_sandbox_fallback,
    )


def _shell(shell: ShellConfig, known: frozenset[str]) -> ShellConfig:
    kept = [_shell_rule(rule, known) for rule in shell.rules if rule.approval or not rule.allowed]
    return ShellConfig(
        default=ShellDefault(allowed=shell.default.allowed),
        rules=tuple(rule for rule in kept if rule is not None),
        timeout_s=min(shell.timeout_s, ShellConfig().timeout_s),
    )


def _shell_rule(rule: ShellRule, known: frozenset[str]) -> ShellRule | None:
    paths = tuple(name for name in rule.sandbox_paths if name in known)
    if paths != rule.sandbox_paths:
        if rule.allowed and not paths:
            return None
        paths = paths if rule.allowed else ()
    # Its examples may be decided by other rules now.
    return ShellRule(pattern=rule.pattern, allowed=rule.allowed, sandbox_paths=paths)


class SettingsAudit:
    """An audit sink whose first line says which settings were loaded, and whose every line names their digest."""

    def __init__(self, sink: AuditSink, loaded: LoadedSettings) -> None:
        """Write down what was loaded.

        Args:
            sink: Where lines go.
            loaded: The settings that decisions are made under from now on.

        Raises:
            AuditError: It cannot be written.
        """
        self._sink = sink
        self._digest = loaded.digest
        sink.record(
            {
                'event': 'settings',
                'source': None if loaded.source is None else whole_characters(str(loaded.source)),
                'settings_digest': loaded.digest,
                'trusted': loaded.trusted,
                'why_untrusted': None if loaded.why_untrusted is None else whole_characters(loaded.why_untrusted),
            }
        )

    def record(self, entry: Mapping[str, Any]) -> None:
        """See `AuditSink`."""
        self._sink.record({**entry, 'settings_digest': self._digest})
