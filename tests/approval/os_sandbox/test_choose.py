"""A backend is chosen because it confined something, not because its program is there."""

import stat
import subprocess
from pathlib import Path

import pytest
from tool_approval.os_sandbox import (
    Availability,
    BubblewrapBackend,
    OSProfile,
    OSSandboxUnavailable,
    RefusingBackend,
    SeatbeltBackend,
    UnconfinedBackend,
    choose_backend,
    platform_backends,
)


class Absent(UnconfinedBackend):
    name = 'absent'

    def probe(self) -> Availability:
        return Availability(is_available=False, reason='it is not there', install='install it')


def script(folder: Path, text: str) -> str:
    path = folder / 'program'
    path.write_text(f'#!/bin/sh\n{text}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_real_one_is_available(bwrap: str):
    assert BubblewrapBackend().probe() == Availability(is_available=True)
    assert choose_backend(candidates=[BubblewrapBackend()]).name == 'bubblewrap'


def test_one_inside_another_without_the_right_to_namespaces_is_not(bwrap: str, tmp_path: Path):
    inner = script(tmp_path, f'exec {bwrap} --unshare-user --disable-userns --dev-bind / / {bwrap} "$@"')

    found = BubblewrapBackend(bwrap=inner).probe()

    assert not found.is_available
    assert 'does not start' in found.reason
    assert 'namespace' in found.reason.lower() or 'No space' in found.reason
    assert 'bubblewrap' in found.install


def test_a_confined_command_cannot_confine_again(bwrap: str):
    backend = BubblewrapBackend()
    everything = OSProfile(roots=choose_roots())
    inner = backend.wrap(['/bin/true'], everything, '/')

    done = subprocess.run(backend.wrap(inner, everything, '/'), capture_output=True, text=True, timeout=30)

    assert done.returncode != 0
    assert 'namespace' in done.stderr


def choose_roots():
    from tool_approval.os_sandbox import system_profile

    return system_profile().roots


def test_a_program_that_starts_but_does_not_confine_is_not_available(tmp_path: Path):
    pretends = script(tmp_path, 'cat /proc/self/status')

    found = BubblewrapBackend(bwrap=pretends).probe()

    assert not found.is_available
    assert 'does not confine' in found.reason
    assert 'Seccomp' in found.reason
    assert 'Pid is' in found.reason
    assert 'the size of files is not limited' in found.reason


@pytest.mark.parametrize('missing', ['bwrap', 'bash'])
def test_a_missing_program_is_not_available(tmp_path: Path, missing: str):
    found = BubblewrapBackend(**{missing: str(tmp_path / 'none')}).probe()

    assert not found.is_available
    assert 'none' in found.reason


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('exit 71', 'does not start'),
        ('exit 0', 'does not confine'),
        ('case "$*" in *P1[0-9]=*hosts*) exit 1;; esac', ''),
    ],
)
def test_seatbelt_has_to_confine_as_well(tmp_path: Path, text: str, reason: str):
    # The third stands for a real one: it refuses where the profile hides the file.
    program = script(tmp_path, text if reason else 'case "$*" in *"deny file-read* file-write*"*) exit 1;; esac')

    found = SeatbeltBackend(sandbox_exec=program).probe()

    assert found.is_available == (not reason)
    assert reason in found.reason


def test_a_missing_sandbox_exec_is_not_available(tmp_path: Path):
    found = SeatbeltBackend(sandbox_exec=str(tmp_path / 'none')).probe()

    assert not found.is_available
    assert '/usr/bin' in found.install


def test_the_first_that_works_is_taken():
    works = UnconfinedBackend()

    assert choose_backend(candidates=[Absent(), works]) is works


def test_none_fails_fast_and_says_what_to_install():
    with pytest.raises(OSSandboxUnavailable, match=r'absent: it is not there; install it'):
        choose_backend(candidates=[Absent()])


def test_none_for_the_platform_fails_fast_too():
    with pytest.raises(OSSandboxUnavailable, match='There is no OS sandbox for'):
        choose_backend(candidates=[])


def test_an_unknown_fallback_fails_fast():
    with pytest.raises(OSSandboxUnavailable):
        choose_backend(candidates=[], fallback='whatever')  # pyright: ignore


def test_refusing_tools_keeps_the_rest_alive():
    backend = choose_backend(candidates=[Absent()], fallback='refuse_tools')

    assert isinstance(backend, RefusingBackend)
    assert not backend.probe().is_available
    with pytest.raises(OSSandboxUnavailable, match='install it'):
        backend.wrap(['true'], OSProfile(), '/')
    with pytest.raises(OSSandboxUnavailable, match='install it'):
        backend.check()


def test_without_a_requirement_nothing_confines():
    backend = choose_backend(candidates=[Absent()], require=False)

    assert backend.name == 'unconfined'
    assert backend.wrap(['a', 'b'], OSProfile(), '/') == ['a', 'b']
    assert backend.probe().is_available


def test_each_platform_has_its_backend():
    names = {platform: [each.name for each in platform_backends(platform)] for platform in ('linux', 'darwin', 'win32')}

    assert names == {'linux': ['bubblewrap'], 'darwin': ['seatbelt'], 'win32': []}
