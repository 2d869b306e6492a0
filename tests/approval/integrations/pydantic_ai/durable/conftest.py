import pytest
from tool_approval.inbox.stores import SQLiteStore

from tests.approval.durable.conftest import (
    empty_url,
    inbox,
    postgres,
    postgres_url,
    prepared_database,
    prepared_file,
    soon_closed,
    url,
)

__all__ = (
    'empty_url',
    'inbox',
    'postgres',
    'postgres_url',
    'prepared_database',
    'prepared_file',
    'soon_closed',
    'url',
)


@pytest.fixture(autouse=True)
def close_the_stores(monkeypatch):
    """A durable agent keeps its store until its process ends, and a process of many tests has no descriptors left."""
    opened: list[SQLiteStore] = []
    prepare = SQLiteStore.__init__

    def prepare_noted(store, *given, **options):
        prepare(store, *given, **options)
        opened.append(store)

    monkeypatch.setattr(SQLiteStore, '__init__', prepare_noted)
    yield
    for store in opened:
        store.close()
