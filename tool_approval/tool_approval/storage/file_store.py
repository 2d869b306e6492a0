"""Store `always` approvals in one file in the user's state directory, never in the project."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tool_approval.core.errors import StoreError
from tool_approval.core.protocols import RememberedApproval

from .private_file import (
    FileReplaced,
    check_private,
    default_path,
    locked,
    make_private_folder,
    open_private,
    replace_private,
)

T = TypeVar('T')

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of the file in bytes, enough for about 50,000 approvals. People do not approve so many calls."""

_UNCHANGED = 'nothing was changed'

_mark = attrgetter('st_dev', 'st_ino', 'st_mtime_ns', 'st_ctime_ns', 'st_size', 'st_mode', 'st_uid', 'st_nlink')
"""Parts of a file's `stat` result. If any of these parts changes, the file is opened and checked again."""


class _Contents(BaseModel):
    model_config = ConfigDict(extra='forbid', strict=True)

    version: Literal[1]
    key: Annotated[str, Field(pattern=r'^[0-9a-f]{64}$')]
    approvals: list[RememberedApproval]


class FileApprovalStore:
    """Stores approvals in a private file of the user, for all processes. Approvals in an invalid file are not used."""

    def __init__(self, project: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> None:
        """Open the store, and create the file if it does not exist.

        Args:
            project: Root of the project for which approvals are remembered. The approvals do not apply to other
                projects.
            path: The file; `None` uses `default_path()`.

        Raises:
            ValueError: `project` names a JSON file, not a directory.
            StoreError: The file or its folder is not private to the user, or the file is inside the project, where the
                agent could write its own approvals.
        """
        if Path(project).suffix == '.json':
            raise ValueError('`project` is the directory of the project; give the file of the approvals as `path=`')
        self._path = Path(path) if path is not None else default_path()
        self._lock_path = self._path.with_name(f'{self._path.name}.lock')
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._contents: _Contents | None = None
        self._by_id: dict[str, RememberedApproval] = {}
        root = Path(project).resolve()
        if self._path.resolve().is_relative_to(root):
            raise StoreError(str(self._path), f'the file is inside the project {str(root)!r}; keep it elsewhere')
        self.scope: Mapping[str, str] = {'project': str(root)}
        self.key = self._guarded(self._make_key)

    def get(self, approval_id: str) -> RememberedApproval | None:
        """Return an approval; see `ApprovalStore`. The file is read again only after it has changed."""
        return self._guarded(lambda: self._read().get(approval_id))

    def list_all(self) -> Sequence[RememberedApproval]:
        """List all approvals; see `ApprovalStore`."""
        return self._guarded(lambda: list(self._read().values()))

    def put(self, approval: RememberedApproval) -> None:
        """Store an approval; see `ApprovalStore`."""
        self._guarded(lambda: self._change(approval.id, approval), so=_UNCHANGED)

    def change(
        self, approval_id: str, change: Callable[[RememberedApproval], RememberedApproval | None], /
    ) -> RememberedApproval | None:
        """Change an approval; see `ApprovalStore`."""
        return self._guarded(lambda: self._replace(approval_id, change), so=_UNCHANGED)

    def remove(self, approval_id: str) -> bool:
        """Forget an approval; see `ApprovalStore`."""
        return self._guarded(lambda: self._change(approval_id, None), so=_UNCHANGED)

    def _guarded(self, action: Callable[[], T], *, so: str = 'it approves nothing') -> T:
        with self._lock:
            try:
                return action()
            except OSError as error:
                problem = error.strerror or str(error)
                raise StoreError(str(self._path), f'{problem}; {so}') from error

    def _make_key(self) -> bytes:
        make_private_folder(self._path.parent)
        with locked(self._lock_path):
            if not self._path.is_symlink() and not self._path.exists():
                self._write(_Contents(version=1, key=secrets.token_hex(32), approvals=[]))
            self._read()
        if self._contents is None:
            raise StoreError(str(self._path), 'the file disappeared while it was being opened')
        return bytes.fromhex(self._contents.key)

    def _read(self) -> dict[str, RememberedApproval]:
        while True:
            try:
                return self._read_once()
            except FileReplaced:  # by another process, which is never busy with the file for long
                continue

    def _read_once(self) -> dict[str, RememberedApproval]:
        try:
            status = os.lstat(self._path)
        except FileNotFoundError:
            # The user has deleted the file, and with it all remembered approvals.
            self._seen, self._by_id = None, {}
            return self._by_id
        if _mark(status) == self._seen:
            return self._by_id
        descriptor = open_private(self._path, os.O_RDONLY)
        with os.fdopen(descriptor, 'rb') as file:
            status = os.fstat(descriptor)
            check_private(status)
            if status.st_size > MAX_BYTES:
                raise StoreError(str(self._path), f'the file is larger than {MAX_BYTES} bytes, so it approves nothing')
            text = file.read()
        try:
            contents = _Contents.model_validate_json(text)
        except ValidationError as error:
            # The error's text quotes the file, so it is left out.
            raise StoreError(
                str(self._path),
                f'the file is corrupt ({error.error_count()} errors), so it approves nothing; inspect it, or delete it '
                'to start over',
            ) from None
        if self._contents is not None and contents.key != self._contents.key:
            raise StoreError(str(self._path), 'another store replaced the file; restart to use the new store')
        self._contents = contents
        self._by_id = {each.id: each for each in contents.approvals}
        self._seen = _mark(status)
        return self._by_id

    def _change(self, approval_id: str, approval: RememberedApproval | None) -> bool:
        with locked(self._lock_path):
            approvals = dict(self._read())
            if approval is not None:
                approvals[approval_id] = approval
            elif approvals.pop(approval_id, None) is None:
                return False
            self._write_all(approvals)
            return True

    def _replace(
        self, approval_id: str, change: Callable[[RememberedApproval], RememberedApproval | None]
    ) -> RememberedApproval | None:
        with locked(self._lock_path):
            approvals = dict(self._read())
            found = approvals.get(approval_id)
            changed = None if found is None else change(found)
            if changed is not None:
                self._write_all({**approvals, approval_id: changed})
            return changed

    def _write_all(self, approvals: Mapping[str, RememberedApproval]) -> None:
        self._write(_Contents(version=1, key=self.key.hex(), approvals=list(approvals.values())))

    def _write(self, contents: _Contents) -> None:
        text = contents.model_dump_json(indent=1).encode()
        if len(text) > MAX_BYTES:
            # A file above the limit could not be read again.
            raise StoreError(str(self._path), f'the file would be larger than {MAX_BYTES} bytes; revoke some approvals')
        replace_private(self._path, text)
