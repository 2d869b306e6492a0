import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from tool_approval.durable import DurableStore, open_store
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.storage.private_file import make_private_folder

from tests.postgres_server import postgres, url_of

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


def prepare(url):
    """Have the engine make its tables. Anew for each test, that would take it a second."""
    pytest.importorskip('dbos', reason='the development environment has DBOS')
    from tool_approval.durable.engine import DBOSEngine, engine_url

    async def nothing(run_id, segment):
        """A segment that does nothing."""

    def use():
        engine = DBOSEngine(engine_url(url), 'bot', nothing, worker='worker', polling_s=0.05)
        engine.start()
        engine.close()

    # The first test that needs this may be asynchronous, and the engine does not start where a loop runs.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(use).result()


@pytest.fixture(scope='session')
def prepared_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp('prepared')
    prepare(f'sqlite:///{folder}/inbox.sqlite')
    return folder / 'inbox.dbos.sqlite'


@pytest.fixture
def empty_url(tmp_path):
    """The URL of a store that is not there yet."""
    return f'sqlite:///{tmp_path}/state/inbox.sqlite'


@pytest.fixture
def soon_closed(monkeypatch):
    """Have the engine's thread for notifications, which we do not use, notice at once that it is to end."""
    pytest.importorskip('dbos', reason='the development environment has DBOS')
    from tool_approval.durable import engine

    monkeypatch.setattr(
        engine, 'DBOSConfig', partial(engine.DBOSConfig, notification_listener_polling_interval_sec=0.05)
    )


@pytest.fixture
def url(empty_url, prepared_file, soon_closed):
    """The URL of a store of this test, with the engine's tables."""
    folder = Path(empty_url.removeprefix('sqlite:///')).parent
    make_private_folder(folder)
    shutil.copy(prepared_file, folder)
    return empty_url


@pytest.fixture(scope='session')
def prepared_database(postgres):
    dsn = postgres.new_database()
    prepare(url_of(dsn))
    return dsn.rpartition('=')[2]


@pytest.fixture
def postgres_url(postgres, prepared_database, soon_closed):
    """The same in a database of this test."""
    return url_of(postgres.new_database(prepared_database))


@pytest.fixture
def inbox(url):
    """The inbox of that store, as an approver's process has it."""
    with Inbox(open_store(url).inbox_store) as opened:
        yield opened
