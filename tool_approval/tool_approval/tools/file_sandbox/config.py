"""What may be configured: which directories there are for an agent, and what it may do in each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, model_validator

Need = Literal['required', 'none']
"""Whether somebody has to consent; the words are those of the tools' rules."""

_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}')


def _is_name(name: str) -> str:
    # A name stands in front of a colon in messages, so it must not look like a part of a path.
    if _NAME.fullmatch(name) is None:
        raise ValueError('a name of a root has letters, digits, `_`, `-` and `.`, and is at most 64 characters long')
    return name


def _is_suffix(suffix: str) -> str:
    if len(suffix) < 2 or not suffix.startswith('.') or '/' in suffix or '\0' in suffix:
        raise ValueError(f'{suffix!r} is no suffix; write one as `.txt`')
    return suffix


def _is_root(root: Path) -> Path:
    if '\0' in str(root):
        raise ValueError('a root must not contain NUL')
    return root


class PathApproval(BaseModel):
    """The other way to write `write_approval` and `read_approval`, with the word that tools use."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    write: Need = 'required'
    """What holds for changes."""
    read: Need = 'none'
    """What holds for reading and listing."""


class PathConfig(BaseModel):
    """One directory, and what an agent may do in it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    root: Annotated[Path, AfterValidator(_is_root)]
    """The directory, relative to the working directory or absolute. It has to exist when a tool uses it."""
    mode: Literal['ro', 'rw'] = 'ro'
    """Whether anything in it may be changed."""
    suffixes: Annotated[tuple[Annotated[str, AfterValidator(_is_suffix)], ...], Field(min_length=1)] | None = None
    """What the names of files have to end with, upper and lower case distinguished; `None` allows every name."""
    write_approval: StrictBool = True
    """Whether somebody has to consent to a change."""
    read_approval: StrictBool = False
    """Whether somebody has to consent to reading and listing."""
    approval: PathApproval | None = None
    """`write_approval` and `read_approval` in other words; never beside these."""

    @model_validator(mode='after')
    def _take_over(self) -> Self:
        if self.approval is None:
            return self
        if {'write_approval', 'read_approval'} & self.model_fields_set:
            raise ValueError('write either `approval`, or `write_approval` and `read_approval`, not both')
        object.__setattr__(self, 'write_approval', self.approval.write == 'required')
        object.__setattr__(self, 'read_approval', self.approval.read == 'required')
        return self


class SandboxConfig(BaseModel):
    """All directories that there are for an agent, by name. What lies in none of them is out of its reach."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    paths: dict[Annotated[str, AfterValidator(_is_name)], PathConfig] = Field(default_factory=dict[str, PathConfig])
    """The directories, by the names that messages call them."""
