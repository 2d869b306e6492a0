"""Find and read the settings file, decide whether to trust it, and record its digest in the audit log."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tool_approval.core.canonical import whole_characters
from tool_approval.core.config import ToolRule, parse_document
from tool_approval.core.decision import USUAL_ANSWERS, both_allow
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.core.protocols import AuditSink
from tool_approval.tools.shell import ShellConfig, ShellDefault, ShellRule

from .model import DEFAULT_SANDBOX, PathSettings, SandboxSettings, Settings, read_settings
from .trust import CHANGED, TrustError, TrustStore

NAMES = ('approvals.yaml', 'approvals.yml', 'approvals.toml')
"""Names of settings files. `approvals.toml` is refused, but is listed so that tools cannot write the file."""

MAX_BYTES = 400_000
"""Maximum size of a settings file: four bytes for each character of the longest text that the parser accepts."""


@dataclass(frozen=True, kw_only=True)
class LoadedSettings:
    """Settings, the file that they come from, and whether the file is trusted."""

    settings: Settings
    """Settings as written in the file. `effective(loaded)` returns the settings that apply."""
    source: Path | None
    """Absolute path of the file, with the links in the path of its folder resolved; `None` if there is no file."""
    directory: Path
    """Absolute path of the working directory. Relative roots are resolved against this directory."""
    digest: str
    """SHA-256 of the file's bytes, in hexadecimal. If there is no file, the digest is that of an empty text. The digest
    also covers the rules of presets."""
    trusted: bool
    """`True` if the user trusted these bytes at this path, if the user named the file, or if there is no file."""
    why_untrusted: str | None = None
    """Reason, as text for the user, why the file is not trusted; `None` if the file is trusted."""
    named_as: Path | None = None
    """Absolute path of the file, without resolving links; `None` if there is no file."""
    line_of: Callable[[tuple[str | int, ...]], int | None] = lambda path: None
    """Function that returns the 1-based line number of the value at a key path such as `('shell', 'rules', 0)`, or
    `None` if unknown."""


def find_settings(directory: str | os.PathLike[str]) -> Path | None:
    """Return the settings file in a directory, or `None`. Parent folders are not searched.

    Any file with one of the names in `NAMES` is returned, even a broken link.

    Raises:
        ApprovalConfigError: There are two files, or the directory cannot be searched.
    """
    found = [path for name in NAMES if _is_there(path := Path(directory, name))]
    if len(found) > 1:
        names = ' and '.join(f'`{path.name}`' for path in found)
        raise ApprovalConfigError(f'the directory has {names}; keep one of them', source=str(Path(directory)))
    return found[0] if found else None


def load_settings(
    path: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    trust: TrustStore | None = None,
    named: bool = False,
) -> LoadedSettings:
    """Read the settings.

    Args:
        path: The settings file; `None` to look for one in `directory`.
        directory: The working directory; `None` for the working directory of the process.
        trust: The store of trusted files; by default, the store in the user's state directory.
        named: Whether the user named the file, for example on a command line. A file that the user named is trusted and
            may be a symbolic link. Any other file needs the user's trust, and must not be a symbolic link.

    Raises:
        ApprovalConfigError: The file cannot be read, is not a settings file, or has a mistake. The error names the key,
            the file and the line.
        MissingExtraError: PyYAML is not installed.
    """
    given = Path(directory if directory is not None else '')
    folder = Path(os.path.abspath(given))
    # As the user would write it, which makes errors shorter.
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
        problem = f'TOML is not supported; write the same keys as YAML into `{shown.stem}.yaml` instead'
        raise ApprovalConfigError(problem, source=str(shown))
    content = _read(shown, follows_links=named)
    document, line_of = parse_document(_text(content, shown), source=str(shown))
    settings = read_settings(document, source=str(shown), line_of=line_of)
    digest = hashlib.sha256(content)
    if settings.extends:
        try:
            # An upgrade may change a preset, while the user trusted its former rules (test_extends.py).
            rules = expanded(settings).model_dump_json(exclude_defaults=True)
            digest = hashlib.sha256(digest.digest() + rules.encode())
        except ApprovalConfigError as error:
            line = line_of(tuple((error.key or '').split('.')))
            raise ApprovalConfigError(error.problem, key=error.key, source=str(shown), line=line) from None
    loaded = LoadedSettings(
        settings=settings,
        # Resolved, not normalised as text: `link/../approvals.yaml` is in the folder that the link leads to.
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
    """Return `loaded`. If no file was found, return settings with the preset `default`, as `tool-approval run` does.

    Without a file, commands run without approval in the base profile of the OS sandbox, where one works.
    """
    if loaded.source is not None:
        return loaded
    return replace(loaded, settings=Settings(extends=('default',)))


def trust_settings(loaded: LoadedSettings, trust: TrustStore) -> LoadedSettings:
    """Trust the bytes that were loaded and shown to the user, even if the file has changed since then.

    Raises:
        TrustError: The file cannot be recorded as trusted.
        ValueError: The settings do not come from a file.
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
        # Without an error, the run would go on as if there were no file, and what the file blocks would not be blocked.
        raise ApprovalConfigError(f'the folder cannot be searched: {error.strerror}', source=str(path)) from None
    return True


def _why_untrusted(loaded: LoadedSettings, trust: TrustStore | None) -> str | None:
    assert loaded.source is not None, 'a file was read'
    try:
        why = (trust if trust is not None else TrustStore()).why_untrusted(loaded.source, loaded.digest)
    except TrustError as error:
        return str(error)
    if why == CHANGED and loaded.settings.extends:
        return 'the file, or a preset that the file extends, has changed since it was trusted'
    return why


def _read(source: Path, *, follows_links: bool) -> bytes:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follows_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(source, flags)
    except ValueError:
        raise ApprovalConfigError('a path must not contain NUL', source=repr(str(source))) from None
    except OSError as error:
        raise ApprovalConfigError(_why(error, source), source=str(source)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ApprovalConfigError('the path is not a regular file', source=str(source))
        with os.fdopen(descriptor, 'rb', closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ApprovalConfigError(_why(error, source), source=str(source)) from None
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise ApprovalConfigError(f'the file is larger than {MAX_BYTES} bytes', source=str(source))
    return content


def _why(error: OSError, source: Path) -> str:
    if error.errno == errno.ELOOP and source.is_symlink():
        # Attack: the target is outside of the working tree, and can change while the tree does not.
        return 'the file is a symbolic link; links are used only if you name them explicitly'
    return f'the file cannot be read: {error.strerror}'


def _text(content: bytes, source: Path) -> str:
    try:
        return content.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = content.count(b'\n', 0, error.start) + 1
        raise ApprovalConfigError('not UTF-8', source=str(source), line=line) from None


def effective(loaded: LoadedSettings) -> Settings:
    """Return the settings that apply, with presets expanded; see `expand`.

    Settings of an untrusted file can only make the defaults stricter. The file can block calls, but it cannot remove
    the need for an approval:

    - `mode`, `require_os_sandbox` and `os_sandbox_fallback` apply as in a trusted file.
    - `default: none`, `approval: none` and `auto_grant` are ignored.
    - `answers` can only forbid answers: `respond` is left out.
    - `approvers` apply, because they only limit who can approve. Their `timeout` is ignored.
    - Each `description` is ignored, because it would be part of the question to the approver.
    - `visible` and `toolchains` are ignored, but `hidden` applies.
    - Roots outside of the working directory are removed. All access to roots in the working directory needs approval.
    - Shell rules that let commands run without approval are removed. Later rules or the default decide about these
      commands. Rules that require approval do not apply in a removed root. If a rule blocks commands in a removed
      root, the rule blocks these commands everywhere.
    - `audit` is ignored: calls that run unasked are logged.
    - `notify` is ignored.
    - Commands have no network. The time limit of commands is the shorter of the file's limit and the default.
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
        # A longer time than that of the UI would not be stricter.
        approvers={name: rule.model_copy(update={'timeout': None}) for name, rule in settings.approvers.items()},
        sandbox=sandbox,
        shell=None if settings.shell is None else _shell(settings.shell, known),
    )


def expanded(settings: Settings) -> Settings:
    """Return the settings with presets expanded; see `expand`.

    Raises:
        ApprovalConfigError: A preset and the settings use the same name for two directories.
        MissingExtraError: PyYAML is not installed.
    """
    if not settings.extends:
        return settings
    from .extends import expand  # imported late for a quick start, as not every file extends presets

    return expand(settings)


def _rule(rule: ToolRule) -> ToolRule:
    # Attack: a file lets a person answer for a tool that its author did not mean to be answered for.
    answers = rule.answers and both_allow(rule.answers, USUAL_ANSWERS)
    cases = tuple(case.model_copy(update={'description': None}) for case in rule.cases if case.approval != 'none')
    approval = None if rule.approval == 'none' else rule.approval
    return ToolRule(approval=approval, answers=answers, approvers=rule.approvers, cases=cases)


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
    # The examples are dropped, because other rules may decide them now.
    return ShellRule(pattern=rule.pattern, allowed=rule.allowed, sandbox_paths=paths)


class SettingsAudit:
    """An audit sink that first writes a line about the settings, and adds the digest of the settings to every line."""

    def __init__(
        self, sink: AuditSink, loaded: LoadedSettings, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Write a line about the loaded settings.

        Args:
            sink: The sink to which the lines are written.
            loaded: The settings that apply to the audited decisions.
            now: Clock.

        Raises:
            AuditError: The line cannot be written.
        """
        self._sink = sink
        self._digest = loaded.digest
        sink.record(
            {
                'event': 'settings',
                'at': now().isoformat(),
                'source': None if loaded.source is None else whole_characters(str(loaded.source)),
                'settings_digest': loaded.digest,
                'trusted': loaded.trusted,
                'why_untrusted': None if loaded.why_untrusted is None else whole_characters(loaded.why_untrusted),
            }
        )

    def record(self, entry: Mapping[str, Any]) -> None:
        """Write an entry with the digest of the settings; see `AuditSink`."""
        self._sink.record({**entry, 'settings_digest': self._digest})
