"""What is no file: pipes, sockets, devices, directories in the wrong place."""

import os
import socket

import pytest
from tool_approval.tools.file_sandbox import FileToolError, perform

EVERY = ['read_file', 'write_file', 'edit_file', 'delete', 'make_directory', 'list_files']


@pytest.fixture(params=['pipe', 'socket', 'link to a pipe'])
def special(request, world, monkeypatch):
    monkeypatch.chdir(world.ws / 'cache')  # a socket's path must be short
    match request.param:
        case 'pipe':
            os.mkfifo('s')
        case 'socket':
            with socket.socket(socket.AF_UNIX) as server:
                server.bind('s')
        case _:
            os.mkfifo('p')
            os.symlink('p', 's')
    return request.param


@pytest.mark.parametrize('operation', EVERY)
def test_special_file_is_refused(world, special, operation):
    allowed = 'allow' if special == 'link to a pipe' and operation == 'delete' else 'block'

    assert world.decide(operation, 'cache/s') == allowed
    assert world.decide('move', 'cache/s', 'cache/t') == 'block'
    assert world.decide('copy', 'cache/s', 'cache/t') == 'block'
    assert world.decide('copy', 'cache/c.dat', 'cache/s') == 'block'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root makes devices')
def test_a_device_in_a_root_is_refused(world):
    os.mknod(world.ws / 'cache/null', 0o666 | 0o020000, os.makedev(1, 3))

    assert {world.decide(operation, 'cache/null') for operation in EVERY} == {'block'}


def test_a_path_that_is_too_deep_or_has_a_name_that_is_too_long_is_refused(world):
    assert world.decide('write_file', 'cache/' + 'd/' * 250 + 'x') == 'block'
    assert world.decide('read_file', 'cache/' + 'x' * 300) == 'block'
    assert world.decide('read_file', '../' + 'x' * 300) == 'block'


def test_a_directory_with_too_much_in_it_is_not_deleted(world, monkeypatch):
    monkeypatch.setattr('tool_approval.tools.file_sandbox.content.MAX_TREE', 3)
    (world.ws / 'cache/d').mkdir()
    for number in range(4):
        (world.ws / f'cache/d/{number}').touch()

    decision = world.sandbox().decide('delete', 'cache/d')

    assert decision.outcome == 'block'
    assert decision.reason == 'cache:d cannot be searched: more than 3 entries.'


def test_a_directory_that_is_too_deep_is_not_deleted(world):
    (world.ws / ('cache/d' + '/e' * 120)).mkdir(parents=True)

    assert world.decide('delete', 'cache/d') == 'block'


def test_a_pipe_that_takes_the_place_of_a_file_does_not_stop_the_agent(world):
    sandbox = world.sandbox()
    with sandbox.open('read_file', 'cache/c.dat') as access:
        (world.ws / 'cache/c.dat').unlink()
        os.mkfifo(world.ws / 'cache/c.dat')

        with pytest.raises(FileToolError, match=r'cache:c\.dat: the system refused'):
            perform(sandbox, access, {})
