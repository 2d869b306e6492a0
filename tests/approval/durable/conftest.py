from itertools import count

import pytest
from tool_approval.durable import DurableStore
from tool_approval.inbox.stores import SQLiteStore

from tests.postgres_server import postgres

__all__ = ('make_store', 'postgres', 'store')

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
