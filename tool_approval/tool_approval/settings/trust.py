"""Store the paths and digests of trusted settings files in the user's state directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from tool_approval.core.errors import ApprovalError
from tool_approval.storage.private_file import (
    default_path,
    locked,
    make_private_folder,
    open_private,
    replace_private,
)

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of the store in bytes, enough for about 20,000 trusted files."""

CHANGED = 'the file has changed since it was trusted'
"""Reason why a file is not trusted although the user trusted earlier content of the file."""

_SO = 'no file is trusted'


class TrustedFile(BaseModel):
    """A file that the user trusts."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    path: str
    """Absolute path without symbolic links."""
    digest: Annotated[str, Field(pattern=r'^[0-9a-f]{64}$')]
    """SHA-256 of the bytes of the file, in hexadecimal."""
    trusted_at: AwareDatetime
    """Time when the user trusted the file, in UTC."""


class TrustedFiles(BaseModel):
    """Content of the store's file."""

    model_config = ConfigDict(extra='forbid', strict=True)

    version: Literal[1]
    """Version of the file format."""
    files: list[TrustedFile]
    """Trusted files, in the order in which the user trusted them."""


class TrustError(ApprovalError):
    """The store cannot be read or written. No file is trusted until the store can be read."""

    def __init__(self, path: str, problem: str) -> None:
        """Record the problem and the path of the store. The path is empty if there is no home folder."""
        self.path = path
        self.problem = problem
        super().__init__(f'trusted files in {path!r}: {problem}' if path else problem)


class TrustStore:
    """Stores the path and digest of each file that the user trusts. Every method call reads the store's file again.

    A copy of a trusted file at another path is not trusted, because its relative paths lead to other folders. A changed
    file is not trusted until the user trusts it again.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Set the path of the store, without opening or creating the file.

        Args:
            path: Path of the store; `None` for `trusted.json` in the user's state directory.
            now: Clock that returns the current time.

        Raises:
            TrustError: There is no home directory, so there is no state directory.
        """
        try:
            self.path = Path(path) if path is not None else default_path().with_name('trusted.json')
        except RuntimeError:
            raise TrustError('', f'there is no home folder, so {_SO}; set HOME') from None
        self._now = now

    def is_trusted(self, path: str | os.PathLike[str], digest: str) -> bool:
        """Whether the user trusts these bytes at this path. If the store cannot be read, no file is trusted."""
        return self.why_untrusted(path, digest) is None

    def why_untrusted(self, path: str | os.PathLike[str], digest: str) -> str | None:
        """Return why a file is not trusted, as text for the user, or `None` if it is trusted."""
        real = os.path.realpath(path)
        try:
            known = [each.digest for each in self._read(real) if each.path == real]
        except TrustError as error:
            return str(error)
        if not known:
            return 'the user has not trusted the file'
        return None if digest in known else CHANGED

    def list_all(self) -> Sequence[TrustedFile]:
        """Return all trusted files, in the order in which the user trusted them.

        Raises:
            TrustError: The store cannot be read.
        """
        return self._read()

    def trust(self, path: str | os.PathLike[str], digest: str) -> None:
        """Trust a file with exactly these bytes. Earlier content of the file is no longer trusted.

        Args:
            path: The file.
            digest: SHA-256 of the bytes that the user was shown, in hexadecimal.

        Raises:
            TrustError: The file cannot be recorded as trusted. The store is unchanged.
        """
        real = os.path.realpath(path)
        try:
            real.encode()
            added = TrustedFile(path=real, digest=digest, trusted_at=self._now())
        except (UnicodeEncodeError, ValidationError):
            # The path is not valid text, or the digest is invalid.
            raise TrustError(str(self.path), f'{real!r} cannot be stored; nothing was changed') from None
        self._change(lambda files: [*(each for each in files if each.path != real), added], real)

    def revoke(self, path: str | os.PathLike[str]) -> bool:
        """Stop trusting a file.

        Returns:
            Whether the file was trusted.

        Raises:
            TrustError: The store cannot be read or changed.
        """
        real = os.path.realpath(path)
        if not any(each.path == real for each in self._read()):
            return False
        self._change(lambda files: [each for each in files if each.path != real])
        return True

    def _read(self, file: str | None = None) -> list[TrustedFile]:
        self._check_place(file)
        try:
            descriptor = open_private(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TrustError(str(self.path), f'{error.strerror or error}, so {_SO}') from None
        with os.fdopen(descriptor, 'rb') as opened:
            text = opened.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise TrustError(str(self.path), f'the store is larger than {MAX_BYTES} bytes, so {_SO}')
        try:
            return TrustedFiles.model_validate_json(text).files
        except ValidationError:
            problem = f'the content is invalid, so {_SO}; repair the file, or delete it to start again'
            raise TrustError(str(self.path), problem) from None

    def _change(self, change: Callable[[list[TrustedFile]], list[TrustedFile]], file: str | None = None) -> None:
        try:
            make_private_folder(self.path.parent)
            with locked(self.path.with_name(f'{self.path.name}.lock')):
                contents = TrustedFiles(version=1, files=change(self._read(file)))
                replace_private(self.path, contents.model_dump_json(indent=1).encode())
        except OSError as error:
            raise TrustError(str(self.path), f'{error.strerror or error}; nothing was changed') from None

    def _check_place(self, file: str | None) -> None:
        # Attack: a repository contains a store, and makes an environment variable point to it.
        if file is not None and Path(os.path.realpath(self.path)).is_relative_to(Path(file).parent):
            raise TrustError(
                str(self.path), f'the store is in the folder of the settings file, so {_SO}; move the store elsewhere'
            )
