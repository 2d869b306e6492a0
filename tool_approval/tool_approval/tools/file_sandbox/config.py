"""What may be configured: which directories there are for an agent, and what it may do in each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, model_validator

Need = Literal['required', 'none', 'blocked']
"""Ask, do not ask, or refuse; the words are those of the tools' rules."""
_NEEDS: Final[dict[object, bool | Literal['blocked']]] = {'required': True, 'none': False, 'blocked': 'blocked'}

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


def _read_need(need: object) -> bool | Literal['blocked']:
    # Only true and false count as such: `"no"` in quotes is a mistake.
    if isinstance(need, bool):
        return need
    if not isinstance(need, str) or need not in _NEEDS:
        raise ValueError('neither true nor false; use `required`, `none` or `blocked`')
    return _NEEDS[need]


def _is_glob(glob: str) -> str:
    if not glob.strip('/') or glob.startswith(('/', '~')) or '..' in glob.split('/') or '\0' in glob:
        raise ValueError(f'{glob!r} is not a glob within a root, such as `*.secret` or `config/prod/**`')
    return glob


class PathApproval(BaseModel):
    """The other way to write `write_approval` and `read_approval`."""

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
    write_approval: Annotated[bool, PlainValidator(_read_need)] = True
    """Whether a change needs consent; also `required`, `none` or `blocked`, which is `mode: ro`."""
    read_approval: Annotated[bool | Literal['blocked'], PlainValidator(_read_need)] = False
    """Whether reading and listing need consent, or are `blocked`; also `required` or `none`."""
    approval: PathApproval | None = None
    """`write_approval` and `read_approval` in other words; never beside these."""

    @model_validator(mode='after')
    def _take_over(self) -> Self:
        write: bool | str = self.write_approval
        if self.approval is not None:
            if {'write_approval', 'read_approval'} & self.model_fields_set:
                raise ValueError('write either `approval`, or `write_approval` and `read_approval`, not both')
            write = _NEEDS[self.approval.write]
            object.__setattr__(self, 'read_approval', _NEEDS[self.approval.read])
        object.__setattr__(self, 'write_approval', bool(write))
        if write == 'blocked':
            object.__setattr__(self, 'mode', 'ro')
        return self


class SandboxConfig(BaseModel):
    """All directories that there are for an agent, by name. What lies in none of them is out of its reach."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    paths: dict[Annotated[str, AfterValidator(_is_name)], PathConfig] = Field(default_factory=dict[str, PathConfig])
    """The directories, by the names that messages call them."""
    hidden: tuple[Annotated[str, AfterValidator(_is_glob)], ...] = ()
    """More files and folders that hold secrets, as globs within each root: `*`, `?`, and `**` for any depth. One
    without a slash matches names at any depth."""
    visible: tuple[Annotated[str, AfterValidator(_is_glob)], ...] = ()
    """Files that hold no secret, whatever their names say; as globs, which go before `hidden`."""
