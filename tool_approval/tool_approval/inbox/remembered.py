"""Keep remembered approvals in the inbox's database, for processes on any number of machines."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b

from pydantic import ValidationError

from tool_approval.core.errors import StoreError, check_methods
from tool_approval.core.protocols import RememberedApproval

from .errors import InboxError, InboxUntrusted
from .store import Execute, ParkingStore


def secret_of(execute: Execute, place: str) -> bytes:
    """Return 32 random bytes, created once for each database.

    Args:
        execute: Executes statements in a transaction.
        place: Location of the database, named in the error.

    Raises:
        InboxUntrusted: The bytes were changed.
    """
    execute('INSERT INTO secret VALUES (1, ?) ON CONFLICT (id) DO NOTHING', (secrets.token_hex(32),))
    [(found,)] = execute('SELECT value FROM secret').fetchall()
    try:
        key = bytes.fromhex(found)
    except (TypeError, ValueError):
        key = b''
    if len(key) != 32:
        raise InboxUntrusted(place, 'the secret key was changed')
    return key


class InboxApprovalStore:
    """Stores approvals in the database of an inbox. See `ApprovalStore`.

    All methods block for as long as the database needs.
    """

    def __init__(self, inbox_store: ParkingStore, project: str) -> None:
        """Use a database.

        Args:
            inbox_store: The database: an `SQLiteStore`, with `synchronous='FULL'` so that a power failure undoes no
                use of a bounded approval, or a `PostgresStore`.
            project: Name of what the approvals are for, such as a deployment or the root of a project. They do not
                apply where the store has another name.

        Raises:
            StoreError: The database cannot be used.
            TypeError: `inbox_store` is not the database of an inbox.
        """
        check_methods('inbox_store', inbox_store, 'a store such as `SQLiteStore(path)`', 'transaction', 'reading')
        self._store = inbox_store
        self.scope: Mapping[str, str] = {'project': project}
        with self._transaction() as execute:
            # Not the secret itself, which is the key of something else.
            self.key = blake2b(key=secret_of(execute, inbox_store.place), digest_size=32, person=b'approvals').digest()

    def get(self, approval_id: str) -> RememberedApproval | None:
        """Return an approval; see `ApprovalStore`."""
        with self._guarded(), self._store.reading() as execute:
            found = self._content(execute, approval_id)
            return None if found is None else self._read(found)

    def list_all(self) -> Sequence[RememberedApproval]:
        """List all approvals; see `ApprovalStore`."""
        with self._guarded(), self._store.reading() as execute:
            rows = execute('SELECT content FROM approvals ORDER BY number, id').fetchall()
            return [self._read(content) for (content,) in rows]

    def put(self, approval: RememberedApproval) -> None:
        """Store an approval; see `ApprovalStore`."""
        with self._transaction() as execute:
            execute(
                'INSERT INTO approvals SELECT ?, coalesce(max(number), 0) + 1, ? FROM approvals WHERE 1 = 1 '
                'ON CONFLICT (id) DO UPDATE SET content = excluded.content',
                (approval.id, approval.model_dump_json()),
            )

    def change(
        self, approval_id: str, change: Callable[[RememberedApproval], RememberedApproval | None], /
    ) -> RememberedApproval | None:
        """Change an approval; see `ApprovalStore`."""
        while True:
            with self._transaction() as execute:
                found = self._content(execute, approval_id)
                changed = None if found is None else change(self._read(found))
                if changed is None:
                    return None
                statement = 'UPDATE approvals SET content = ? WHERE id = ? AND content = ?'
                if execute(statement, (changed.model_dump_json(), approval_id, found)).rowcount:
                    return changed

    def remove(self, approval_id: str) -> bool:
        """Forget an approval; see `ApprovalStore`."""
        with self._transaction() as execute:
            return execute('DELETE FROM approvals WHERE id = ?', (approval_id,)).rowcount > 0

    @contextmanager
    def _transaction(self) -> Generator[Execute]:
        with self._guarded(), self._store.transaction() as execute:
            yield execute

    @contextmanager
    def _guarded(self) -> Generator[None]:
        try:
            yield
        except InboxError as error:
            raise StoreError('', f'the remembered approvals cannot be used: {error}') from error

    def _content(self, execute: Execute, approval_id: str) -> str | None:
        rows = execute('SELECT content FROM approvals WHERE id = ?', (approval_id,)).fetchall()
        return rows[0][0] if rows else None

    def _read(self, content: str) -> RememberedApproval:
        try:
            return RememberedApproval.model_validate_json(content)
        except ValidationError as error:
            # The error's text quotes the database, so it is left out.
            problem = f'a remembered approval is corrupt ({error.error_count()} errors), so it approves nothing'
            raise StoreError(self._store.place, problem) from None
