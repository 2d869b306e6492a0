import json
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tool_approval.storage import FileApprovalStore, default_path, file_store
from tool_approval.storage.private_file import locked

from tests.approval.bounds_race import ROUNDS, race
from tests.approval.parts import NOON, finish, start_python
from tool_approval import ApprovalMemory, ApprovalStore, RememberedApproval, StoreError

A, B = 'a' * 64, 'b' * 64


def approval(approval_id=A, **fields):
    return RememberedApproval(
        **{'id': approval_id, 'tool_name': 'delete', 'kind': 'exact', 'label': 'x', 'approved_at': NOON, **fields}
    )


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / 'project'
    folder.mkdir()
    return folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'state' / 'approvals.json'


@pytest.fixture
def store(project, path):
    return FileApprovalStore(project, path)


def test_the_default_place_is_the_users_state_folder(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    assert default_path() == tmp_path / 'state' / 'tool-approval' / 'approvals.json'

    monkeypatch.setenv('XDG_STATE_HOME', 'relative/is/ignored')
    monkeypatch.setenv('HOME', str(tmp_path))
    assert default_path() == tmp_path / '.local' / 'state' / 'tool-approval' / 'approvals.json'


def test_a_store_without_a_path_is_in_the_default_place(monkeypatch, tmp_path, project):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))

    FileApprovalStore(project).put(approval())

    assert default_path().exists()


def test_file_and_folder_of_the_store_are_private(store, path):
    store.put(approval())

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(path.parent)) == ['approvals.json', 'approvals.json.lock']


def test_store_is_limited_to_its_project(store, project, tmp_path):
    (tmp_path / 'link').symlink_to('project')

    assert store.scope == {'project': str(project.resolve())}
    assert FileApprovalStore(tmp_path / 'link', tmp_path / 'state' / 'approvals.json').scope == store.scope


def test_the_file_is_read_again_only_when_it_has_changed(monkeypatch, store):
    store.put(approval())
    store.get(A)

    def refuse(*arguments):
        raise AssertionError('it was opened')

    monkeypatch.setattr(file_store, 'open_private', refuse)

    assert store.get(A) == approval()


def test_another_stores_change_is_seen_at_once(store, project, path):
    other = FileApprovalStore(project, path)
    assert store.get(A) is None

    other.put(approval())
    assert store.get(A) == approval()
    assert store.remove(A) is True
    assert other.get(A) is None
    assert other.remove(A) is False


def test_exactly_one_of_concurrent_removals_returns_true(store, project, path):
    store.put(approval())
    store.put(approval(B))
    others = [FileApprovalStore(project, path) for _ in range(4)]
    assert all(other.get(A) for other in others)

    with ThreadPoolExecutor(len(others)) as pool:
        with locked(path.with_name('approvals.json.lock')):  # all have seen it, and wait for the lock
            removals = [pool.submit(other.remove, A) for other in others]
        removed = [removal.result(timeout=60) for removal in removals]

    assert sorted(removed) == [False, False, False, True]
    assert store.list_all() == [approval(B)]


def test_deleted_file_approves_nothing_and_is_created_again(store, path):
    store.put(approval())

    path.unlink()

    assert store.get(A) is None
    assert store.list_all() == []
    store.put(approval(B))
    assert [each.id for each in store.list_all()] == [B]


def test_a_file_of_another_key_is_refused(store, project, path):
    store.put(approval())
    path.unlink()
    FileApprovalStore(project, path)

    with pytest.raises(StoreError, match='another store replaced the file; restart to use the new store'):
        store.get(A)


def test_a_file_that_vanishes_while_it_is_opened_is_an_error(monkeypatch, project, path):
    monkeypatch.setattr(file_store, 'replace_private', lambda path, content: None)

    with pytest.raises(StoreError, match='the file disappeared while it was being opened'):
        FileApprovalStore(project, path)


@pytest.mark.parametrize('place', ['approvals.json', '.hidden/approvals.json', '../project/approvals.json'])
def test_a_store_inside_of_the_project_is_refused(project, place):
    with pytest.raises(StoreError, match=re.escape(f'the file is inside the project {str(project)!r}; keep it else')):
        FileApprovalStore(project, project / place)

    assert os.listdir(project) == []


def test_a_store_inside_of_the_project_by_way_of_a_link_is_refused(tmp_path, project):
    (project / 'state').mkdir(mode=0o700)
    (tmp_path / 'link').symlink_to('project/state')

    with pytest.raises(StoreError, match='inside the project'):
        FileApprovalStore(project, tmp_path / 'link' / 'approvals.json')


def test_a_file_too_large_to_be_read_is_not_written(monkeypatch, store):
    store.put(approval())
    monkeypatch.setattr(file_store, 'MAX_BYTES', 1000)

    with pytest.raises(StoreError, match='the file would be larger than 1000 bytes; revoke some approvals'):
        store.put(approval(B, label='x' * 1000))

    assert [each.id for each in store.list_all()] == [A]


def test_a_full_disk_leaves_the_old_approvals(project, path):
    FileApprovalStore(project, path).put(approval())
    script = (
        'import resource, sys\n'
        'from datetime import datetime, timezone\n'
        'from tool_approval import RememberedApproval, StoreError\n'
        'from tool_approval.storage import FileApprovalStore\n'
        'store = FileApprovalStore(*sys.argv[1:])\n'
        'resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))\n'
        'try:\n'
        "    store.put(RememberedApproval(id='b' * 64, tool_name='t', kind='exact', label='x' * 400,\n"
        '                                 approved_at=datetime.now(timezone.utc)))\n'
        'except StoreError as error:\n'
        '    print(error.problem)\n'
    )

    ended = finish(start_python(script, project, path))

    assert ended == [(0, 'File too large; nothing was changed\n', '')]
    assert [each.id for each in FileApprovalStore(project, path).list_all()] == [A]
    assert sorted(os.listdir(path.parent)) == ['approvals.json', 'approvals.json.lock']


def test_file_of_the_store_is_json_with_a_version(store, path):
    store.put(approval(approved_by=('ada',)))

    contents = json.loads(path.read_text())

    assert contents == {
        'version': 1,
        'key': store.key.hex(),
        'approvals': [
            {
                'id': A,
                'tool_name': 'delete',
                'kind': 'exact',
                'label': 'x',
                'approved_by': ['ada'],
                'approved_at': '2026-03-04T12:00:00Z',
                'project': None,
                'is_denial': False,
                'left': None,
                'note': None,
            }
        ],
    }


WRITES = """
import sys
from datetime import datetime, timezone
from tool_approval import RememberedApproval
from tool_approval.storage import FileApprovalStore
project, path, name, count = sys.argv[1:]
sys.stdin.read()
store = FileApprovalStore(project, path)
for number in range(int(count)):
    store.put(RememberedApproval(id=f'{name}{number:063x}', tool_name='t', kind='exact', label=name,
                                 approved_at=datetime(2026, 1, 2, tzinfo=timezone.utc)))
"""


def test_two_processes_write_at_once_and_nothing_is_lost(project, path):
    processes = [start_python(WRITES, project, path, name, 200) for name in 'ab']

    ended = finish(*processes)

    assert ended == [(0, '', '')] * 2
    kept = {each.id for each in FileApprovalStore(project, path).list_all()}
    assert kept == {f'{name}{number:063x}' for name in 'ab' for number in range(200)}


def test_file_store_implements_the_protocol(store):
    used: ApprovalStore = store

    assert len(used.key) == 32
    assert Path(used.scope['project']).is_absolute()


def test_a_file_that_another_process_replaces_while_it_is_opened_is_read_again(store, project, path, monkeypatch):
    other = FileApprovalStore(project, path)
    opened = []

    def open_slowly(*arguments):
        descriptor = file_store_open(*arguments)
        opened.append(descriptor)
        if len(opened) == 1:
            other.put(approval(B))
        return descriptor

    file_store_open = file_store.open_private
    other.put(approval(A))
    monkeypatch.setattr(file_store, 'open_private', open_slowly)

    assert [each.id for each in store.list_all()] == [A, B]


@pytest.mark.parametrize('rounds', ROUNDS)
def test_no_bound_is_exceeded_by_several_processes(tmp_path, rounds):
    def make():
        return ApprovalMemory(FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json'))

    tally = race(make, rounds=rounds)

    assert tally.ran > rounds
    assert tally.exhausted > rounds / 3
