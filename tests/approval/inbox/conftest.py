from itertools import count

import pytest
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore

from tests.postgres_server import postgres

__all__ = ('make_inbox', 'make_store', 'postgres')

NUMBERS = count()


@pytest.fixture(params=['sqlite', 'postgres'])
def make_store(request, tmp_path):
    """Opens the store of this test, as each of several processes would."""
    if request.param == 'sqlite':
        return lambda: SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')
    server = request.getfixturevalue('postgres')
    from tool_approval.inbox.stores.postgres import PostgresStore

    schema = f'test_{next(NUMBERS)}'
    return lambda: PostgresStore(server.dsn, schema=schema)


@pytest.fixture
def make_inbox(make_store):
    """Opens an inbox, each with a store of its own, as in another process."""
    inboxes = []

    def make(**keywords):
        inboxes.append(Inbox(make_store(), **keywords))
        return inboxes[-1]

    yield make
    for inbox in inboxes:
        inbox.close()
