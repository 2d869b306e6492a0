"""Commands that make and remove names at the top of a frozen folder, in real bubblewrap."""

import os
import random
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, OSProfile, Root, names_layer
from tool_approval.os_sandbox import layer as layer_module
from tool_approval.os_sandbox.access import ExtraAccess
from tool_approval.os_sandbox.layer import open_layer
from tool_approval.os_sandbox.mounts import as_mounted

from .house import BWRAP, House
from .layers import Repository, run_on_layer
from .views import BubblewrapView, covers

once = pytest.mark.parametrize('house', ['root' if os.getuid() == 0 else 'ordinary'], indirect=True)


@pytest.fixture(autouse=True)
def closed_names(house: House):
    """In every house the top of `work` is frozen: it has no `.git`."""
    for name in ('sub', 'sub/deep', 'full'):
        (house.work / name).mkdir()
    for name in ('a', 'b', 'sub/c', 'full/d'):
        (house.work / name).write_text(f'{name}\n')
    house.own()


def frozen(house: House, **changes) -> OSProfile:
    return house.profile(protected=(str(house.work / '.git'), str(house.work / 'approvals.yaml')), **changes)


def run(
    house: House,
    script: str,
    *,
    profile: OSProfile | None = None,
    keep: bool = True,
    meanwhile: Callable[[], object] = lambda: None,
    extra: ExtraAccess | None = None,
) -> tuple[int, str, tuple[str, ...]]:
    wanted = extra or ExtraAccess(names=(str(house.work),))
    return run_on_layer(
        house, ['/bin/bash', '-c', script], wanted, profile or frozen(house), keep=keep, meanwhile=meanwhile
    )


def tree(folder: Path) -> dict[str, object]:
    found = {}
    for path in folder.rglob('*'):
        link = os.readlink(path) if path.is_symlink() else None
        found[str(path.relative_to(folder))] = link or (path.read_text() if path.is_file() else None)
    return found


def test_names_are_made_changed_and_removed(house: House):
    status, output, notes = run(
        house,
        """set -e
        touch new; mkdir -p made/deep; echo x > made/deep/x; rm a; echo more >> b; mv file.txt moved
        ln -s b link; echo live > sub/c; echo x > tmp; mv tmp sub/e; rm -r full/d; chmod 755 b
        """,
    )

    assert (status, output) == (0, '')
    assert notes == (f'folders in {house.work} were emptied, but not removed or renamed: full',)
    assert tree(house.work) == {
        'new': '',
        'made': None,
        'made/deep': None,
        'made/deep/x': 'x\n',
        'b': 'b\nmore\n',
        'moved': 'work\n',
        'link': 'b',
        'sub': None,
        'sub/c': 'live\n',
        'sub/deep': None,
        'sub/e': 'x\n',
        'full': None,
    }
    assert (house.work / 'b').stat().st_mode & 0o777 == 0o755


def test_without_the_layer_they_are_not(house: House):
    before = tree(house.work)

    house.run('touch new; rm a; mkdir made', profile=frozen(house))

    assert tree(house.work) == before


def test_control_files_do_not_appear(house: House):
    (house.work / 'config').symlink_to('sub/c')
    house.own()
    protected = tuple(str(house.work / name) for name in ('.git', 'approvals.yaml', 'config', 'conf/policy.yaml'))
    before = tree(house.work)

    status, _, notes = run(
        house,
        'git init -q . || mkdir .git; mkdir .GIT; touch Approvals.YAML .Git.; '
        'echo x > approvals.yaml; ln -sf a config; mkdir conf; echo x > conf/policy.yaml; touch git~1 .g\u200dit',
        profile=house.profile(protected=protected),
    )

    assert status == 0
    dropped = '.GIT, .Git., .git, .g\\u200dit, Approvals.YAML, approvals.yaml, conf, config, git~1'
    assert notes == (f'dropped from {house.work}: {dropped}',)
    assert tree(house.work) == before


def test_the_folder_does_not_become_a_repository(house: House):
    script = 'mkdir refs objects; echo "ref: refs/heads/x" > HEAD; printf "[core]\\nfsmonitor=x" > config'

    _, _, notes = run(house, script, profile=frozen(house))

    assert notes == (f'dropped from {house.work}: HEAD',)
    assert {'refs', 'config'} < tree(house.work).keys()


def test_hidden_and_protected_paths_stay_closed(house: House):
    work = house.work
    for name in ('.env', 'kept', 'secrets/key', 'sub/.env'):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text('s3cret\n')
    (house.lib / 'link').symlink_to(work)
    house.own()
    profile = house.profile(
        roots=(Root(path=str(work / 'full'), access=Access.READ),),
        protected=tuple(str(work / name) for name in ('.git', 'kept', 'sub/approvals.yaml')),
        hidden=tuple(map(str, (work / '.env', house.lib / 'link/secrets', work / 'sub/.env'))),
    )
    before = tree(work)

    _, output, notes = run(
        house,
        'cat .env secrets/key sub/.env; cp .env copy; rm -rf .env secrets; mv .env x; echo x > .env; '
        'echo x > secrets/y; echo x > kept; rm -f kept; mv kept x; echo x > full/d; mv full x; '
        'touch sub/approvals.yaml sub/new',
        profile=profile,
    )

    assert 's3cret' not in output
    assert notes == ()
    assert tree(work) == before


def test_git_and_names_go_together(house: House, monkeypatch: pytest.MonkeyPatch):
    repo = Repository(house, monkeypatch)
    extra = ExtraAccess(names=(str(house.work),), git=(str(house.work),))

    status, output, notes = run(
        house, 'touch new; git rm -q a; git add -A; git commit -qm both; git config x.y z', extra=extra
    )

    assert (status, output, notes) == (0, '', (f'dropped from {repo.path}: config',))
    assert (house.work / 'new').exists()
    assert not (house.work / 'a').exists()
    assert repo.git('log', '-1', '--format=%s') == 'both\n'
    assert repo.git('status', '--short') == ''


def test_a_run_that_is_not_kept_changes_no_name(house: House):
    before = tree(house.work)

    run(house, 'touch new; rm a; echo x > b', keep=False)

    assert tree(house.work) == before


@once
def test_what_another_program_changed_is_left(house: House):
    def change() -> None:
        for name in ('a', 'b', 'new', 'free'):
            (house.work / name).write_text('host\n')

    _, _, notes = run(house, 'rm a; echo x > b; touch new other', meanwhile=change)

    assert notes == (f'not kept in {house.work}, because another program changed these files: a, b, new',)
    assert {(house.work / name).read_text() for name in ('a', 'b', 'new', 'free')} == {'host\n'}
    assert (house.work / 'other').exists()


@once
def test_a_file_becomes_a_folder(house: House):
    _, _, notes = run(house, 'rm a; mkdir a; touch a/x')

    assert notes == ()
    assert (house.work / 'a/x').is_file()


@once
def test_special_files_are_not_kept(house: House):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(house.work / 'socket'))
        before = set(os.listdir(house.work))

        _, output, notes = run(house, 'ls; mkfifo fifo; touch socket')

    assert 'socket' not in output
    assert notes == (
        f'dropped from {house.work}: fifo',
        f'not kept in {house.work}, because another program changed these files: socket',
    )
    assert set(os.listdir(house.work)) == before


@once
def test_files_that_a_copy_cannot_replace_are_shown_as_they_are(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(names_layer, '_LARGEST', 10)
    (house.work / 'large').write_text('x' * 11)
    os.link(house.work / 'a', house.work / 'sub/second')

    _, output, notes = run(house, 'echo more >> large; echo more >> a; rm large')

    assert 'Device or resource busy' in output
    assert notes == ()
    assert (house.work / 'large').read_text() == f'{"x" * 11}more\n'
    assert (house.work / 'sub/second').read_text() == 'a\nmore\n'


@once
def test_a_folder_that_is_gone_meanwhile_is_said_to_be_empty(house: House):
    _, _, notes = run(house, 'true', meanwhile=lambda: shutil.rmtree(house.work / 'full'))

    assert notes == (f'folders in {house.work} were emptied, but not removed or renamed: full',)


@once
def test_too_many_files_have_no_layer(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(names_layer, '_MOST_COPIED', 1)

    _, output, notes = run(house, 'touch new')

    assert 'Read-only file system' in output
    assert notes == (f'files cannot be added to or removed from {house.work}: the folder has more than 1 files',)


def test_a_folder_that_cannot_be_listed_has_no_layer(tmp_path: Path):
    assert names_layer.names_problem(str(tmp_path / 'absent'), OSProfile()) == (
        'the folder cannot be listed: No such file or directory'
    )


@once
def test_a_folder_that_is_not_writable_has_no_layer(house: House):
    extra = ExtraAccess(names=(str(house.lib), str(house.work)))
    profile = house.profile(protected=(str(house.work / 'x'),), roots=(Root(path=str(house.work), access=Access.READ),))

    status, _, notes = run(house, 'touch new', profile=profile, extra=extra)

    assert (status, notes) == (1, ())


@once
def test_without_a_place_beside_it_there_is_no_layer(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layer_module.tempfile, 'gettempdir', lambda: '/proc')
    monkeypatch.setenv('HOME', '/proc')

    _, _, notes = run(house, 'touch new')

    problem = 'temporary files need a folder that is hidden from commands'
    assert notes == (f'files cannot be added to or removed from {house.work}: {problem}',)


@once
def test_layers_show_nothing_that_the_profile_closes(house: House, monkeypatch: pytest.MonkeyPatch):
    repo = Repository(house, monkeypatch)
    (repo.path / 'modules/x').mkdir(parents=True)
    paths = [path for path in house.path.rglob('*') if not path.is_symlink()]
    missing = [house.work / 'sub/approvals.yaml', house.work / 'sub/deep/.git', house.work / 'x']
    likely = [repo.path / 'modules', repo.path / 'modules/x', repo.path / 'hooks', house.work / 'sub', house.work / 'a']
    chance = random.Random(5)
    layered = 0
    for _ in range(40):
        closed = [str(path) for path in chance.sample(paths, 4)]
        profile = frozen(
            house,
            roots=[Root(path=path, access=chance.choice(list(Access))) for path in closed[:2] if chance.random() < 0.3],
            hidden=(str(chance.choice(likely)),) if chance.random() < 0.5 else tuple(closed[2:3]),
        )
        profile = replace(profile, protected=(*profile.protected, str(chance.choice([*missing, paths[-1]]))))
        extra = ExtraAccess(names=(str(house.work),), git=(str(house.work),))
        allowed = as_mounted(profile)
        with open_layer(extra, profile, house.backend) as layer:
            view = BubblewrapView.of(layer.wrap(['true'], '/'), str(BWRAP))
            layered += len(layer.problems) < 2
            shown = {}
            for name, *rest in (option for option in view.options if option[0] in ('--bind', '--ro-bind', '--tmpfs')):
                own = rest[0] == rest[-1] and name != '--tmpfs'
                for path in (str(path) for path in [*paths, *missing] if covers(rest[-1], str(path))):
                    shown[path] = (Access.WRITE if name == '--bind' else Access.READ) if own else Access.NONE
                is_layer = 'tool-approval-layer' in rest[0]
                assert own or is_layer or name != '--bind'
                assert own or is_layer or name == '--tmpfs' or rest[0] in ('/dev/null', str(repo.path / 'objects'))
            if str(repo.path / 'objects') in (option[1] for option in view.options if len(option) == 3):
                assert allowed.access(str(repo.path / 'objects')) >= Access.READ

        assert {path: level for path, level in shown.items() if level > allowed.access(path)} == {}
    assert layered > 10


@once
def test_failed_move_is_reported(house: House, monkeypatch: pytest.MonkeyPatch):
    rename = os.rename

    def full(source: str, path: str) -> None:
        if path in (str(house.work / 'b'), str(house.work / 'new')):
            raise OSError(28, 'No space left on device')
        rename(source, path)

    monkeypatch.setattr(names_layer.os, 'rename', full)

    _, _, notes = run(house, 'echo x > a; echo x > b; touch new other')

    assert notes == (f'not kept in {house.work}: b (No space left on device), new (No space left on device)',)
    assert {(house.work / name).read_text() for name in ('a', 'b')} == {'x\n', 'b\n'}
    assert (house.work / 'other').exists()


@pytest.mark.parametrize('house', ['ordinary'], indirect=True)
def test_a_copy_that_cannot_be_read_is_not_kept(house: House):
    before = tree(house.work)

    _, _, [note] = run(house, 'touch new; chmod 0 .')

    assert note.startswith(f'no change to {house.work} was kept: [Errno 13] Permission denied')
    assert tree(house.work) == before


@once
def test_a_copy_that_is_gone_is_not_kept(house: House, places: Path):
    before = tree(house.work)

    _, _, [note] = run(house, 'rm a', meanwhile=lambda: [shutil.rmtree(copy) for copy in places.glob('*/top')])

    assert note.startswith(f'no change to {house.work} was kept: [Errno 2] No such file or directory')
    assert tree(house.work) == before
