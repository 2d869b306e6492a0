"""Configuration of the file sandbox: the directories that an agent may use, and the rules for each directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, model_validator

Need = Literal['required', 'none', 'blocked']
"""`required` if an approver must approve, `none` if no approval is needed, `blocked` if the access is refused."""
_NEEDS: Final[dict[object, bool | Literal['blocked']]] = {'required': True, 'none': False, 'blocked': 'blocked'}

_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}')


def _is_name(name: str) -> str:
    # Messages write `name:path`, so a name must not look like part of a path.
    if _NAME.fullmatch(name) is None:
        raise ValueError('a root name has 1 to 64 letters, digits, `_`, `-` and `.`, and cannot begin with `-` or `.`')
    return name


def _is_suffix(suffix: str) -> str:
    if len(suffix) < 2 or not suffix.startswith('.') or '/' in suffix or '\0' in suffix:
        raise ValueError(f'{suffix!r} is not a suffix; write it like `.txt`')
    return suffix


def _is_root(root: Path) -> Path:
    if '\0' in str(root):
        raise ValueError('a root must not contain NUL')
    return root


def _read_need(need: object) -> bool | Literal['blocked']:
    # Quoted booleans such as `"no"` are mistakes.
    if isinstance(need, bool):
        return need
    if not isinstance(need, str) or need not in _NEEDS:
        raise ValueError('must be true, false, `required`, `none` or `blocked`')
    return _NEEDS[need]


def _is_glob(glob: str) -> str:
    if not glob.strip('/') or glob.startswith(('/', '~')) or '..' in glob.split('/') or '\0' in glob:
        raise ValueError(f'{glob!r} is not a glob within a root, such as `*.secret` or `config/prod/**`')
    return glob


class PathApproval(BaseModel):
    """Whether changes and reads need approval. The setting replaces `write_approval` and `read_approval`."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    write: Need = 'required'
    """Whether changes need approval, need no approval, or are blocked."""
    read: Need = 'none'
    """Whether reading and listing need approval, need no approval, or are blocked."""


class PathConfig(BaseModel):
    """A directory and its rules."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    root: Annotated[Path, AfterValidator(_is_root)]
    """Path of an existing directory, absolute or relative to the working directory."""
    mode: Literal['ro', 'rw'] = 'ro'
    """Whether files in the directory may be changed (`rw`) or only read (`ro`)."""
    suffixes: Annotated[tuple[Annotated[str, AfterValidator(_is_suffix)], ...], Field(min_length=1)] | None = None
    """Allowed suffixes of file names, case-sensitive; `None` allows every name."""
    write_approval: Annotated[bool, PlainValidator(_read_need)] = True
    """Whether changes need approval. The setting also accepts `required`, `none` and `blocked`. `blocked` sets `mode`
    to `ro`."""
    read_approval: Annotated[bool | Literal['blocked'], PlainValidator(_read_need)] = False
    """Whether reading and listing need approval. `required` and `none` are accepted too. `blocked` forbids both."""
    approval: PathApproval | None = None
    """Replaces `write_approval` and `read_approval`, which cannot be set together with `approval`."""

    @model_validator(mode='after')
    def _take_over(self) -> Self:
        write: bool | str = self.write_approval
        if self.approval is not None:
            if {'write_approval', 'read_approval'} & self.model_fields_set:
                raise ValueError('`approval` cannot be combined with `write_approval` or `read_approval`')
            write = _NEEDS[self.approval.write]
            object.__setattr__(self, 'read_approval', _NEEDS[self.approval.read])
        object.__setattr__(self, 'write_approval', bool(write))
        if write == 'blocked':
            object.__setattr__(self, 'mode', 'ro')
        return self


class SandboxConfig(BaseModel):
    """The directories that an agent may use, by name. Tools refuse every path outside of these directories."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    paths: dict[Annotated[str, AfterValidator(_is_name)], PathConfig] = Field(default_factory=dict[str, PathConfig])
    """Directories by name. Messages show the name instead of the path."""
    hidden: tuple[Annotated[str, AfterValidator(_is_glob)], ...] = ()
    """Globs of additional files and folders with secrets, relative to each root. The globs support `*`, `?` and `**`. A
    glob without a slash matches names at any depth."""
    visible: tuple[Annotated[str, AfterValidator(_is_glob)], ...] = ()
    """Globs of files that are never treated as secrets. These globs take precedence over `hidden`."""
