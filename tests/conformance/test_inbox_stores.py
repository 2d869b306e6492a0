"""The shipped suite passes on both stores that are shipped."""

from tool_approval.inbox.stores import SQLiteStore
from tool_approval.testing import check_inbox_store


def test_sqlite(tmp_path):
    check_inbox_store(lambda: SQLiteStore(tmp_path / 'state' / 'inbox.sqlite'), tries=1000)


def test_postgres(postgres):
    from tool_approval.inbox.stores.postgres import PostgresStore

    check_inbox_store(lambda: PostgresStore(postgres.dsn, schema='conformance'), tries=1000)
