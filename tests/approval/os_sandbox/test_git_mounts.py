"""Which repository a command can be given, and what stays read-only in it."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, OSProfile, OSSandboxError, Root, git_mounts
from tool_approval.os_sandbox.git_mounts import (
    git_problem,
    guards,
    hide_credentials,
    led_to,
    opened,
    repository_at,
    tracks,
    user_settings,
    without_credentials,
)

from tests.tables import table

GIT = Path('/usr/bin/git')
pytestmark = pytest.mark.skipif(not GIT.is_file(), reason='git is not installed below /usr')


def git(folder: Path, *arguments: str) -> str:
    environment = {'HOME': str(folder), 'PATH': '/usr/bin:/bin', 'GIT_CONFIG_NOSYSTEM': '1'}
    command = [str(GIT), '-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always', *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / 'work'
    folder.mkdir()
    git(folder, 'init', '-q', '-b', 'main')
    git(folder, 'commit', '-q', '--allow-empty', '-m', 'x')
    return folder


def profile(*writable: Path, **changes) -> OSProfile:
    return OSProfile(roots=tuple(Root(path=str(path), access=Access.WRITE) for path in writable), **changes)


@pytest.mark.parametrize('version', ['2', '4'])
def test_a_folder_is_tracked_if_the_index_has_a_file_in_it(work: Path, version: str):
    (work / 'closed').mkdir()
    (work / 'closed' / 'a').touch()
    (work / 'file').touch()
    repository = repository_at(str(work))
    assert repository is not None

    before = tracks(repository, [f'{work}/closed'])
    git(work, 'add', '-A')
    git(work, 'update-index', '--index-version', version)

    assert not before
    assert tracks(repository, [f'{work}/closed'])
    assert tracks(repository, [f'{work}/file', f'{work}/other'])
    # Where the index leaves out parts of paths, every folder counts as tracked.
    assert tracks(repository, [f'{work}/clos']) == (version == '4')
    assert not tracks(repository, [str(work.parent)])
    assert not tracks(repository, [])


def test_in_a_split_or_unreadable_index_every_folder_counts_as_tracked(work: Path):
    (work / 'a').touch()
    git(work, 'add', '-A')
    repository = repository_at(str(work))
    assert repository is not None

    git(work, 'update-index', '--split-index')
    in_two_files = tracks(repository, [f'{work}/closed'])
    (work / '.git/index').unlink()
    (work / '.git/index').mkdir()

    assert in_two_files
    assert tracks(repository, [f'{work}/closed'])


def test_the_repository_is_found_from_every_folder_of_it(work: Path):
    (work / 'a/b').mkdir(parents=True)

    found = repository_at(str(work / 'a/b'))

    assert found is not None
    assert (found.tree, found.git, found.common) == (str(work), f'{work}/.git', f'{work}/.git')
    assert found.folders == (f'{work}/.git',)
    assert not found.is_linked
    assert repository_at(str(work.parent)) is None


def test_a_linked_work_tree_and_a_submodule_lead_to_their_repository(work: Path):
    git(work, 'worktree', 'add', '-q', '../tree')
    git(work, 'submodule', '-q', 'add', str(work), 'sub')

    linked, module = repository_at(str(work.parent / 'tree')), repository_at(str(work / 'sub'))

    assert linked is not None and module is not None
    assert (linked.common, linked.is_linked) == (f'{work}/.git', True)
    assert (module.common, module.git, module.is_linked) == (f'{work}/.git', f'{work}/.git/modules/sub', False)
    assert module.folders == (f'{work}/.git', f'{work}/.git/modules/sub')


def test_why_a_repository_cannot_be_given(work: Path):
    tree = work.parent / 'tree'
    git(work, 'worktree', 'add', '-q', str(tree))
    (work / 'sub').mkdir()
    fake = work.parent / 'fake'
    fake.mkdir()
    (fake / '.git').write_text(f'gitdir: {work}/.git\n')
    whole = profile(work)
    inner = replace(whole, roots=(*whole.roots, Root(path=f'{work}/.git/hooks', access=Access.READ)))

    assert git_problem(whole, str(work / 'sub')) is None
    assert git_problem(profile(tree), str(tree)) is None
    assert (git_problem(profile(fake), str(fake)) or '').startswith(f'the repository is in {work}/.git, which is out')
    assert (git_problem(profile(work / 'sub'), str(work / 'sub')) or '').startswith(f'the repository is in {work}: st')
    assert git_problem(inner, str(work)) == f'the settings have a rule for {work}/.git/hooks'
    for hidden in (f'{work}/.git/objects/x', f'{work}/.git'):
        assert git_problem(replace(whole, hidden=(hidden,)), str(work)) == f'the settings have a rule for {hidden}'
    assert (git_problem(whole, str(work.parent)) or '').startswith('there is no repository')
    (work / '.git/hooks').rename(work / 'h')
    (work / '.git/hooks').symlink_to('../h')
    assert git_problem(whole, str(work)) == f'{work}/.git/hooks is a symbolic link'


def test_what_decides_and_what_is_not_gits_stays_read_only(work: Path):
    (work / '.git/own').touch()
    found = repository_at(str(work))
    assert found is not None
    protected = replace(profile(work), protected=(f'{work}/.git', f'{work}/.git/modules/x', f'{work}/.git/settings'))

    given = opened(protected, found, packs=False)

    assert given.access(f'{work}/.git/index') is Access.WRITE
    for name in ('config', 'hooks/pre-commit', 'own', 'settings'):
        assert given.access(f'{work}/.git/{name}') is Access.READ
    assert [*guards([f'{work}/absent'])] == [f'{work}/absent']


@pytest.mark.parametrize('packs', [True, False])
def test_packs_are_read_only_but_for_commands_that_write_them(work: Path, packs: bool):
    git(work, 'gc', '-q')
    found = repository_at(str(work))
    assert found is not None
    [pack] = (work / '.git/objects/pack').glob('*.pack')

    given = opened(profile(work), found, packs=packs)

    assert given.access(str(pack)) is (Access.WRITE if packs else Access.READ)


def test_a_repository_elsewhere_is_opened_for_its_linked_work_tree(work: Path):
    tree = work.parent / 'tree'
    git(work, 'worktree', 'add', '-q', str(tree))
    found = repository_at(str(tree))
    assert found is not None

    given = opened(profile(tree), found, packs=True)

    assert given.access(f'{work}/.git/index') is Access.WRITE
    assert given.access(f'{work}/f') is Access.NONE


def test_what_a_configuration_leads_to(work: Path):
    (work / '.git/config').write_text(
        '[core]\n\thooksPath = "scripts/hooks"\n[include]\n\tpath = ../own.inc\n[includeIf "x"]\n path=/abs ; comment\n'
    )
    (work / '.git/hooks/pre-push').symlink_to('../../push.sh')

    assert list(led_to(f'{work}/.git')) == [f'{work}/scripts/hooks', f'{work}/own.inc', '/abs', f'{work}/push.sh']


def test_hooks_are_found_wherever_git_finds_their_folder(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path.resolve() / 'home'
    (home / '.config/git').mkdir(parents=True)
    monkeypatch.setenv('HOME', str(home))
    monkeypatch.delenv('XDG_CONFIG_HOME', raising=False)
    (work / '.git/config').write_text('[include]\n\tpath = ../own.inc\n[core] hooksPath = \\\n a\n')
    (work / 'own.inc').write_text('[core]\n\thooksPath = b\n[include "a]b"] path = own.inc\n')
    (work / '.git/config.worktree').write_text('[core]\n\thooksPath = c\n')
    (home / '.gitconfig').write_text('[core]\n\thooksPath = d\n[include]\n\tpath = ~/more\n')
    (home / '.config/git/config').write_text('[core]\n\thooksPath = /elsewhere\n')
    (home / 'more').write_text('[core]\n\thooksPath = e\n')

    found = list(led_to(f'{work}/.git'))

    assert found == [f'{work}/{name}' for name in ('own.inc', 'b', 'own.inc', 'a', 'c', 'd', 'e')]


def test_included_files_are_read_up_to_a_number(work: Path):
    for at in range(60):
        (work / f'{at}.inc').write_text(f'[include]\n\tpath = {at + 1}.inc\n')
    (work / '.git/config').write_text('[include]\n\tpath = ../0.inc\n')

    assert len(list(led_to(f'{work}/.git'))) == 51


@table(
    'line, shown',
    [
        ('\turl = https://ann:pw@example.org/a', '\turl = https://example.org/a'),
        ('\turl = HTTP://token@example.org/a', '\turl = HTTP://example.org/a'),
        ('\turl = ssh://git@example.org/a', '\turl = ssh://git@example.org/a'),
        ('\turl = https://example.org/a@b', '\turl = https://example.org/a@b'),
        ('\textraHeader = Authorization: Basic x', '\textraHeader ='),
        ('\tsmtpPassword = x', '\tsmtpPassword ='),
        ('\taccess_token=x', '\taccess_token='),
        ('\tname = x', '\tname = x'),
    ],
)
def test_credentials_are_left_out(line: str, shown: str):
    assert without_credentials(line) == shown


def test_a_copy_without_credentials_takes_the_place_of_a_configuration(work: Path, tmp_path: Path):
    config = work / '.git/config'
    state = tmp_path / 'state'
    plain = profile(work, protected=(f'{work}/.git',))
    assert hide_credentials(plain, None).copies == ()
    config.write_text('[remote "o"]\n\turl = https://a:b@c/d\n')

    first = hide_credentials(plain, str(state))
    again = hide_credentials(plain, str(state))

    [(path, copy)] = first.copies
    assert again == first
    assert path == str(config)
    assert Path(copy).read_text() == '[remote "o"]\n\turl = https://c/d\n'
    assert os.listdir(state / 'configs') == [os.path.basename(copy)]
    config.write_text('[remote "o"]\n\turl = https://a:b@c/e\n')
    assert hide_credentials(plain, str(state)) == first
    assert 'c/e' in Path(copy).read_text()


def test_nothing_is_copied_from_where_a_link_leads(work: Path, tmp_path: Path):
    elsewhere = tmp_path / 'elsewhere'
    for folder in (elsewhere / 'x', work / 'own/.git', work / 'led', work / 'modules/.git'):
        folder.mkdir(parents=True)
    for place in (elsewhere, elsewhere / 'x', work / 'own/.git', work / 'modules/.git'):
        (place / 'config').write_text('[a]\n\ttoken = s3cret\n')
        (place / 'HEAD').touch()
    (work / 'led/.git').symlink_to(elsewhere)
    (work / 'modules/.git/modules').symlink_to(elsewhere)
    found = [f'{work}/{name}/.git' for name in ('own', 'led', 'modules', 'absent')]

    copies = hide_credentials(profile(work), str(tmp_path / 'state'), found).copies

    assert [path for path, _ in copies] == [f'{work}/own/.git/config']


def test_without_a_home_no_command_reads_credentials(work: Path):
    (work / '.git/config').write_text('[remote "o"]\n\turl = https://a:b@c/d\n')

    with pytest.raises(OSSandboxError, match='its credentials cannot be hidden: there is no home directory'):
        hide_credentials(profile(work, protected=(f'{work}/.git',)), None)


def test_the_settings_of_the_user_that_a_command_needs(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    found = repository_at(str(work))
    assert found is not None
    (tmp_path / '.gitconfig').write_text('[user]\n\tname = Ann\n[alias]\n\tst = status\n[credential]\n\thelper = x\n')
    fixed = [('gc.auto', '0'), ('maintenance.auto', 'false')]

    none, without = user_settings(found)
    (tmp_path / 'config/git').mkdir(parents=True)
    (tmp_path / 'config/git/ignore').write_text('*.tmp')
    _, usual = user_settings(found)
    (tmp_path / 'mine').write_text('*.o')
    git(work, 'config', 'core.excludesFile', '~/mine')
    named, own = user_settings(found)

    assert (none, without) == ([('user.name', 'Ann'), *fixed], None)
    assert usual == f'{tmp_path.resolve()}/config/git/ignore'
    assert own == f'{tmp_path.resolve()}/mine'
    assert named == [('user.name', 'Ann'), *fixed, ('core.excludesfile', own)]


def test_without_git_there_are_no_settings(work: Path, monkeypatch: pytest.MonkeyPatch):
    found = repository_at(str(work))
    assert found is not None
    monkeypatch.setattr(git_mounts, '_GIT', ('/absent/git',))

    assert user_settings(found) == ([], None)
