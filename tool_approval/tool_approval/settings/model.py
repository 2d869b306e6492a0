"""Define the keys of `approvals.yaml`, and parse the file's text. Errors name the key and the line of a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    field_validator,
    model_validator,
)

from tool_approval.core.approvers import ApproverRule
from tool_approval.core.config import (
    Default,
    LineOf,
    PolicyConfig,
    ToolRule,
    check_approvers,
    parse_document,
    plain_rules,
    read_model,
)
from tool_approval.core.decision import read_mode
from tool_approval.core.errors import ApprovalConfigError, printable
from tool_approval.core.offers import as_tuple
from tool_approval.core.policy import ApprovalPolicy
from tool_approval.os_sandbox import OSSandboxFallback
from tool_approval.tools.file_sandbox import PathConfig, SandboxConfig

# The base class checks names in the same way; the override of `paths` below would lose that check.
from tool_approval.tools.file_sandbox.config import _is_name  # pyright: ignore[reportPrivateUsage]
from tool_approval.tools.shell import ShellConfig
from tool_approval.tools.shell.environment import may_be_secret

PresetName = Literal['default', 'read-only']
"""Presets that come with the package."""

Mode = Literal['interactive', 'strict']
"""Modes that a settings file can choose. A file cannot choose the mode `approve_all`."""


def _read_mode(mode: object) -> object:
    try:
        known = read_mode(mode) if isinstance(mode, str) else None
    except ValueError:
        known = None
    if known == 'approve_all':
        # Attack: a cloned repository contains a file that approves everything (test_attacks.py).
        raise ValueError(
            f'a settings file must not approve everything, so its mode cannot be `{printable(str(mode))}`; use '
            '`interactive` or `strict` here, or choose `approve_all` on the command line or in code'
        )
    return known or mode


class PathSettings(PathConfig):
    """One entry of `sandbox.paths` in the settings."""

    @field_validator('root')
    @classmethod
    def _is_where_it_says(cls, root: Path) -> Path:
        # The file tools would look for a folder called `~`, while commands expand it to a home directory.
        if str(root).startswith('~'):
            raise ValueError('`~` is not expanded; write an absolute path')
        return root


def _is_toolchain(folder: str) -> str:
    if not folder.startswith('/') or '\0' in folder:
        raise ValueError('a toolchain must be an absolute path; `~` and variables are not expanded')
    return folder


_RootName = Annotated[str, AfterValidator(_is_name)]


class SandboxSettings(SandboxConfig):
    """The key `sandbox` of the settings."""

    # For a type checker the values of a mapping are invariant; the model is frozen, so no other value can get in.
    paths: dict[_RootName, PathSettings] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=dict[str, PathSettings]
    )
    require_os_sandbox: StrictBool = False
    """Whether file and shell tools run only if an OS sandbox confines commands."""
    os_sandbox_fallback: OSSandboxFallback = 'fail_fast'
    """Reaction if a required OS sandbox does not work: `fail_fast` raises an error at the start, and `refuse_tools`
    refuses all calls of the file and shell tools."""
    toolchains: tuple[Annotated[str, AfterValidator(_is_toolchain)], ...] = ()
    """Absolute paths of additional folders from which commands can read files and run programs."""


DEFAULT_SANDBOX = SandboxSettings(
    paths={'workspace': PathSettings(root=Path(), mode='rw', write_approval=True, read_approval=True)}
)
"""Roots if the key `sandbox` is missing: only the working directory, where every read and write needs approval."""


class AuditSettings(BaseModel):
    """The key `audit` of the settings."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    unasked: StrictBool = True
    """Whether the log has a line for each call that runs unasked."""


_Variable = Annotated[str, Field(pattern=r'^[A-Za-z_][A-Za-z0-9_]*$')]
"""Name of an environment variable. Its value is a secret, so it must not be in the file, which an agent can read."""


class WebhookSettings(BaseModel):
    """The key `notify.webhook` of the settings."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    url: _Variable
    """Environment variable with the address to which requests are sent."""
    secret: _Variable
    """Environment variable with the secret that signs requests and answers: `whsec_` and 24 to 64 bytes in base64."""
    people: dict[str, str] = Field(min_length=1)
    """Maps the ids with which the receiver names people to the ids of approvers. Other people cannot answer."""


class NotifySettings(BaseModel):
    """The key `notify` of the settings."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    people: dict[str, Annotated[tuple[_Variable, ...], BeforeValidator(as_tuple)]] = Field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """Maps the ids of approvers to environment variables, each with one Apprise URL."""
    webhook: WebhookSettings | None = None
    """Endpoint that gets each request, and sends answers."""


class Settings(BaseModel):
    """Content of a settings file. A missing key grants no access."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    extends: Annotated[tuple[PresetName, ...], BeforeValidator(as_tuple)] = ()
    """Presets. The directories and shell rules of presets are added to those of this file. `shell.default` of the last
    preset applies unless this file has one."""
    mode: Annotated[Mode, BeforeValidator(_read_mode)] = 'interactive'
    """Mode: `interactive` asks the approver, and `strict` (or its older name `auto_deny`) denies without asking."""
    default: Default | None = None
    """Approval for tools without a rule: `required`, `none`, or `None` to let the code choose."""
    tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """Maps tool names and globs to rules."""
    custom_tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """Like `tools`, maps tool names and globs to rules. A file can use this key to list the application's own tools
    separately. A name must not be in both `tools` and `custom_tools`."""
    approvers: dict[str, ApproverRule] = Field(default_factory=dict[str, ApproverRule])
    """The people who must approve, by the names that rules and cases use."""
    auto_grant: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    """Maps a tool's `isolation_profile` to the capabilities that are granted without asking."""
    sandbox: SandboxSettings | None = None
    """Directories that the file tools and commands can use; `None` means `DEFAULT_SANDBOX`."""
    shell: ShellConfig | None = None
    """Rules of the shell tool; `None` means that every command needs approval."""
    audit: AuditSettings = AuditSettings()
    """Content of the audit log, if there is one."""
    notify: NotifySettings | None = None
    """People to notify of requests. Only `tool-approval serve --config` uses this key."""

    @model_validator(mode='after')
    def _names_are_said_once(self) -> Self:
        for name in self.tools.keys() & self.custom_tools.keys():
            raise ValueError(f'`{printable(name)}` is in `tools` and in `custom_tools`; write it once')
        return self

    @model_validator(mode='after')
    def _runs_inside(self) -> Self:
        if self.require_os_sandbox and self.shell is not None and self.shell.host:
            raise ValueError(
                '`shell.host` lets commands run outside of the OS sandbox, and `sandbox.require_os_sandbox` forbids '
                'that; remove one of them'
            )
        return self

    @model_validator(mode='after')
    def _passes_no_secret(self) -> Self:
        visible = () if self.sandbox is None else self.sandbox.visible
        for name in () if self.shell is None else self.shell.environment:
            if may_be_secret(name) and name not in visible:
                raise ValueError(
                    f'the variable `{name}` in `shell.environment` has the name of a secret; if every command may read '
                    'it, name it in `sandbox.visible`, too'
                )
        return self

    @property
    def require_os_sandbox(self) -> bool:
        """Value of `sandbox.require_os_sandbox`."""
        return self.sandbox is not None and self.sandbox.require_os_sandbox

    @property
    def os_sandbox_fallback(self) -> OSSandboxFallback:
        """Value of `sandbox.os_sandbox_fallback`."""
        return 'fail_fast' if self.sandbox is None else self.sandbox.os_sandbox_fallback

    @property
    def policy_config(self) -> PolicyConfig:
        """Configuration of the policy, in which `tools` also contains `custom_tools`."""
        tools = {**self.tools, **self.custom_tools}
        return PolicyConfig(default=self.default, tools=tools, approvers=self.approvers, auto_grant=self.auto_grant)

    @property
    def policy(self) -> ApprovalPolicy:
        """New policy with these rules."""
        return ApprovalPolicy.from_config(self.policy_config, source='the settings file')


_MAY_BE_EMPTY = ('sandbox', 'shell', 'audit')


def read_settings(
    document: Mapping[str, Any], *, source: str | None = None, line_of: LineOf = lambda path: None
) -> Settings:
    """Validate a parsed document.

    Args:
        document: Nested mappings with the keys of `approvals.yaml`.
        source: The file of the document, for error messages.
        line_of: Function that returns the line number of the value at a key path, for error messages.

    Raises:
        ApprovalConfigError: A key or value is unknown or has the wrong type. The error names the first wrong key and
            its line.
    """
    plain = plain_rules(document)
    for key in _MAY_BE_EMPTY:
        if plain.get(key, ...) is None:
            plain[key] = {}
    sandbox = plain.get('sandbox')
    if isinstance(sandbox, Mapping):
        plain['sandbox'] = {
            key: value
            for key, value in cast('Mapping[str, object]', sandbox).items()
            if key != 'paths' or value is not None
        }
    both = _in_both(plain)
    if both is not None:
        raise ApprovalConfigError(
            'this tool is in `tools` as well; write it once',
            key=f'custom_tools.{both}',
            source=source,
            line=line_of(('custom_tools', both)),
        )
    settings = read_model(Settings, plain, source=source, line_of=line_of)
    sections = {'tools': settings.tools, 'custom_tools': settings.custom_tools}
    check_approvers(settings.approvers, sections, source=source, line_of=line_of)
    return settings


def parse_settings(text: str, *, source: str | None = None) -> Settings:
    """Parse and validate a document in YAML or JSON.

    Args:
        text: The document.
        source: The file of the document, for error messages.

    Raises:
        ApprovalConfigError: The document has a mistake. The error names the key, the file and the line.
        MissingExtraError: PyYAML is not installed.
    """
    document, line_of = parse_document(text, source=source)
    return read_settings(document, source=source, line_of=line_of)


def _in_both(plain: Mapping[str, Any]) -> str | None:
    sections = [plain.get('tools'), plain.get('custom_tools')]
    if not all(isinstance(section, Mapping) for section in sections):
        return None
    tools, custom = (cast('Mapping[str, object]', section) for section in sections)
    return next((name for name in custom if name in tools), None)
