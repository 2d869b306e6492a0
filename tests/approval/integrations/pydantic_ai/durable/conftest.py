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
