"""Ways to spoil a file that only its owner may use. Nothing is read from such a file, whatever it is for."""

import os

import pytest


def replace_by_link(path):
    path.rename(path.with_name('elsewhere'))
    path.symlink_to('elsewhere')


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def replace_by_folder(path):
    path.unlink()
    path.mkdir(mode=0o700)


SPOILT = [
    pytest.param(lambda path: path.chmod(0o644), r'others can access the file \(mode 0644\)', id='readable'),
    pytest.param(lambda path: path.chmod(0o622), r'others can access the file \(mode 0622\)', id='writable'),
    pytest.param(
        lambda path: os.chown(path, 65534, 65534),
        r'the file belongs to another user \(id 65534\)',
        marks=pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away; runs as root'),
        id='of another user',
    ),
    pytest.param(replace_by_link, 'the file is a symbolic link', id='link'),
    pytest.param(lambda path: os.link(path, path.with_name('other')), 'more than one name', id='hard link'),
    pytest.param(replace_by_pipe, 'the path is not a regular file', id='pipe'),
    pytest.param(replace_by_folder, 'the path is not a regular file', id='folder'),
]
each_spoilt_file = pytest.mark.parametrize(('spoil', 'reason'), SPOILT)
