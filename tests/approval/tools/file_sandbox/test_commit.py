"""A change that nobody has seen is not lost, whatever happens between two steps."""

import os

import pytest
from tool_approval.tools.file_sandbox import FileToolError, commit, content
from tool_approval.tools.file_sandbox.content import MISSING, state_of


@pytest.fixture
def folder(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def put(folder, expected, name='x'):
    commit.put(folder, name, b'new', expected=expected, shown='root:x')


def contents(tmp_path):
    return sorted(path.read_text() for path in tmp_path.iterdir())


def test_expected_file_is_replaced(folder, tmp_path):
    (tmp_path / 'x').write_text('old')

    put(folder, state_of(folder, 'x'))

    assert contents(tmp_path) == ['new']


@pytest.mark.parametrize('has_exchange', [True, False])
def test_changed_file_is_kept(folder, tmp_path, monkeypatch, has_exchange):
    if not has_exchange:
        monkeypatch.setattr(commit, '_system_call', lambda: (commit._missing, commit._LINUX))
    (tmp_path / 'x').write_text('old')
    seen = state_of(folder, 'x')
    (tmp_path / 'x').write_text('newer')

    with pytest.raises(FileToolError, match='root:x: the content has changed in the meantime'):
        put(folder, seen)
    with pytest.raises(FileToolError, match='the content has changed'):
        put(folder, MISSING)
    with pytest.raises(FileToolError, match='the content has changed'):
        commit.take_away(folder, 'x', expected=seen, shown='root:x')
    with pytest.raises(FileToolError, match='the content has changed'):
        commit.carry(folder, 'x', folder, 'y', expected=seen, shown='root:x')

    assert contents(tmp_path) == ['newer']
    assert os.listdir(tmp_path) == ['x']


def test_without_a_swap_everything_still_works(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(commit, '_system_call', lambda: (commit._missing, commit._LINUX))
    (tmp_path / 'x').write_text('old')
    (tmp_path / 'd').mkdir()

    put(folder, state_of(folder, 'x'))
    put(folder, MISSING, 'y')
    commit.carry(folder, 'd', folder, 'e', expected=state_of(folder, 'd'), shown='root:d')
    commit.take_away(folder, 'e', expected=state_of(folder, 'e'), shown='root:e')
    commit.carry(folder, 'y', folder, 'z', expected=state_of(folder, 'y'), shown='root:y')
    with pytest.raises(FileToolError, match='delete the target first'):
        commit.replace(folder, 'x', folder, 'z', expected='', shown='root:z', source_state=state_of(folder, 'x'))
    with pytest.raises(FileExistsError):
        commit.carry(folder, 'x', folder, 'z', expected=state_of(folder, 'x'), shown='root:x')

    assert sorted(os.listdir(tmp_path)) == ['x', 'z']


def test_a_file_that_has_gone_is_not_replaced(folder, tmp_path):
    (tmp_path / 'x').write_text('old')
    seen = state_of(folder, 'x')
    (tmp_path / 'x').unlink()

    with pytest.raises(FileToolError, match='the content has changed'):
        put(folder, seen)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize('make', [lambda place: place.symlink_to('/etc/passwd'), os.mkfifo, os.mkdir])
def test_something_else_in_its_place_stays(folder, tmp_path, make):
    (tmp_path / 'x').write_text('old')
    seen = state_of(folder, 'x')
    (tmp_path / 'x').unlink()
    make(tmp_path / 'x')
    kind = os.lstat(tmp_path / 'x').st_mode

    with pytest.raises(FileToolError, match='the content has changed'):
        put(folder, seen)

    assert os.listdir(tmp_path) == ['x']
    assert os.lstat(tmp_path / 'x').st_mode == kind


def swapping(monkeypatch, act):
    """Let `act` happen right after the first swap."""
    swap, acts = commit.exchange, [act]

    def exchange(*names):
        swap(*names)
        if acts:
            acts.pop()()

    monkeypatch.setattr(commit, 'exchange', exchange)


def test_a_second_change_right_after_the_swap_is_kept_beside(folder, tmp_path, monkeypatch):
    (tmp_path / 'x').write_text('not what was seen')

    def another():
        (tmp_path / 'y').write_text('third')
        (tmp_path / 'y').rename(tmp_path / 'x')

    swapping(monkeypatch, another)

    with pytest.raises(FileToolError, match=r"one of the versions was kept as 'x\.kept-[0-9a-f]{8}'"):
        put(folder, 'sha256:seen')

    assert contents(tmp_path) == ['not what was seen', 'third']
    assert (tmp_path / 'x').read_text() == 'not what was seen'


def test_a_file_that_goes_right_after_the_swap_does_not_take_another_with_it(folder, tmp_path, monkeypatch):
    (tmp_path / 'x').write_text('not what was seen')
    swapping(monkeypatch, (tmp_path / 'x').unlink)

    with pytest.raises(FileToolError, match='kept-'):
        put(folder, 'sha256:seen')

    assert contents(tmp_path) == ['not what was seen']


def test_a_failure_right_after_the_swap_deletes_nothing_of_others(folder, tmp_path, monkeypatch):
    (tmp_path / 'x').write_text('not what was seen')

    def fail():
        raise KeyboardInterrupt

    swapping(monkeypatch, fail)

    with pytest.raises(KeyboardInterrupt):
        put(folder, 'sha256:seen')

    assert 'not what was seen' in contents(tmp_path)


def test_moving_onto_a_file_checks_both(folder, tmp_path):
    (tmp_path / 'a').write_text('a')
    (tmp_path / 'b').write_text('b')
    states = {name: state_of(folder, name) for name in 'ab'}

    for source, dest in ((states['a'], 'other'), ('other', states['b'])):
        with pytest.raises(FileToolError, match='the content has changed'):
            commit.replace(folder, 'a', folder, 'b', expected=dest, shown='root:b', source_state=source)
        assert contents(tmp_path) == ['a', 'b']
        assert (tmp_path / 'a').read_text() == 'a'
    commit.replace(folder, 'a', folder, 'b', expected=states['b'], shown='root:b', source_state=states['a'])

    assert contents(tmp_path) == ['a']
    assert os.listdir(tmp_path) == ['b']


def test_file_that_cannot_be_restored_is_named(folder, tmp_path, monkeypatch):
    (tmp_path / 'x').write_text('not what was seen')
    plain = commit.state_of

    def taken(*place):
        (tmp_path / 'x').write_text('another')
        return plain(*place)

    monkeypatch.setattr(commit, 'state_of', taken)

    with pytest.raises(FileToolError, match=r"left the file under the name '\.tool-approval-[0-9a-f]{16}\.tmp'"):
        commit.take_away(folder, 'x', expected='sha256:seen', shown='root:x')

    assert contents(tmp_path) == ['another', 'not what was seen']


def test_file_that_cannot_be_deleted_is_restored(folder, tmp_path, monkeypatch):
    (tmp_path / 'x').write_text('old')

    def refuse(*place, **where):
        raise PermissionError(1, 'no')

    monkeypatch.setattr(os, 'unlink', refuse)

    with pytest.raises(PermissionError):
        commit.take_away(folder, 'x', expected=state_of(folder, 'x'), shown='root:x')

    assert os.listdir(tmp_path) == ['x']


def test_unreadable_file_counts_as_changed(folder, tmp_path, monkeypatch):
    (tmp_path / 'x').write_text('old')
    seen = state_of(folder, 'x')

    def fail(*place):
        raise OSError(5, 'I/O error')

    monkeypatch.setattr(commit, 'state_of', fail)

    with pytest.raises(FileToolError, match='the content has changed'):
        put(folder, seen)
    assert contents(tmp_path) == ['old']


def test_a_long_file_is_compared_without_being_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(content, 'HASHED_BYTES', 4)
    (tmp_path / 'x').write_text('12345')
    seen = state_of(folder, 'x')

    assert seen.startswith('file:')
    put(folder, seen)
    assert contents(tmp_path) == ['new']


def test_each_kind_of_thing_has_a_state_of_its_own(folder, tmp_path):
    (tmp_path / 'file').write_text('x')
    (tmp_path / 'link').symlink_to('file')
    (tmp_path / 'dir/sub').mkdir(parents=True)
    os.mkfifo(tmp_path / 'pipe')

    kinds = [state_of(folder, name).split(':')[0] for name in ('file', 'link', 'dir', 'pipe', 'none')]

    assert kinds == ['sha256', 'link', 'tree', 'special', 'missing']


def test_the_state_of_a_directory_changes_with_what_it_contains(folder, tmp_path):
    (tmp_path / 'dir').mkdir()
    states = [state_of(folder, 'dir')]
    for change in (
        lambda: (tmp_path / 'dir/a').write_text('1'),
        lambda: (tmp_path / 'dir/a').write_text('22'),
        lambda: (tmp_path / 'dir/a').rename(tmp_path / 'dir/b'),
        lambda: (tmp_path / 'dir/c').mkdir(),
        lambda: (tmp_path / 'dir/c/d').symlink_to('x'),
    ):
        change()
        states.append(state_of(folder, 'dir'))

    assert len(set(states)) == len(states)


def test_an_error_of_the_system_passes(folder, tmp_path):
    with pytest.raises(FileNotFoundError):
        commit.rename_exclusive(folder, 'none', folder, 'x')
    with pytest.raises(FileNotFoundError):
        commit.exchange(folder, 'none', folder, 'x')


def test_a_system_without_the_call_is_known(monkeypatch):
    class Library:
        pass

    commit._system_call.cache_clear()
    monkeypatch.setattr(commit.ctypes, 'CDLL', lambda *arguments, **options: Library())
    monkeypatch.setattr(commit.sys, 'platform', 'darwin')

    assert commit._system_call() == (commit._missing, commit._MACOS)

    commit._system_call.cache_clear()
