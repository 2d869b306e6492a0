"""What the file of trust holds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


class TrustedFile(BaseModel):
    """One file that was trusted."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    path: str
    """Absolute, without symbolic links."""
    digest: Annotated[str, Field(pattern=r'^[0-9a-f]{64}$')]
    """SHA-256 of its bytes, in hexadecimal."""
    trusted_at: AwareDatetime
    """When, in UTC."""


class TrustedFiles(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra='forbid', strict=True)

    version: Literal[1]
    """Of this form."""
    files: list[TrustedFile]
    """In the order in which they were trusted."""
