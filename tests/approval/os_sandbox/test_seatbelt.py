"""The text for `sandbox-exec`. What it grants is compared with the configuration in `test_never_weaker`."""

from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, OSProfile, OSSandboxError, Root, SeatbeltBackend, seatbelt_rules

from .views import SeatbeltView


def test_no_path_becomes_part_of_the_text(tmp_path: Path):
    hostile = tmp_path / '")) (allow default) ("\n\'ü'
    hostile.mkdir()
    profile = OSProfile(roots=(Root(path=str(hostile), access=Access.WRITE),), protected=(str(hostile / '.git'),))

    text, parameters = seatbelt_rules(profile)

    assert 'allow default' not in text
    assert str(hostile) in parameters.values()
    assert SeatbeltView(text, parameters).access(str(hostile / 'x')) == Access.WRITE


def test_everything_is_denied_first_and_the_program_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('LANG', 'C')
    monkeypatch.setenv('SECRET', 's3cret')

    argv = SeatbeltBackend().wrap(['/bin/ls', '-l'], OSProfile(environment=frozenset({'LANG'})), '/')

    assert argv[0] == '/usr/bin/sandbox-exec'
    assert argv[argv.index('-p') + 1].startswith('(version 1)\n(deny default)\n')
    assert argv[-6:] == ['/usr/bin/env', '-i', 'PATH=/usr/local/bin:/usr/bin:/bin', 'LANG=C', '/bin/ls', '-l']


def test_endings_are_enforced_by_the_kernel_here(tmp_path: Path):
    root = Root(path=str(tmp_path), access=Access.WRITE, suffixes=frozenset({'.txt', '.t"x', '.*'}))

    view = SeatbeltView(*seatbelt_rules(OSProfile(roots=(root,))))

    names = ('a.txt', 'a.TXT', '.txt', 'a.txt\n', 'a.py', 'atxt', 'd/.txt', 'd/b.txt', 'a.t"x', 'a.*')
    assert [name for name in names if view.access(f'{tmp_path}/{name}')] == ['a.txt', 'd/b.txt']


def test_endings_that_have_no_plain_expression_open_nothing(tmp_path: Path):
    root = Root(path=str(tmp_path), access=Access.READ, suffixes=frozenset({'.t"x'}))

    assert SeatbeltView(*seatbelt_rules(OSProfile(roots=(root,)))).access(f'{tmp_path}/a.t"x') == Access.NONE


def test_a_missing_control_file_cannot_be_moved_into_place_with_its_folder(tmp_path: Path):
    profile = OSProfile(
        roots=(Root(path=str(tmp_path), access=Access.WRITE),), protected=(str(tmp_path / 'conf/policy'),)
    )

    view = SeatbeltView(*seatbelt_rules(profile))

    assert not view.allows('file-write-create', f'{tmp_path}/conf')
    assert not view.allows('file-write-data', f'{tmp_path}/conf/policy')
    assert view.allows('file-write-create', f'{tmp_path}/other')


def test_a_link_that_is_held_is_not_replaced_and_what_it_leads_to_is_open(tmp_path: Path):
    (tmp_path / 'conf').mkdir()
    (tmp_path / 'real').mkdir()
    (tmp_path / 'conf/link').symlink_to('../real')
    profile = OSProfile(roots=(Root(path=str(tmp_path), access=Access.WRITE),), held=(str(tmp_path / 'conf/link'),))

    view = SeatbeltView(*seatbelt_rules(profile))

    for name in ('conf/link', 'conf', 'real'):
        assert not view.allows('file-write-unlink', f'{tmp_path}/{name}')
    assert view.access(f'{tmp_path}/real/new') == Access.WRITE
    assert view.allows('file-write-create', f'{tmp_path}/conf/other')


def test_a_root_of_no_access_closes_what_is_open_around_it(tmp_path: Path):
    (tmp_path / 'private').mkdir()
    around = Root(path=str(tmp_path), access=Access.WRITE)
    inside = Root(path=str(tmp_path / 'private'), access=Access.NONE)

    view = SeatbeltView(*seatbelt_rules(OSProfile(roots=(around, inside))))

    assert view.access(f'{tmp_path}/open') == Access.WRITE
    assert view.access(f'{tmp_path}/private/key') == Access.NONE


@pytest.mark.parametrize(('command', 'cwd'), [([], '/'), (['a\0'], '/'), (['a'], '/does/not/exist')])
def test_invalid_command_or_directory_is_refused(command: list[str], cwd: str):
    with pytest.raises(OSSandboxError):
        SeatbeltBackend().wrap(command, OSProfile(), cwd)


def test_a_root_that_leads_elsewhere_since_is_refused(tmp_path: Path):
    (tmp_path / 'link').symlink_to('/')

    with pytest.raises(OSSandboxError, match='is not in the settings'):
        seatbelt_rules(OSProfile(roots=(Root(path=str(tmp_path / 'link'), access=Access.READ),)))


def test_the_network_is_named_without_other_sockets():
    closed, opened = (seatbelt_rules(OSProfile(network=network))[0] for network in (False, True))

    assert 'network' not in closed
    assert '(remote ip)' in opened
    assert 'unix' not in opened
