"""What is recognised as written by git, and what is not."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from tool_approval.os_sandbox import git_forms
from tool_approval.os_sandbox.git_forms import (
    findings,
    folded,
    inside,
    is_git_name,
    is_repository,
    read,
    refs,
    submodules,
    unsafe_line,
)

from tests.tables import table

GIT = Path('/usr/bin/git')
pytestmark = pytest.mark.skipif(not GIT.is_file(), reason='git is not installed below /usr')


def git(folder: Path, *arguments: str) -> str:
    environment = {'HOME': str(folder), 'PATH': '/usr/bin:/bin', 'GIT_CONFIG_NOSYSTEM': '1'}
    command = [str(GIT), '-c', 'user.name=a', '-c', 'user.email=a@b', *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with a commit, names that sort around a slash, a long name, and a submodule that is not there."""
    git(tmp_path, 'init', '-q', '-b', 'main')
    for name in ('a', 'b/c', 'b/d/e', 'b-c', 'ü', '.gitignore', 'x.git/y', 'z' * 250):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    git(tmp_path, 'add', '-A')
    git(tmp_path, 'commit', '-qm', 'x')
    git(tmp_path, 'update-index', '--add', '--cacheinfo', f'160000,{git(tmp_path, "rev-parse", "HEAD").strip()},sub/m')
    return tmp_path


def index_of(tree: Path) -> bytes:
    return (tree / '.git/index').read_bytes()


def changed(data: bytes, before: bytes, after: bytes) -> bytes:
    assert before in data
    data = data[:-20].replace(before, after)
    return data + hashlib.sha1(data).digest()


@pytest.mark.parametrize('version', [2, 3, 4])
def test_an_index_of_git_is_read(tree: Path, version: int):
    if version == 3:
        git(tree, 'update-index', '--skip-worktree', 'a')
    git(tree, 'update-index', '--index-version', str(version))
    data = index_of(tree)
    assert data[7] == version

    assert submodules(data) == ({'sub/m'}, True)


def test_an_index_of_long_paths_with_folders_that_are_not_checked_out(tree: Path):
    deep = '/'.join(['d' * 200] * 3)
    for i in range(3):
        place = f'{deep}{i}/{"e" * 200}/{"f" * 200}/{"g" * 200}' + '/h' * 1400
        blob = git(tree, 'hash-object', '-w', 'a').strip()
        git(tree, 'update-index', '--add', '--cacheinfo', f'100644,{blob},{place}')
    git(tree, 'commit', '-qm', 'deep')

    assert submodules(index_of(tree)) == ({'sub/m'}, True)


def test_a_sparse_index(tree: Path):
    git(tree, 'sparse-checkout', 'set', '--cone', '--sparse-index', 'x.git')

    data = index_of(tree)

    assert b'b/\0' in data
    assert submodules(data) == ({'sub/m'}, True)


def test_an_index_of_sha256(tmp_path: Path):
    git(tmp_path, 'init', '-q', '--object-format=sha256')
    (tmp_path / 'a').touch()
    git(tmp_path, 'add', 'a')

    assert submodules(index_of(tmp_path), 32) == (frozenset(), True)
    assert list(findings(str(tmp_path / '.git'))) == []


@table(
    'before, after',
    [
        (b'x.git/y', b'xy.git/'),
        (b'x.git/y', b'./git/y'),
        (b'x.git/y', b'../it/y'),
        (b'x.git/y', b'.GiT/.y'),
        (b'x.git/y', b'git~1/y'),
        (b'x.git/y', b'a/.git.'),
        (b'x.git/y', b'x.gi//y'),
        (b'x.git/y', b'/.git/y'),
        (b'x.git/y', b'a\\.git\\'),
        (b'b/d/e', b'.git:'),
    ],
)
def test_a_path_that_git_never_writes_is_found(tree: Path, before: bytes, after: bytes):
    data = changed(index_of(tree), before, after)

    try:
        is_right = submodules(data)[1]
    except ValueError:
        # It is also out of order.
        is_right = False
    assert not is_right


@table(
    'data',
    [
        b'',
        b'DIRC',
        b'DIRC' + bytes([0, 0, 0, 5, 0, 0, 0, 0]),
        b'XXXX' + bytes([0, 0, 0, 2, 0, 0, 0, 0]),
        b'DIRC' + bytes([0, 0, 0, 2, 0, 0, 0, 1]),
        b'DIRC' + bytes([0, 0, 0, 4, 0, 0, 0, 1]) + bytes(62) + b'\x80' * 9 + b'\0',
        b'DIRC' + bytes([0, 0, 0, 4, 0, 0, 0, 1]) + bytes(62) + b'\x80',
        b'DIRC' + bytes([0, 0, 0, 2, 0, 0, 0, 1]) + bytes(60) + b'\0\x09name' + b'\0' * 20,
        b'DIRC' + bytes([0, 0, 0, 2, 0, 0, 0, 1]) + bytes(60) + b'\0\x04nameofafile',
    ],
)
def test_what_is_no_index_is_an_error(data: bytes):
    with pytest.raises(ValueError, match=r'no index|no entry|not found'):
        submodules(data)


def test_an_index_that_is_too_long_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(git_forms, 'MOST_INDEX_BYTES', 100)

    with pytest.raises(ValueError, match='no index'):
        submodules(index_of(tree))
    assert [why for _, why in findings(f'{tree}/.git')] == [
        'it has more than 64 MiB, or is not a file; `git reset` makes a new one'
    ]


def test_an_index_out_of_order_is_an_error(tree: Path):
    with pytest.raises(ValueError, match='no entry'):
        submodules(changed(index_of(tree), b'x.git/y', b'0.git/y'))


def test_a_split_index_and_a_lock_are_read_and_left_out(tree: Path):
    git(tree, 'update-index', '--split-index')
    (tree / 'a').write_text('other')
    git(tree, 'add', 'a')
    (tree / '.git/index.lock').write_text('half')

    assert list(findings(f'{tree}/.git')) == []


@pytest.mark.parametrize(('config', 'is_found'), [('[core]\n', False), ('[alias]\n\tst = !x\n', True)])
def test_git_looks_into_the_repository_of_a_submodule(tree: Path, config: str, is_found: bool):
    git(tree, 'init', '-q', 'sub/m')
    (tree / 'sub/m/.git/config').write_text(config)

    found = list(findings(f'{tree}/.git'))

    why = "it makes git look into 'sub/m'; `git reset` makes a new one"
    assert found == ([(f'{tree}/.git/index', why)] if is_found else [])


def test_a_submodule_that_leads_back_is_no_endless_search(tree: Path):
    (tree / 'sub').mkdir(exist_ok=True)
    (tree / 'sub/m').symlink_to(tree)

    assert list(findings(f'{tree}/.git')) == []


def test_no_repository_has_no_findings(tmp_path: Path):
    (tmp_path / 'link').symlink_to(tmp_path)

    assert [*findings(f'{tmp_path}/absent'), *findings(f'{tmp_path}/link')] == []


def test_a_bare_repository_may_have_other_files_beside_it(tmp_path: Path):
    git(tmp_path, 'init', '-q', '--bare')
    (tmp_path / 'Makefile').touch()

    assert list(findings(str(tmp_path))) == []


@table(
    'name, is_one',
    [
        ('.git', True), ('.GIT', True), ('.git ', True), ('.git.', True), ('git~1', True), ('GIT~1', True),
        ('.g\u200cit', True), ('\uff0egit', True), ('.gitignore', False), ('git', False), ('.github', False),
        ('git~2', False), ('a', False), ('ü', False), ('.', False),
    ],
)  # fmt: skip
def test_names_that_some_file_system_takes_for_git(name: str, is_one: bool):
    assert is_git_name(name) == is_one


def test_folded_names():
    assert folded('ApprovalS\u200d.yaml. ') == 'approvals.yaml'


def test_only_a_short_regular_file_is_read(tmp_path: Path):
    (tmp_path / 'file').write_text('text')
    (tmp_path / 'link').symlink_to('file')
    os.mkfifo(tmp_path / 'pipe')

    assert read(f'{tmp_path}/file') == b'text'
    assert [read(f'{tmp_path}/{name}') for name in ('link', 'pipe', 'absent')] == [None] * 3
    assert read(f'{tmp_path}/file', 3) is None
    assert inside(f'{tmp_path}/absent') == []


@table(
    'names, is_one',
    [
        (['HEAD', 'objects', 'refs'], True),
        (['HEAD', 'commondir'], True),
        (['HEAD', 'objects'], False),
        (['objects', 'refs'], False),
        (['HEAD'], False),
    ],
)
def test_what_git_takes_for_a_repository(tmp_path: Path, names: list[str], is_one: bool):
    folder = tmp_path / '-'.join(names)
    folder.mkdir()
    for name in names:
        (folder / name).touch()

    assert is_repository(str(folder)) == is_one


@table(
    'config, old, line',
    [
        ('', '', None),
        ('[core]\n\tbare = false\n', '', None),
        ('[remote "o"]\n\turl = https://a/b\n\tfetch = +refs/heads/*:refs/remotes/o/*\n', '', None),
        ('[remote "o"]\n\turl = git@a.org:b/c\n', '', None),
        ('[remote "o"]\n\turl = ext::sh -c x\n', '', '\turl = ext::sh -c x'),
        ('[remote "o"]\n\turl = a::b\n', '', '\turl = a::b'),
        ('[core]\n\tfsmonitor = x\n', '', '\tfsmonitor = x'),
        ('[core]\n\tfsmonitor = x\n', '[core]\n\tfsmonitor = x\n', None),
        ('[core]\n\tfsmonitor = x\n', '[a]\n\tfsmonitor = x\n', '\tfsmonitor = x'),
        ('[alias]\n\tname = !x\n', '', '[alias]'),
        ('[core] fsmonitor = x\n', '', '[core] fsmonitor = x'),
        ('[core]\n\tbare = false\\\n\tname = x\n', '', '\tbare = false\\'),
        ('[core]\n [alias]\n\tname = !x\n', '', ' [alias]'),
        ('[core]\r\n', '', '[core]\r'),
        ('[core]\n\tworktree = /x\n', '', '\tworktree = /x'),
    ],
)
def test_lines_of_a_configuration_that_git_does_not_write_for_each_repository(config: str, old: str, line: str | None):
    assert unsafe_line(config, old) == line


def test_branches_tags_and_the_stash_are_listed_loose_or_packed(tree: Path):
    head = git(tree, 'rev-parse', 'HEAD').strip()
    git(tree, 'tag', 't')
    git(tree, 'pack-refs', '--all')
    git(tree, 'branch', 'side/way')
    git(tree, 'update-ref', 'refs/remotes/o/x', 'HEAD')
    (tree / 'a').write_text('b')
    git(tree, 'stash', '-q')

    found = refs(f'{tree}/.git')

    assert set(found) == {'refs/heads/main', 'refs/heads/side/way', 'refs/tags/t', 'refs/stash'}
    assert found['refs/heads/side/way'] == head
