"""What `approvals.yaml` may say, and how its text is read: mistakes are named with their key and line."""

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

from tool_approval.core.config import Default, LineOf, PolicyConfig, ToolRule, parse_document, plain_rules, read_model
from tool_approval.core.decision import read_mode
from tool_approval.core.errors import ApprovalConfigError, printable
from tool_approval.core.policy import ApprovalPolicy
from tool_approval.os_sandbox import OSSandboxFallback
from tool_approval.tools.file_sandbox import PathConfig, SandboxConfig

# The base's own check of names, which the override of `paths` below would lose.
from tool_approval.tools.file_sandbox.config import _is_name  # pyright: ignore[reportPrivateUsage]
from tool_approval.tools.shell import ShellConfig

PresetName = Literal['default', 'read-only', 'python', 'node', 'rust', 'go', 'git']
"""The presets that come with the package."""

Mode = Literal['interactive', 'strict']
"""Ask, or deny without asking. The third mode, which approves without asking, is no file's to choose."""


def _read_mode(mode: object) -> object:
    try:
        known = read_mode(mode) if isinstance(mode, str) else None
    except ValueError:
        known = None
    if known == 'approve_all':
        # Attack: a repository that is cloned brings a file that approves everything (test_attacks.py).
        raise ValueError(
            f'a file may not approve everything (`{printable(str(mode))}`); '
            'use `interactive` or `strict` here, and choose it on the command line or in code'
        )
    return known or mode


def _as_tuple(names: object) -> object:
    # YAML and JSON have lists; strict validation takes nothing but a tuple.
    return tuple(cast('list[object]', names)) if isinstance(names, list) else names


class PathSettings(PathConfig):
    """One entry of `sandbox.paths`."""

    @field_validator('root')
    @classmethod
    def _is_where_it_says(cls, root: Path) -> Path:
        # The file tools would look for a folder called `~`, and a command in a home folder.
        if str(root).startswith('~'):
            raise ValueError('`~` is not expanded here; write the whole path')
        return root


def _is_toolchain(folder: str) -> str:
    if not folder.startswith('/') or '\0' in folder:
        raise ValueError('a toolchain is an absolute path; `~` and variables are not expanded here')
    return folder


_RootName = Annotated[str, AfterValidator(_is_name)]


class SandboxSettings(SandboxConfig):
    """The part `sandbox`."""

    # A mapping's values are invariant to a type checker; nobody puts others into a frozen model.
    paths: dict[_RootName, PathSettings] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=dict[str, PathSettings]
    )
    require_os_sandbox: StrictBool = False
    """Whether file and shell tools run only where the operating system confines commands."""
    os_sandbox_fallback: OSSandboxFallback = 'fail_fast'
    """What happens where it cannot: `fail_fast` starts nothing, `refuse_tools` starts without these tools."""
    toolchains: tuple[Annotated[str, AfterValidator(_is_toolchain)], ...] = ()
    """More folders that commands can read and run programs from, as a whole; absolute."""


DEFAULT_SANDBOX = SandboxSettings(
    paths={'workspace': PathSettings(root=Path(), mode='rw', write_approval=True, read_approval=True)}
)
"""Where no file says otherwise: the working directory, and everything in it is asked about."""


class Settings(BaseModel):
    """The whole document. What is left out says nothing, and then everything is asked about."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    extends: Annotated[tuple[PresetName, ...], BeforeValidator(_as_tuple)] = ()
    """Presets whose directories and rules for commands hold as well, behind the document's own."""
    mode: Annotated[Mode, BeforeValidator(_read_mode)] = 'interactive'
    """Ask, or deny without asking; `auto_deny` is an older name of `strict`."""
    default: Default | None = None
    """What holds for a tool that nothing is said about: `required` or `none`; `None` leaves it to the code."""
    tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """Rules by tool name, or by glob."""
    custom_tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """The same as `tools`, for those who like to keep their own tools apart. A name belongs in one of both."""
    auto_grant: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    """Capabilities that are granted without asking, by the `isolation_profile` a tool runs in."""
    sandbox: SandboxSettings | None = None
    """The directories of the file tools, and of commands; `None` stands for `DEFAULT_SANDBOX`."""
    shell: ShellConfig | None = None
    """The rules of the shell tool; `None` asks about every command."""

    @model_validator(mode='after')
    def _names_are_said_once(self) -> Self:
        for name in self.tools.keys() & self.custom_tools.keys():
            raise ValueError(f'`{printable(name)}` is in `tools` and in `custom_tools`; write it once')
        return self

    @property
    def require_os_sandbox(self) -> bool:
        """`sandbox.require_os_sandbox`."""
        return self.sandbox is not None and self.sandbox.require_os_sandbox

    @property
    def os_sandbox_fallback(self) -> OSSandboxFallback:
        """`sandbox.os_sandbox_fallback`."""
        return 'fail_fast' if self.sandbox is None else self.sandbox.os_sandbox_fallback

    @property
    def policy_config(self) -> PolicyConfig:
        """What the policy is made of; `tools` and `custom_tools` are one there."""
        tools = {**self.tools, **self.custom_tools}
        return PolicyConfig(default=self.default, tools=tools, auto_grant=self.auto_grant)

    @property
    def policy(self) -> ApprovalPolicy:
        """A new policy of these rules."""
        return ApprovalPolicy.from_config(self.policy_config, source='the settings file')


_MAY_BE_EMPTY = ('sandbox', 'shell')


def read_settings(
    document: Mapping[str, Any], *, source: str | None = None, line_of: LineOf = lambda path: None
) -> Settings:
    """Check a document that was read already.

    Args:
        document: As nested mappings, with the keys of `approvals.yaml`.
        source: The file it was read from, for the error.
        line_of: The line of the value at a path of keys, for the error.

    Raises:
        ApprovalConfigError: An unknown key or value, or one of the wrong kind. It names the first in the file, with its
            line.
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
    return read_model(Settings, plain, source=source, line_of=line_of)


def parse_settings(text: str, *, source: str | None = None) -> Settings:
    """Read a document in YAML, or in JSON.

    Args:
        text: The document.
        source: The file it comes from, for errors.

    Raises:
        ApprovalConfigError: A mistake in it; the error names key, file and line.
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
