import os
import sqlite3
import stat
import threading

import pytest
from tool_approval.inbox import InboxUnavailable, InboxUntrusted, Row
from tool_approval.inbox.stores import SQLiteStore, default_path
from tool_approval.inbox.stores.sqlite import MIGRATIONS
from tool_approval.inbox.stores.sqlite_file import SQLiteFile

from tests.approval.parts import NOON, finish, start_python
from tests.approval.spoilt_files import each_spoilt_file

ROW = Row(id='a', owner='o', content='{}', posted_at=NOON)


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'state' / 'inbox.sqlite'


@pytest.fixture
def store(path):
    made = SQLiteStore(path)
    made.add(ROW)
    yield made
    made.close()


def refused(path, match):
    store = SQLiteStore(path)
    with pytest.raises(InboxUntrusted, match=match):
        store.open(10)
    with pytest.raises(InboxUntrusted, match=match):
        store.watch(0.0)
    store.close()


def test_the_default_place_is_the_users_state_folder(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))

    store = SQLiteStore()
    store.add(ROW)
    store.close()

    assert default_path() == tmp_path / 'tool-approval' / 'inbox.sqlite'
    assert default_path().exists()


def test_all_files_of_the_store_are_private(store, path):
    modes = {name: stat.S_IMODE(os.lstat(path.parent / name).st_mode) for name in os.listdir(path.parent)}

    assert modes == dict.fromkeys(['inbox.sqlite', 'inbox.sqlite-wal', 'inbox.sqlite-shm', 'inbox.sqlite.lock'], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_store_creates_nothing_before_its_first_use(path):
    SQLiteStore(path).close()

    assert not path.parent.exists()


@each_spoilt_file
def test_spoilt_file_is_refused(store, path, spoil, reason):
    store.close()
    spoil(path)

    refused(path, reason)


def test_file_that_others_may_read_by_now_is_refused_by_a_store_that_is_open(store, path):
    path.chmod(0o644)

    with pytest.raises(InboxUntrusted, match='others can access the file'):
        store.open(10)


def test_a_folder_that_others_may_write_to_is_refused(path):
    path.parent.mkdir()
    path.parent.chmod(0o777)

    refused(path, 'other users can write to the folder')


def test_a_corrupt_file_is_refused(store, path):
    store.close()
    path.write_bytes(b'SQLite format 3\x00' + b'\xff' * 5000)

    refused(path, 'inspect the file, or move it away to start with a new one')


def test_file_that_is_not_a_database_is_refused(path):
    path.parent.mkdir(mode=0o700)
    path.write_text('no database at all, and long enough to be taken for one' * 100)
    path.chmod(0o600)

    refused(path, 'file is not a database; inspect the file, or move it away')


def test_a_file_that_is_corrupt_inside_approves_nothing(store, path):
    for number in range(200):
        store.add(Row(id=f'b{number}', owner='o', content='x' * 3000, posted_at=NOON))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 2 :] = b'\x07' * (len(content) - 4096 * 2)
    path.write_bytes(content)

    with pytest.raises(InboxUntrusted, match='malformed'):
        SQLiteStore(path).open(1000)


def other_program(path, *statements):
    path.parent.mkdir(mode=0o700, exist_ok=True)
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    path.chmod(0o600)


@pytest.mark.parametrize(
    'statement', ['CREATE TABLE theirs (x)', 'PRAGMA application_id = 7', 'PRAGMA user_version = 1']
)
def test_file_of_another_program_is_refused_and_unchanged(path, statement):
    other_program(path, statement)
    before = path.read_bytes()

    refused(path, 'the file belongs to another program')

    assert path.read_bytes() == before


def test_a_newer_file_is_refused_with_what_to_do(store, path):
    store.close()
    other_program(path, f'PRAGMA user_version = {len(MIGRATIONS) + 1}')

    refused(
        path,
        f'the file has version {len(MIGRATIONS) + 1}, but this release supports up to {len(MIGRATIONS)}; upgrade',
    )


def test_a_file_without_its_tables_is_refused(store, path):
    store.close()
    other_program(path, 'DROP TABLE requests')

    with pytest.raises(InboxUntrusted, match='no such table'):
        SQLiteStore(path).open(10)


def test_an_older_file_is_migrated_step_by_step_and_keeps_its_rows(path):
    path.parent.mkdir(mode=0o700)
    first = SQLiteFile(path, [('CREATE TABLE t (a)', 'INSERT INTO t VALUES (1)')])
    with first.reading() as database:
        assert database.execute('SELECT a FROM t').fetchall() == [(1,)]
    first.close()

    steps = [(), ('ALTER TABLE t ADD COLUMN b DEFAULT 2',), ('UPDATE t SET b = b + 1',)]
    second = SQLiteFile(path, steps)

    with second.reading() as database:
        assert database.execute('SELECT a, b FROM t').fetchall() == [(1, 3)]
        assert database.execute('PRAGMA user_version').fetchall() == [(3,)]
    second.close()


def test_a_migration_that_fails_changes_nothing(path):
    path.parent.mkdir(mode=0o700)
    broken = SQLiteFile(path, [('CREATE TABLE t (a)', 'no statement')])

    with pytest.raises(InboxUntrusted, match='syntax error'), broken.reading():
        pass

    repaired = SQLiteFile(path, [('CREATE TABLE t (a)',)])
    with repaired.reading() as database:
        assert database.execute('PRAGMA user_version').fetchall() == [(1,)]
    repaired.close()


def test_several_processes_create_the_store_at_once(path):
    script = (
        'import sys\n'
        'from datetime import datetime, timezone\n'
        'from tool_approval.inbox import Row\n'
        'from tool_approval.inbox.stores import SQLiteStore\n'
        'sys.stdin.read()\n'
        'store = SQLiteStore(sys.argv[1])\n'
        'for number in range(50):\n'
        '    store.add(Row(id=sys.argv[2] + str(number), owner="o", content="{}",\n'
        '                  posted_at=datetime(2026, 1, 2, tzinfo=timezone.utc)))\n'
    )

    ended = finish(*(start_python(script, path, name) for name in 'abc'))

    assert ended == [(0, '', '')] * 3
    store = SQLiteStore(path)
    assert len(store.open(1000)) == 150
    store.close()


def test_a_file_that_was_removed_is_noticed_and_made_anew(store, path):
    assert store.watch(0.0) is None
    path.unlink()

    with pytest.raises(InboxUnavailable, match='the file was removed, or replaced by another file'):
        store.open(10)
    with pytest.raises(InboxUnavailable, match='the file was removed'):
        store.watch(0.0)
    assert list(store.open(10)) == []
    assert store.watch(0.0) is None


def test_a_path_that_cannot_be_used_is_unavailable(tmp_path):
    (tmp_path / 'file').write_text('')

    with pytest.raises(InboxUnavailable, match='Not a directory'):
        SQLiteStore(tmp_path / 'file' / 'state' / 'inbox.sqlite').open(10)


def test_a_place_that_several_processes_cannot_share_is_refused(monkeypatch, path):
    class NoWal(sqlite3.Connection):
        def execute(self, statement, *rest):
            return (
                super().execute('SELECT ?', ('delete',))
                if 'journal_mode' in statement
                else super().execute(statement, *rest)
            )

    original = sqlite3.connect
    monkeypatch.setattr(sqlite3, 'connect', lambda *args, **keywords: original(*args, **keywords, factory=NoWal))

    refused(path, 'processes cannot share a file on this file system; use a local disk')


def test_closing_ends_a_watch(store):
    store.watch(0.0)
    watching = threading.Thread(target=lambda: store.watch(60.0))
    watching.start()

    store.close()
    watching.join(20)

    assert not watching.is_alive()
    with pytest.raises(InboxUnavailable, match='the store is closed'):
        store.open(10)


def test_pruned_content_is_no_longer_in_the_file(store, path):
    store.add(Row(id='b', owner='o', content='a secret to be forgotten', posted_at=NOON))
    store.settle('b', 'expired', at=NOON)

    store.prune(NOON.replace(year=2027))
    store.close()

    assert not any(b'to be forgotten' in each.read_bytes() for each in path.parent.iterdir())
