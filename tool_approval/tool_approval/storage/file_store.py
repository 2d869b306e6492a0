"""Approvals that hold `always`, in one file in the user's state directory, never in the project."""

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

from .private_file import check_private, default_path, locked, make_private_folder, open_private, replace_private

T = TypeVar('T')

MAX_BYTES = 16 * 1024 * 1024
"""Chosen: some 50,000 approvals. A larger file was not written by a person's choices."""

_UNCHANGED = 'nothing was changed'

_mark = attrgetter('st_dev', 'st_ino', 'st_mtime_ns', 'st_ctime_ns', 'st_size', 'st_mode', 'st_uid', 'st_nlink')
"""Of a file's status: whatever changes any of it, the file is opened and judged again."""


class _Contents(BaseModel):
    model_config = ConfigDict(extra='forbid', strict=True)

    version: Literal[1]
    key: Annotated[str, Field(pattern=r'^[0-9a-f]{64}$')]
    approvals: list[RememberedApproval]


class FileApprovalStore:
    """A file of the user's own, shared by all processes of theirs. Anything odd about it approves nothing."""

    def __init__(self, project: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> None:
        """Open the store; the file is made with the first approval.

        Args:
            project: The root of the project the approvals are given in. They hold nowhere else.
            path: The file; `default_path()` if `None`.

        Raises:
            StoreError: The file or its folder is not the user's alone, or it lies inside of the project, where what
                the agent writes could approve the next call.
        """
        self._path = Path(path) if path is not None else default_path()
        self._lock_path = self._path.with_name(f'{self._path.name}.lock')
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._contents: _Contents | None = None
        self._by_id: dict[str, RememberedApproval] = {}
        root = Path(project).resolve()
        if self._path.resolve().is_relative_to(root):
            raise StoreError(str(self._path), f'it lies inside of the project {str(root)!r}; keep it elsewhere')
        self.scope: Mapping[str, str] = {'project': str(root)}
        self.key = self._guarded(self._make_key)

    def get(self, approval_id: str) -> RememberedApproval | None:
        """See `ApprovalStore`. The file is read again only when it has changed."""
        return self._guarded(lambda: self._read().get(approval_id))

    def list_all(self) -> Sequence[RememberedApproval]:
        """See `ApprovalStore`."""
        return self._guarded(lambda: list(self._read().values()))

    def put(self, approval: RememberedApproval) -> None:
        """See `ApprovalStore`."""
        self._guarded(lambda: self._change(approval.id, approval), so=_UNCHANGED)

    def remove(self, approval_id: str) -> bool:
        """See `ApprovalStore`."""
        return self._guarded(lambda: self._change(approval_id, None), so=_UNCHANGED)

    def _guarded(self, action: Callable[[], T], *, so: str = 'nothing in it is approved') -> T:
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
            raise StoreError(str(self._path), 'it vanished while it was opened')
        return bytes.fromhex(self._contents.key)

    def _read(self) -> dict[str, RememberedApproval]:
        try:
            status = os.lstat(self._path)
        except FileNotFoundError:
            # The user has deleted it: nothing is remembered any more.
            self._seen, self._by_id = None, {}
            return self._by_id
        if _mark(status) == self._seen:
            return self._by_id
        descriptor = open_private(self._path, os.O_RDONLY)
        with os.fdopen(descriptor, 'rb') as file:
            status = os.fstat(descriptor)
            check_private(status)
            if status.st_size > MAX_BYTES:
                raise StoreError(str(self._path), f'larger than {MAX_BYTES} bytes; nothing in it is approved')
            text = file.read()
        try:
            contents = _Contents.model_validate_json(text)
        except ValidationError as error:
            # Not the error's text: it quotes the file.
            raise StoreError(
                str(self._path),
                f'it is corrupt ({error.error_count()} errors), and nothing in it is approved; look at it, or delete '
                'it to start anew',
            ) from None
        if self._contents is not None and contents.key != self._contents.key:
            raise StoreError(str(self._path), 'it was replaced by another one; start anew to use that')
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
            self._write(_Contents(version=1, key=self.key.hex(), approvals=list(approvals.values())))
            return True

    def _write(self, contents: _Contents) -> None:
        text = contents.model_dump_json(indent=1).encode()
        if len(text) > MAX_BYTES:
            # Written, it could not be read again, and nothing at all would be remembered.
            raise StoreError(str(self._path), f'it would be larger than {MAX_BYTES} bytes; revoke some approvals')
        replace_private(self._path, text)
