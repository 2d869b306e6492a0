"""What `approvals.yaml` may say, as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

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

from tool_approval.core.config import Default, PolicyConfig, ToolRule
from tool_approval.core.decision import read_mode
from tool_approval.core.errors import printable
from tool_approval.core.policy import ApprovalPolicy
from tool_approval.os_sandbox import OSSandboxFallback
from tool_approval.tools.file_sandbox import PathConfig, SandboxConfig

# The base's own check of names, which the override of `paths` below would lose.
from tool_approval.tools.file_sandbox.config import _is_name  # pyright: ignore[reportPrivateUsage]
from tool_approval.tools.shell import ShellConfig

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


class PathSettings(PathConfig):
    """One entry of `sandbox.paths`."""

    @field_validator('root')
    @classmethod
    def _is_where_it_says(cls, root: Path) -> Path:
        # The file tools would look for a folder called `~`, and a command in a home folder.
        if str(root).startswith('~'):
            raise ValueError('`~` is not expanded here; write the whole path')
        return root


class SandboxSettings(SandboxConfig):
    """The part `sandbox`."""

    # A mapping's values are invariant to a type checker; nobody puts others into a frozen model.
    paths: dict[Annotated[str, AfterValidator(_is_name)], PathSettings] = Field(default_factory=dict[str, PathSettings])  # pyright: ignore[reportIncompatibleVariableOverride]
    require_os_sandbox: StrictBool = False
    """Whether file and shell tools run only where the operating system confines commands."""
    os_sandbox_fallback: OSSandboxFallback = 'fail_fast'
    """What happens where it cannot: `fail_fast` starts nothing, `refuse_tools` starts without these tools."""


DEFAULT_SANDBOX = SandboxSettings(
    paths={'workspace': PathSettings(root=Path(), mode='rw', write_approval=True, read_approval=True)}
)
"""Where no file says otherwise: the working directory, and everything in it is asked about."""


class Settings(BaseModel):
    """The whole document. What is left out says nothing, and then everything is asked about."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    mode: Annotated[Mode, BeforeValidator(_read_mode)] = 'interactive'
    """Ask, or deny without asking; `auto_deny` is an older name of `strict`."""
    default: Default | None = None
    """What holds for a tool that nothing is said about: `required` or `none`; `None` leaves it to the code."""
    tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """Rules by tool name, or by glob."""
    custom_tools: dict[str, ToolRule] = Field(default_factory=dict[str, ToolRule])
    """The same as `tools`, for those who like to keep their own tools apart. A name stands in one of both."""
    auto_grant: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    """Capabilities that are granted without asking, by the `isolation_profile` a tool runs in."""
    sandbox: SandboxSettings | None = None
    """The directories of the file tools, and of commands; `None` stands for `DEFAULT_SANDBOX`."""
    shell: ShellConfig | None = None
    """The rules of the shell tool; `None` asks about every command."""

    @model_validator(mode='after')
    def _names_are_said_once(self) -> Self:
        for name in self.tools.keys() & self.custom_tools.keys():
            raise ValueError(f'`{printable(name)}` stands in `tools` and in `custom_tools`; write it once')
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
