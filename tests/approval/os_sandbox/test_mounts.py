"""Plans that cannot be made, and what they say about being stricter. What they do is tried in `test_bubblewrap`."""

import os
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, BubblewrapBackend, OSProfile, OSSandboxError, Root


def writable(path: Path, **fields) -> OSProfile:
    return OSProfile(roots=(Root(path=str(path), access=Access.WRITE),), **fields)


def test_a_name_that_cannot_be_looked_at_is_refused(tmp_path: Path):
    profile = writable(tmp_path, protected=(str(tmp_path / ('a' * 300)),))

    with pytest.raises(OSSandboxError, match='cannot be inspected'):
        BubblewrapBackend().wrap(['true'], profile, str(tmp_path))


def test_a_frozen_folder_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    profile = writable(tmp_path, protected=(str(tmp_path / '.git'),))

    def refuse(path: str):
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr(os, 'scandir', refuse)

    with pytest.raises(OSSandboxError, match='cannot be listed'):
        BubblewrapBackend().wrap(['true'], profile, str(tmp_path))


def test_a_folder_in_which_nothing_can_be_made_says_all_that_it_lacks(tmp_path: Path):
    (tmp_path / 'linked').symlink_to('elsewhere')
    names = ('.git', 'policy', 'linked')
    profile = writable(tmp_path, protected=tuple(str(tmp_path / name) for name in names))

    [note] = BubblewrapBackend().notes(profile, str(tmp_path))

    assert note.startswith(
        f'commands cannot make, rename or delete anything directly in {tmp_path} while it has no .git, elsewhere, '
        'policy, and linked is a symbolic link;'
    )


def test_notes_name_where_the_sandbox_is_stricter(tmp_path: Path):
    closed, absent = tmp_path / 'closed', tmp_path / 'absent'
    closed.mkdir()
    profile = OSProfile(
        roots=(
            Root(path=str(closed), access=Access.WRITE, suffixes=frozenset({'.txt'})),
            Root(path=str(absent), access=Access.WRITE),
        )
    )

    notes = BubblewrapBackend().notes(profile, str(tmp_path))

    assert notes == (
        f'{absent} does not exist, so commands cannot use it',
        (
            f'only file tools can use {closed}, because the OS sandbox cannot enforce `suffixes`. '
            'Remove `suffixes` if commands need this folder'
        ),
    )
