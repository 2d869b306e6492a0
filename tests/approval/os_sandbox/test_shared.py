"""Attempts to get out of namespaces that commands share, or into those of others, as root and as an ordinary user."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, BubblewrapBackend, OSSandboxError, Root
from tool_approval.os_sandbox.shared import SharedNamespaces

from .house import House, identity, share, skip_reason

# The attacks, on commands with shared namespaces.
from .test_bubblewrap import (  # noqa: F401
    CONNECT,
    test_a_command_works_in_its_workspace,
    test_hidden_path_cannot_be_read,
    test_no_process_survives_the_end_of_the_command,
    test_no_socket_of_another_program_is_reached,
    test_nothing_can_be_mounted_again,
    test_nothing_outside_is_read,
    test_nothing_outside_is_written,
    test_root_cannot_set_the_kernel,
    test_the_loopback_of_the_machine_is_out_of_reach,
    test_the_network_is_reached_if_it_is_allowed,
    test_there_are_no_capabilities,
)

# Not below `/tmp`: nothing may be mounted in a `/tmp` that is shared.
PLACE = '/var/tmp'
SERVE = """
import socket
with socket.create_server(('127.0.0.1', int(__import__('sys').argv[1]))) as server:
    print('ready', flush=True)
    server.accept()[0].sendall(b'hello')
"""


@pytest.fixture(params=['root', 'ordinary'])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    if reason := skip_reason(request.param):
        pytest.skip(reason)
    folder = tempfile.mkdtemp(prefix='os-sandbox-', dir=PLACE)
    try:
        yield House(folder, user=request.param, shared=share(request.param))
    finally:
        shutil.rmtree(folder)


def other(house: House) -> House:
    """Another conversation in the same workspace."""
    found = object.__new__(House)
    vars(found).update(vars(house) | {'shared': share(house.user)})
    return found


def test_files_in_tmp_last_for_the_commands_that_share_it_and_for_nobody_else(house: House) -> None:
    house.run('mkdir -m 755 /tmp/a; echo kept > /tmp/a/file; chmod 644 /tmp/a/file')

    assert house.run('cat /tmp/a/file').stdout == 'kept\n'
    assert other(house).run('ls -A /tmp').stdout == ''
    assert house.backend.wrap(['true'], house.profile(), str(house.work)) != house.wrap('true')
    assert not Path('/tmp/a/file').exists()
    assert not Path('/sys/a').exists()


def test_a_command_with_a_tmp_of_its_own_changes_nothing_in_the_shared_one(house: House) -> None:
    house.run('echo kept > /tmp/file')
    assert house.shared is not None
    script = ['/bin/bash', '-c', 'ls -A /tmp; echo other > /tmp/file; ls -A /tmp']
    command = house.backend.wrap(script, house.profile(), str(house.work), house.shared, own_tmp=True)

    options = {'text': True, 'pass_fds': house.shared.descriptors, **identity(house.user)}
    done = subprocess.run(command, capture_output=True, check=True, **options)

    assert done.stdout == 'file\n'
    assert house.run('cat /tmp/file').stdout == 'kept\n'


def test_a_server_of_one_command_is_reached_by_another_and_by_nobody_else(house: House) -> None:
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    assert house.shared is not None
    command = house.wrap('exec python3 -I -c "$1" "$2"', SERVE, port)
    options = {'text': True, 'pass_fds': house.shared.descriptors, **identity(house.user)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == 'ready\n'

        apart = other(house).python(CONNECT, 'inet', '127.0.0.1', port).stdout
        outside = house.python(CONNECT, 'inet', '127.0.0.1', port, profile=house.profile(network=True)).stdout
        together = house.python(CONNECT, 'inet', '127.0.0.1', port).stdout

        assert [each.split()[0] for each in (apart, outside, together)] == ['refused', 'refused', 'connected']
        assert server.wait(10) == 0


def test_the_descriptors_of_the_namespaces_are_not_inherited(house: House) -> None:
    # The fourth is the listing itself.
    assert house.run('ls /proc/self/fd').stdout.split() == ['0', '1', '2', '3']


def test_links_in_tmp_open_nothing_and_move_no_mount(house: House) -> None:
    """In the folder of a mount below `/tmp`, a link of an earlier command would decide where the mount goes."""
    with tempfile.TemporaryDirectory(prefix='os-sandbox-', dir='/tmp') as folder:
        os.chmod(folder, 0o755)
        Path(folder, 'file.txt').write_text('protected')
        house.run(f'ln -s {house.outside} /tmp/out; ln -s {house.work} {folder}; ln -s / /tmp/root')
        profile = house.profile(roots=(Root(path=folder, access=Access.READ),))

        done = house.run(f'cat /tmp/out/file.txt; cat /tmp/root{house.outside}/file.txt; ls -A /tmp')
        within = house.run(f'cat {folder}/file.txt; echo x > {folder}/file.txt; ls -A /tmp', profile=profile)

        assert 'outside' not in done.stdout
        assert within.stdout == f'protected{os.path.basename(folder)}\n'
        assert (house.work / 'file.txt').read_text() != 'x'
        assert Path(folder, 'file.txt').read_text() == 'protected'


def test_tmp_is_limited_and_gone_with_the_last_who_has_it_open(bwrap: str) -> None:
    if reason := skip_reason('root') and skip_reason('ordinary'):
        pytest.skip(reason)
    shared = SharedNamespaces.open(bwrap, size=1 << 20)
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        house = House(folder, user='root', shared=shared)
        done = house.run('head -c 2000000 /dev/zero > /tmp/a; stat -c %s /tmp/a')
    [net] = shared.descriptors[2:]
    inode = os.fstat(net).st_ino
    del house, shared

    assert int(done.stdout) <= 1 << 20
    assert 'No space left' in done.stderr
    with pytest.raises(OSError, match='Bad file descriptor'):
        os.fstat(net)
    assert inode not in {each.stat().st_ino for each in Path('/proc').glob('[0-9]*/ns/net') if os.access(each, os.R_OK)}


@pytest.mark.parametrize('script', ['exit 1', 'exec sleep 60', 'cat >&2; exit 1', 'exec cat'])
def test_namespaces_that_cannot_be_made_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str):
    monkeypatch.setattr('tool_approval.os_sandbox.shared._PATIENCE_S', 0.3)
    program = tmp_path / 'bwrap'
    program.write_text(f'#!/bin/bash\n{script}\n')
    program.chmod(0o755)
    before = set(os.listdir('/proc/self/fd'))

    with pytest.raises(OSSandboxError, match='namespaces cannot be shared'):
        BubblewrapBackend(bwrap=str(program)).share()

    assert set(os.listdir('/proc/self/fd')) == before


def test_namespaces_in_which_no_command_is_confined_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: str
) -> None:
    monkeypatch.setattr('tool_approval.os_sandbox.shared._NSENTER', ('/usr/bin/false',))

    with pytest.raises(OSSandboxError, match='bubblewrap does not start'):
        BubblewrapBackend().share()
