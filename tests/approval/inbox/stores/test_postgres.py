import subprocess
import sys
from itertools import count

import pytest
from tool_approval.inbox import InboxUnavailable, InboxUntrusted, Row

from tests.approval.parts import NOON, finish, start_python

ROW = Row(id='a', owner='o', content='{}', posted_at=NOON)
NUMBERS = count()


@pytest.fixture
def schema():
    return f'own_{next(NUMBERS)}'


@pytest.fixture
def open_store(postgres):
    from tool_approval.inbox.stores.postgres import PostgresStore

    stores = []

    def make(schema, dsn=postgres.dsn):
        stores.append(PostgresStore(dsn, schema=schema))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def database(postgres):
    import psycopg

    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection


def refused(store, match):
    with pytest.raises(InboxUntrusted, match=match):
        store.open(10)
    with pytest.raises(InboxUntrusted, match=match):
        store.watch(0.0)


def test_tables_are_in_their_own_schema(open_store, database, schema):
    open_store(schema).add(ROW)

    found = database.execute('SELECT tablename FROM pg_tables WHERE schemaname = %s', (schema,)).fetchall()
    tables = ['approvals', 'executions', 'owners', 'requests', 'runs', 'secret', 'version', 'workers']
    assert sorted(found) == [(table,) for table in tables]


def test_inboxes_in_two_schemas_are_separate(open_store, schema):
    one, other = open_store(schema), open_store(f'{schema}_b')
    assert other.watch(0.0) is None

    one.add(ROW)

    assert list(other.open(10)) == []
    assert not other.watch(0.2).added


def test_a_newer_schema_is_refused_with_what_to_do(open_store, database, schema):
    open_store(schema).add(ROW)
    database.execute(f'UPDATE {schema}.version SET number = 2')

    refused(open_store(schema), 'the schema has version 2, but this release supports up to 1; upgrade tool_approval')


@pytest.mark.parametrize('change', ['DELETE FROM {}.version', 'INSERT INTO {}.version VALUES (1)'])
def test_a_schema_that_does_not_say_its_version_is_refused(open_store, database, schema, change):
    open_store(schema).add(ROW)
    database.execute(change.format(schema))

    refused(open_store(schema), "the table 'version' must have one row")


def test_a_schema_with_other_tables_is_refused_and_left_as_it_was(open_store, database, schema):
    database.execute(f'CREATE SCHEMA {schema}')
    database.execute(f'CREATE TABLE {schema}.theirs (x int)')

    refused(open_store(schema), f"the schema '{schema}' has other tables; give the inbox its own schema")

    found = database.execute('SELECT tablename FROM pg_tables WHERE schemaname = %s', (schema,)).fetchall()
    assert found == [('theirs',)]


def test_an_empty_schema_that_an_administrator_has_made_is_used(open_store, database, schema):
    database.execute(f'CREATE SCHEMA {schema}')

    open_store(schema).add(ROW)

    assert list(open_store(schema).open(10)) == [ROW]


def test_an_older_schema_is_migrated_and_keeps_its_rows(open_store, postgres, schema):
    from tool_approval.inbox.stores.postgres import MIGRATIONS, PostgresConnection

    open_store(schema).add(ROW)

    later = PostgresConnection(postgres.dsn, schema, 'here', (*MIGRATIONS, ('ALTER TABLE requests ADD COLUMN x int',)))
    with later.using() as connection:
        assert connection.execute('SELECT id, x FROM requests').fetchall() == [('a', None)]
        assert connection.execute('SELECT number FROM version').fetchall() == [(len(MIGRATIONS) + 1,)]
    later.close()


def test_a_table_that_is_gone_is_refused(open_store, database, schema):
    store = open_store(schema)
    store.add(ROW)
    database.execute(f'DROP TABLE {schema}.requests')

    with pytest.raises(InboxUntrusted, match='relation "requests" does not exist'):
        store.open(10)


def test_other_tables_of_the_same_name_are_not_met(open_store, database, schema):
    store = open_store(schema)
    store.add(ROW)
    with store._database.using() as connection:
        connection.execute('CREATE TEMPORARY TABLE requests (LIKE requests)')
    database.execute('CREATE TABLE IF NOT EXISTS public.requests (id text)')

    assert list(store.open(10)) == [ROW]
    database.execute('DROP TABLE public.requests')


def test_several_processes_create_the_store_at_once(open_store, postgres, schema):
    script = (
        'import sys\n'
        'from datetime import datetime, timezone\n'
        'from tool_approval.inbox import Row\n'
        'from tool_approval.inbox.stores.postgres import PostgresStore\n'
        'sys.stdin.read()\n'
        'store = PostgresStore(sys.argv[1], schema=sys.argv[2])\n'
        'for number in range(50):\n'
        '    store.add(Row(id=sys.argv[3] + str(number), owner="o", content="{}",\n'
        '                  posted_at=datetime(2026, 1, 2, tzinfo=timezone.utc)))\n'
        'store.close()\n'
    )

    ended = finish(*(start_python(script, postgres.dsn, schema, name) for name in 'abc'))

    assert ended == [(0, '', '')] * 3
    assert len(open_store(schema).open(1000)) == 150


def test_a_connection_that_breaks_is_made_again_and_changes_may_have_been_missed(open_store, database, schema):
    store, other = open_store(schema), open_store(schema)
    assert store.watch(0.0) is None
    other.add(ROW)
    assert store.watch(20.0).added == {'a'}
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tool-approval inbox'"
    )

    for act in (lambda: store.watch(5.0), lambda: other.open(10)):
        with pytest.raises(InboxUnavailable, match=r'.+'):
            act()
    assert store.watch(0.0) is None
    assert list(other.open(10)) == [ROW]


def test_unreachable_server_is_unavailable_and_its_password_is_not_shown(open_store, schema):
    store = open_store(schema, 'postgresql://ada:secret@127.0.0.1:1/inbox')

    with pytest.raises(InboxUnavailable, match="the inbox in the PostgreSQL database 'inbox' is unavailable") as error:
        store.open(10)

    assert 'secret' not in str(error.value)
    assert 'secret' not in store.place


def test_invalid_dsn_is_refused_without_quoting_it(open_store, schema):
    with pytest.raises(ValueError, match=r'^the DSN is invalid; write postgresql://') as error:
        open_store(schema, 'password=secret host')

    assert 'secret' not in str(error.value)


@pytest.mark.parametrize('name', ['', 'A', 'a-b', 'a"b', '1a', 'a' * 51, 'a\n'])
def test_schema_name_that_is_not_plain_is_refused(open_store, name):
    with pytest.raises(ValueError, match='is not a valid schema name'):
        open_store(name)


def test_settings_of_the_dsn_apply_to_the_connection(postgres, open_store, schema):
    store = open_store(schema, f'{postgres.dsn} application_name=mine')

    with store._database.using() as connection:
        assert connection.execute('SHOW application_name').fetchall() == [('mine',)]
        for name in ('statement_timeout', 'idle_in_transaction_session_timeout'):
            assert connection.execute(f'SHOW {name}').fetchall() == [('8s',)]


def test_closed_store_is_reported(open_store, schema):
    store = open_store(schema)
    store.close()

    with pytest.raises(InboxUnavailable, match='the store is closed'):
        store.open(10)


def test_without_psycopg_the_error_names_the_extra():
    script = (
        'import sys\n'
        "sys.modules['psycopg'] = None\n"
        'import tool_approval.inbox, tool_approval.inbox.stores\n'
        'try:\n'
        '    import tool_approval.inbox.stores.postgres\n'
        'except ImportError as error:\n'
        '    print(error)\n'
    )

    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, timeout=60)

    assert (
        done.stdout
        == "'psycopg' is not installed; in a checkout of tool-approval, run: pip install './tool_approval[postgres]'\n"
    )
