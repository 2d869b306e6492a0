"""A hostile command with access to `.git`: nothing of it runs on the host when the user works with git."""

import os
import signal
import time
import tomllib
from pathlib import Path

import pytest

from .yard import Yard

ATTACKS = tomllib.loads(Path(__file__).with_name('git_attacks.toml').read_text())
once = pytest.mark.parametrize('yard', ['root' if os.getuid() == 0 else 'ordinary'], indirect=True)


def armed(yard: Yard, script: str) -> str:
    return f"PWNED='{yard.pwned}' EVIL='{yard.evil}'; {script}"


@pytest.mark.parametrize('attack', ATTACKS)
def test_nothing_that_a_command_left_runs_on_the_host(yard: Yard, attack: str):
    said = yard.run(armed(yard, ATTACKS[attack]['script']))

    assert ATTACKS[attack]['says'] in said
    yard.use()
    assert not yard.pwned.exists(), said
    assert not (yard.home / '.bashrc').exists()
    assert yard.host('git rev-parse --is-inside-work-tree') == 'true'


@once
@pytest.mark.parametrize('attack', [name for name, each in ATTACKS.items() if each['runs']])
def test_the_same_runs_where_nothing_stops_it(yard: Yard, attack: str):
    yard.host(armed(yard, ATTACKS[attack]['script']), fails=True)

    yard.use()

    assert yard.pwned.exists()


def wait_for(path: Path, *, gone: bool = False) -> None:
    until = time.monotonic() + 30
    while path.exists() == gone:
        assert time.monotonic() < until, path
        time.sleep(0.01)


PLANT = 'git init -q sub; printf "$EVIL" > sub/.git/config; rm .git/logs/HEAD; ln -s ../../f .git/logs/HEAD; touch done'


def is_swept(yard: Yard) -> bool:
    yard.use()
    left = [path for path in (yard.work / 'sub/.git', yard.git_folder / 'commondir') if os.path.lexists(path)]
    return not left and not yard.pwned.exists() and not (yard.git_folder / 'logs/HEAD').is_symlink()


def test_after_a_timeout_and_after_a_cancellation_the_sweep_runs(yard: Yard):
    late = yard.run(armed(yard, f'{PLANT}; sleep 60'), timeout_s=2)
    is_first_swept = is_swept(yard)
    cancelled = yard.run(armed(yard, f'rm done; {PLANT}; sleep 60'), cancel=yard.work / 'done')

    assert '[timed out after 2 s]' in late
    assert f'moved {yard.work}/sub/.git to ' in late
    assert cancelled == 'cancelled'
    assert (is_first_swept, is_swept(yard)) == (True, True)
    assert yard.host('git log -1 --format=%s') == 'host'


def test_a_process_that_goes_on_in_the_background_writes_nothing_after_the_sweep(yard: Yard):
    script = f'(trap "" TERM HUP; setsid bash -c "while :; do mkdir -p sub; cp -r .git sub/.git; done" &) ; {PLANT}'

    for _ in range(3):
        yard.run(armed(yard, script))
        assert not (yard.work / 'sub/.git').exists()


@once
def test_the_next_start_sweeps_after_a_process_that_was_killed(yard: Yard):
    yard.start(armed(yard, f'{PLANT}; sleep 60'))
    wait_for(yard.work / 'done')
    assert yard.process.pid is not None
    os.kill(yard.process.pid, signal.SIGKILL)
    yard.process.join()
    assert (yard.git_folder / 'commondir').read_text() == '.\n'

    said = yard.run('git log --oneline', access=())

    assert f'note: moved {yard.work}/sub/.git to ' in said
    assert 'c3' in said
    assert is_swept(yard)


@once
def test_two_commands_write_one_after_the_other_and_the_host_loses_nothing(yard: Yard):
    loop = 'for i in 1 2 3 4 5; do echo $i > {0}$i; git add {0}$i; git commit -qm {0}$i; done; sleep 0.2'
    first = yard.start(loop.format('a'))
    second = yard.start(loop.format('b'))
    made = [yard.host(f'until git commit -q --allow-empty -m host{i}; do sleep 0.02; done') for i in range(5)]

    said = [first(), second(), *made]

    subjects = yard.host('git log --format=%s').split()
    assert [name for name in subjects if name.startswith('host')] == [f'host{i}' for i in reversed(range(5))]
    assert 'sweep' not in ''.join(said)
    inside = [name[0] for name in subjects if name[0] in 'ab']
    assert inside == sorted(inside) or inside == sorted(inside, reverse=True)
    yard.host('git fsck --strict')


@once
def test_a_configuration_that_the_host_changes_meanwhile_is_not_trusted(yard: Yard):
    before = (yard.git_folder / 'config').read_text()
    wait = 'touch begun; until test -e go; do sleep 0.01; done'
    result = yard.start(armed(yard, f'{wait}; for i in 1 2 3 4 5; do printf "$EVIL" > .git/config; done'))
    wait_for(yard.work / 'begun')
    yard.host('git config user.nick x; touch go')

    said = result()

    assert f'moved {yard.git_folder}/config to ' in said
    assert (yard.git_folder / 'config').read_text() == before
    yard.use()
    assert not yard.pwned.exists()


def test_without_access_to_git_a_command_plants_no_repository_either(yard: Yard):
    said = yard.run(armed(yard, PLANT.replace('rm ', 'rm -f ')), access=())

    assert 'Read-only file system' in said
    assert is_swept(yard)


@once
def test_a_new_repository_whose_configuration_has_another_name_is_moved_away(yard: Yard):
    said = yard.run('git init -q sub; ln sub/.git/config alias')

    assert f'moved {yard.work}/sub/.git to ' in said
    assert not (yard.work / 'sub/.git').exists()


@once
def test_a_submodule_that_is_missing_is_not_filled_with_a_repository_of_the_command(yard: Yard):
    yard.host('git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm sub; mkdir sub')

    yard.run(armed(yard, 'cp -r .git sub/.git; printf "$EVIL" > sub/.git/config'), access=())

    assert is_swept(yard)


@once
@pytest.mark.parametrize('folder', ['set-aside', 'sweeps'])
def test_without_a_place_for_the_journal_nothing_runs_and_without_a_place_to_move_to_it_is_renamed(
    yard: Yard, folder: str
):
    state = yard.state / 'tool-approval'
    state.mkdir(mode=0o700)
    (state / folder).write_text('a file')
    yard.own()

    said = yard.run(armed(yard, PLANT))

    assert is_swept(yard)
    if folder == 'sweeps':
        assert 'the OS sandbox cannot confine it' in said
        assert not (yard.work / 'done').exists()
    else:
        assert f'moved {yard.work}/sub/.git to {yard.work}/sub/git.set-aside-' in said


@once
def test_a_sweep_that_fails_stops_the_next_command_and_is_repeated(yard: Yard):
    disk = yard.path / 'disk'
    disk.mkdir()
    if yard.user != 'root' or os.system(f'mount -t tmpfs -o size=1m none {disk}'):
        pytest.skip('only root, where mounts are allowed, can make a full disk')
    try:
        (disk / 'work').mkdir()
        yard.new(disk / 'work')
        yard.work = disk / 'work'

        full = yard.run(
            armed(yard, f'{PLANT}; dd if=/dev/zero of=big bs=64k status=none; dd if=/dev/zero of=more bs=1')
        )
        after = yard.run('git commit -q --allow-empty -m x')

        assert f'moved {yard.work}/sub/.git to ' in full
        assert is_swept(yard)
        assert 'No space left on device' in full + after
    finally:
        os.system(f'umount {disk}')
