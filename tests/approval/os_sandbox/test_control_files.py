"""Attempts to change what a program on the host will trust later, with the real bubblewrap."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from tool_approval.os_sandbox import OSSandboxError

from .house import House, identity

ATTACKS = tomllib.loads(Path(__file__).with_name('attacks.toml').read_text())
STATES = ('file', 'missing', 'missing parent', 'folder', 'link to a file', 'link to nothing', 'parent is a link')


def control_file(house: House, state: str) -> Path:
    path = house.work / 'conf' / 'deep' / 'policy'
    if state != 'missing parent':
        path.parent.mkdir(parents=True)
    if state == 'file':
        path.write_text('safe')
    elif state == 'folder':
        path.mkdir()
        (path / 'inner').write_text('safe')
    elif state == 'link to a file':
        (house.work / 'real').write_text('safe')
        path.symlink_to('../../real')
    elif state == 'link to nothing':
        path.symlink_to(house.work / 'absent')
    elif state == 'parent is a link':
        path.parent.rmdir()
        (house.work / 'store').mkdir()
        (house.work / 'store/policy').write_text('safe')
        path.parent.symlink_to('../store')
    house.own()
    return path


def seen(path: Path):
    """What the host finds at a path: nothing, a content, or names with contents."""
    if path.is_dir():
        return {each.name: each.read_bytes() for each in path.iterdir()}
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize('state', STATES)
@pytest.mark.parametrize('attack', ATTACKS)
def test_control_file_is_unchanged(house: House, attack: str, state: str):
    path = control_file(house, state)
    before, way = seen(path), os.path.realpath(path)

    house.run(ATTACKS[attack]['script'], path, profile=house.profile(protected=(str(path),)))

    assert seen(path) == before
    assert os.path.realpath(path) == way


@pytest.mark.parametrize('attack', ATTACKS)
def test_held_link_is_kept_and_its_target_is_open(house: House, attack: str):
    path = control_file(house, 'parent is a link').parent
    way = os.path.realpath(path)
    profile = house.profile(held=(str(path),))

    house.run(ATTACKS[attack]['script'], path, profile=profile)
    done = house.run('echo new > conf/deep/new && rm conf/deep/new && echo new > new && echo done', profile=profile)

    assert os.path.realpath(path) == way
    assert path.is_symlink()
    assert done.stdout == 'done\n'


@pytest.mark.parametrize('state', STATES)
def test_the_attacks_succeed_on_an_unprotected_file(house: House, state: str):
    succeeded = []
    for attack, fields in ATTACKS.items():
        path = control_file(house, state)
        before, way = seen(path), os.path.realpath(path)

        house.run(fields['script'], path)

        succeeded += [attack] if (seen(path), os.path.realpath(path)) != (before, way) else []
        subprocess.run(['rm', '-rf', house.work], check=True)
        house.work.mkdir()
        house.own()

    assert 'make' in succeeded or state == 'folder'
    assert len(succeeded) >= 4


@pytest.mark.parametrize('kind', ['folder', 'file'])
def test_protection_of_one_name_leaves_its_neighbours_open(house: House, kind: str):
    name = house.work / '.git'
    name.mkdir() if kind == 'folder' else name.write_text('gitdir: elsewhere\n')
    house.own()

    done = house.run(
        'echo x > new && mkdir dir && echo y > dir/z && mv dir moved && rm file.txt && cat .git/* .git; ls',
        profile=house.profile(protected=(f'{name}/config' if kind == 'file' else str(name),)),
    )

    assert done.stdout.split()[-2:] == ['moved', 'new']


def test_a_frozen_folder_keeps_what_it_holds_open(house: House):
    (house.work / 'src').mkdir()
    house.own()
    profile = house.profile(protected=(str(house.work / '.git'),))

    done = house.run('echo x > src/new && echo y > file.txt && echo done; echo z > new; mkdir .git', profile=profile)

    assert done.stdout == 'done\n'
    assert sorted(os.listdir(house.work)) == ['file.txt', 'src']
    assert (house.work / 'file.txt').read_text() == 'y\n'
    assert 'to lift this limit' in house.backend.notes(profile, str(house.work))[0]


def test_an_empty_folder_of_the_name_thaws_the_one_around_it(house: House):
    (house.work / '.git').mkdir()
    house.own()
    profile = house.profile(protected=(str(house.work / '.git'),))

    done = house.run('echo z > new && echo done; echo bad > .git/config', profile=profile)

    assert done.stdout == 'done\n'
    assert os.listdir(house.work / '.git') == []
    assert house.backend.notes(profile, str(house.work)) == ()


def test_a_full_frozen_folder_is_read_only(house: House):
    for number in range(201):
        (house.work / f'{number}.txt').touch()
    house.own()
    profile = house.profile(protected=(str(house.work / '.git'),))

    done = house.run('echo x > 7.txt || echo refused', profile=profile)

    assert done.stdout == 'refused\n'
    assert any('more than 200' in note for note in house.backend.notes(profile, str(house.work)))


def test_a_control_file_replaced_by_the_host_meanwhile_stays_out_of_reach_below_a_protected_folder(house: House):
    folder = house.work / '.git'
    folder.mkdir()
    (folder / 'config').write_text('old')
    house.own()
    command = house.wrap(
        'echo ready; read; echo bad > .git/config; cat .git/config', profile=house.profile(protected=(str(folder),))
    )
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=house.work, **identity(house.user)
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == 'ready\n'
        (folder / 'config.lock').write_text('new')
        os.replace(folder / 'config.lock', folder / 'config')

        answer, _ = started.communicate('go\n')

    assert answer == 'new'
    assert (folder / 'config').read_text() == 'new'


def test_links_in_a_circle_are_refused(house: House):
    (house.work / 'a').symlink_to('b')
    (house.work / 'b').symlink_to('a')

    with pytest.raises(OSSandboxError, match='loop'):
        house.wrap('true', profile=house.profile(protected=(str(house.work / 'a'),)))
