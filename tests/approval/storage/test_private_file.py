import contextlib
import errno
import os
import re
import stat
import subprocess
import sys

import pytest
from tool_approval.storage.private_file import (
    append_whole,
    locked,
    make_private_folder,
    open_private,
    replace_private,
)

from tests.approval.parts import finish, in_threads, start_python
from tests.approval.spoilt_files import each_spoilt_file

as_root = pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away; runs as root')


@pytest.fixture
def file(tmp_path):
    path = tmp_path / 'file'
    replace_private(path, b'content')
    return path


def opens(path):
    os.close(open_private(path, os.O_RDONLY))


def test_a_new_file_is_read_and_written_by_its_owner_alone(tmp_path):
    os.close(open_private(tmp_path / 'new', os.O_RDWR | os.O_CREAT))

    assert stat.S_IMODE((tmp_path / 'new').stat().st_mode) == 0o600
    opens(tmp_path / 'new')


@pytest.mark.parametrize('mode', [0o640, 0o604, 0o620, 0o602, 0o666, 0o610])
def test_a_file_that_others_may_use_is_refused(file, mode):
    file.chmod(mode)

    with pytest.raises(
        PermissionError, match=re.escape(f'others can access the file (mode {mode:04o}); run: chmod 600')
    ):
        opens(file)


@pytest.mark.parametrize('target', ['file', 'nothing'])
def test_a_symbolic_link_is_refused(tmp_path, file, target):
    (tmp_path / 'link').symlink_to(target)

    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT):
        with pytest.raises(PermissionError, match='the file is a symbolic link'):
            open_private(tmp_path / 'link', flags)


# A pipe is refused without waiting for its other end.
@each_spoilt_file
def test_spoilt_file_is_refused(file, spoil, reason):
    spoil(file)

    with pytest.raises(PermissionError, match=reason):
        opens(file)


def test_missing_file_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        opens(tmp_path / 'nothing')


def test_a_file_that_was_refused_is_closed(monkeypatch, file):
    file.chmod(0o644)
    closed = []
    close = os.close
    monkeypatch.setattr(os, 'close', lambda descriptor: closed.append(descriptor) or close(descriptor))

    with pytest.raises(PermissionError):
        open_private(file, os.O_RDONLY)

    assert len(closed) == 1


def test_a_folder_is_made_for_its_owner_alone(tmp_path):
    make_private_folder(tmp_path / 'a' / 'b')

    assert stat.S_IMODE((tmp_path / 'a' / 'b').stat().st_mode) == 0o700
    make_private_folder(tmp_path / 'a' / 'b')


def replace_by_link(folder):
    folder.rename(folder.with_name('elsewhere'))
    folder.symlink_to('elsewhere')


@pytest.mark.parametrize(
    ('spoil', 'reason'),
    [
        (lambda folder: folder.chmod(0o720), 'other users can write to the folder'),
        (lambda folder: folder.chmod(0o702), 'other users can write to the folder'),
        (lambda folder: folder.chmod(0o1777), 'other users can write to the folder'),
        (replace_by_link, 'is a symbolic link'),
        pytest.param(lambda folder: os.chown(folder, 65534, 65534), 'belongs to another user', marks=as_root),
    ],
    ids=['writable by a group', 'writable by others', 'sticky', 'link', 'of another user'],
)
def test_spoilt_folder_is_refused(tmp_path, spoil, reason):
    folder = tmp_path / 'folder'
    folder.mkdir(mode=0o700)
    spoil(folder)

    with pytest.raises(PermissionError, match=reason):
        make_private_folder(folder)


def test_a_folder_that_others_may_look_into_is_fine(tmp_path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    folder.chmod(0o755)

    make_private_folder(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_lock_is_held_by_one_thread_at_a_time(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(50):
            with locked(tmp_path / 'lock'):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    in_threads(*[work] * 4)

    assert most == [1] * 200


def test_a_lock_is_free_again_after_an_error(tmp_path):
    with contextlib.suppress(ValueError), locked(tmp_path / 'lock'):
        raise ValueError

    with locked(tmp_path / 'lock'):
        assert (tmp_path / 'lock').exists()


def test_replacing_leaves_one_file_with_the_new_content(tmp_path, file):
    replace_private(file, b'new')

    assert file.read_bytes() == b'new'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ['file']


def test_replacing_a_link_replaces_the_link_and_not_its_target(tmp_path, file):
    (tmp_path / 'link').symlink_to('file')

    replace_private(tmp_path / 'link', b'new')

    assert file.read_bytes() == b'content'
    assert not (tmp_path / 'link').is_symlink()


@pytest.mark.parametrize('call', ['fsync', 'replace'])
def test_file_that_cannot_be_replaced_is_unchanged(monkeypatch, tmp_path, file, call):
    def full(*arguments, **keywords):
        raise OSError(errno.ENOSPC, 'no space')

    monkeypatch.setattr(os, call, full)

    with pytest.raises(OSError, match='no space'):
        replace_private(file, b'new')
    assert file.read_bytes() == b'content'
    assert os.listdir(tmp_path) == ['file']


def test_missing_temporary_file_does_not_hide_the_error(monkeypatch, file):
    def vanish(source, target):
        os.unlink(source)
        raise OSError(errno.EIO, 'broken disk')

    monkeypatch.setattr(os, 'replace', vanish)

    with pytest.raises(OSError, match='broken disk'):
        replace_private(file, b'new')


@pytest.fixture
def descriptor(file):
    descriptor = open_private(file, os.O_RDWR | os.O_APPEND)
    yield descriptor
    os.close(descriptor)


def test_appending_adds_everything(file, descriptor):
    append_whole(descriptor, b' and more', size=7, fsync=True)

    assert file.read_bytes() == b'content and more'


def test_partial_append_is_rolled_back(monkeypatch, file, descriptor):
    write = os.write
    monkeypatch.setattr(os, 'write', lambda descriptor, content: write(descriptor, content[:4]))

    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        append_whole(descriptor, b' and more', size=7)

    assert file.read_bytes() == b'content'


def test_write_that_did_not_reach_the_disk_is_rolled_back(monkeypatch, file, descriptor):
    def broken(descriptor):
        raise OSError(errno.EIO, 'broken disk')

    monkeypatch.setattr(os, 'fsync', broken)

    with pytest.raises(OSError, match='broken disk'):
        append_whole(descriptor, b' and more', size=7, fsync=True)

    assert file.read_bytes() == b'content'


def test_a_limit_on_the_size_of_files_leaves_the_file_as_it_was(file):
    script = (
        'import os, resource, sys\n'
        'from tool_approval.storage.private_file import append_whole, open_private\n'
        'from pathlib import Path\n'
        'resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n'
        'descriptor = open_private(Path(sys.argv[1]), os.O_RDWR | os.O_APPEND)\n'
        'try:\n'
        "    append_whole(descriptor, b' and more', size=7)\n"
        'except OSError as error:\n'
        '    print(type(error).__name__)\n'
    )

    ended = finish(start_python(script, file))

    assert ended == [(0, 'OSError\n', '')]
    assert file.read_bytes() == b'content'


def test_a_file_is_not_passed_on_to_programs_that_are_started(file):
    descriptor = open_private(file, os.O_RDONLY)

    done = subprocess.run(
        [sys.executable, '-c', f'import os; os.fstat({descriptor})'], capture_output=True, close_fds=False, timeout=60
    )

    os.close(descriptor)
    assert b'Bad file descriptor' in done.stderr
