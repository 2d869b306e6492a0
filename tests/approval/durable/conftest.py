from itertools import count

import pytest
from tool_approval.durable import DurableStore, open_store
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore

from tests.postgres_server import postgres, postgres_url

__all__ = ('inbox', 'make_store', 'postgres', 'postgres_url', 'store', 'url')

NUMBERS = count()


@pytest.fixture(params=['sqlite', 'postgres'])
def make_store(request, tmp_path):
    """Opens the store of this test, as each of several processes would."""
    stores = []
    if request.param == 'sqlite':

        def make():
            stores.append(DurableStore(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite', synchronous='FULL')))
            return stores[-1]

    else:
        server = request.getfixturevalue('postgres')
        from tool_approval.inbox.stores.postgres import PostgresStore

        schema = f'durable_{next(NUMBERS)}'

        def make():
            stores.append(DurableStore(PostgresStore(server.dsn, schema=schema)))
            return stores[-1]

    yield make
    for each in stores:
        each.close()


@pytest.fixture
def store(make_store):
    return make_store()


@pytest.fixture
def url(tmp_path):
    """The URL of a store of this test."""
    return f'sqlite:///{tmp_path}/state/inbox.sqlite'


@pytest.fixture
def inbox(url):
    """The inbox of that store, as an approver's process has it."""
    with Inbox(open_store(url).inbox_store) as opened:
        yield opened
