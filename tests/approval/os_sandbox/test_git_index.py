"""What is taken over of a git index that a command could write."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from tool_approval.os_sandbox import git_index
from tool_approval.os_sandbox.git_files import LayerError
from tool_approval.os_sandbox.git_index import _Entry, _offset, _trees, plain_index  # pyright: ignore[reportPrivateUsage]

from .layers import GIT

pytestmark = pytest.mark.skipif(not GIT.is_file(), reason='git is not installed below /usr')


def git(folder: Path, *arguments: str) -> str:
    environment = {'HOME': str(folder), 'PATH': '/usr/bin:/bin', 'GIT_CONFIG_NOSYSTEM': '1'}
    identity = ['-c', 'user.name=a', '-c', 'user.email=a@b']
    command = [str(GIT), *identity, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with a commit, folders in folders, a link, an executable, and names that sort around a slash."""
    git(tmp_path, 'init', '-q')
    for name in ('a', 'b/c', 'b/d/e', 'b-c', 'b.c', 'b/d/f.txt', 'ü', 'run', 'z' * 250):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / 'run').chmod(0o755)
    (tmp_path / 'link').symlink_to('a')
    git(tmp_path, 'add', '-A')
    git(tmp_path, 'commit', '-qm', 'x')
    return tmp_path


def index_of(tree: Path) -> bytes:
    return (tree / '.git/index').read_bytes()


def signed(data: bytes) -> bytes:
    return data + hashlib.sha1(data).digest()


def changed(data: bytes, before: bytes, after: bytes) -> bytes:
    assert before in data
    return signed(data[:-20].replace(before, after))


@pytest.mark.parametrize('version', [2, 3, 4])
def test_an_index_of_git_stays_as_it_is(tree: Path, version: int):
    if version == 3:
        git(tree, 'update-index', '--skip-worktree', 'a')
    git(tree, 'update-index', '--index-version', str(version))
    before = git(tree, 'ls-files', '--stage', '-v')
    index = index_of(tree)
    assert index[7] == version
    assert b'TREE' in index

    (tree / '.git/index').write_bytes(plain_index(index))

    assert plain_index(index) == index
    assert git(tree, 'ls-files', '--stage', '-v') == before


def test_an_index_without_files(tree: Path):
    git(tree, 'rm', '-qr', '--cached', '.')

    index = index_of(tree)

    assert plain_index(index)[:12] == index[:12]


def test_extensions_are_left_out(tree: Path):
    git(tree, 'update-index', '--untracked-cache')
    git(tree, 'status')
    index = index_of(tree)
    assert b'UNTR' in index

    assert b'UNTR' not in plain_index(index)


@pytest.mark.parametrize('command', [['add', '-N', 'new'], ['merge', 'side']])
def test_trees_that_a_commit_would_not_have_are_left_out(tree: Path, command: list[str]):
    git(tree, 'checkout', '-qb', 'side')
    (tree / 'a').write_text('side')
    git(tree, 'commit', '-qam', 'side')
    git(tree, 'checkout', '-q', '-')
    (tree / 'a').write_text('main')
    git(tree, 'commit', '-qam', 'main')
    (tree / 'new').touch()
    if command[0] == 'merge':
        with pytest.raises(subprocess.CalledProcessError):
            git(tree, *command)
    else:
        git(tree, *command)
    before = git(tree, 'ls-files', '--stage')

    index = plain_index(index_of(tree))
    (tree / '.git/index').write_bytes(index)

    assert b'TREE' not in index
    assert git(tree, 'ls-files', '--stage') == before


def test_a_forged_tree_is_left_out(tree: Path):
    index = index_of(tree)
    inner = bytes.fromhex(git(tree, 'rev-parse', 'HEAD:b/d').strip())

    forged = changed(index, inner, bytes(20))

    assert b'TREE' not in plain_index(forged)
    assert b'TREE' in plain_index(index)


@pytest.mark.parametrize(
    'extension',
    [
        b'',
        b'\0',
        b'\0x y\n',
        b'\0-1 99999999\n',
        b'\0-1 -1\n',
        b'\0-1 0\nmore',
        b'\0-1 1\n',
        b'\x000 0\n' + bytes(20),
        b'\0' + b'1' * 5000 + b' 0\n',
        b'\0-1 1\n' + b'long/' * 2000 + b'\0-1 1\n',
    ],
)
def test_a_broken_tree_is_refused_or_left_out(tree: Path, extension: bytes):
    index = index_of(tree)
    entries = index[: index.index(b'TREE')]

    forged = signed(entries + b'TREE' + len(extension).to_bytes(4) + extension)

    try:
        assert plain_index(forged) == signed(entries)
    except LayerError as error:
        assert str(error) == 'the git index cannot be read'


def made(*paths: str, mode: int = 0o100644) -> bytes:
    """An index of version 2 with some files; the first or `link` has another mode."""
    data = b'DIRC' + (2).to_bytes(4) + len(paths).to_bytes(4)
    for path in paths:
        each = mode if path in (paths[0], 'link') else 0o100644
        entry = bytes(24) + each.to_bytes(4) + bytes(12) + b'1' * 20 + min(len(path), 0xFFF).to_bytes(2) + path.encode()
        data += entry + bytes(8 - len(entry) % 8)
    return signed(data)


@pytest.mark.parametrize(
    'name',
    ['.git', '.GIT', '.gIt', '..', '.', '.git ', '.git.', 'GIT~1', '.git:x', '.git\\x', 'x\\.git', '.git . ', ''],
)
@pytest.mark.parametrize('place', ['{}', '{}/config', 'x/{}/config', 'x/{}'])
def test_a_name_that_git_puts_nowhere_is_refused(name: str, place: str):
    with pytest.raises(LayerError, match=r'contains a path that git would never write|cannot be read'):
        plain_index(made(*sorted(['0', place.format(name), 'z'])))


@pytest.mark.parametrize('path', ['.github/x', '.gitignore', 'x/.gitmodules', '...', '.git-x', 'git', 'x:y', 'x\\y'])
def test_a_name_that_only_looks_like_one_is_taken(path: str):
    assert plain_index(made(*sorted(['0', path, 'z']))) == made(*sorted(['0', path, 'z']))


@pytest.mark.parametrize('flags', [1, 3, 0xFFF, 0x4002, 0x4003])
def test_a_name_that_git_reads_otherwise_is_refused(flags: int):
    index = made('ab', 'b')
    place = 12 + 60
    assert index[place : place + 2] == b'\0\2'

    forged = signed(index[:place] + flags.to_bytes(2) + index[place + 2 : -20])

    with pytest.raises(LayerError, match='cannot be read'):
        plain_index(forged)


@pytest.mark.parametrize('mode', [0o120000, 0o160000])
def test_a_link_that_is_a_folder_too_is_refused(mode: int):
    with pytest.raises(LayerError, match='for a link and for a folder'):
        plain_index(made('a', 'link', 'link-x', 'link/x/y', 'x', mode=mode))
    assert plain_index(made('link', 'link-x', 'linked/x/y', mode=mode))


@pytest.mark.parametrize('mode', [0o040000, 0, 0o020000])
def test_an_entry_of_another_kind_is_refused(mode: int):
    with pytest.raises(LayerError, match='sparse'):
        plain_index(made('a', mode=mode))


def test_a_split_or_sparse_index_is_refused(tree: Path):
    git(tree, 'config', 'core.sparseCheckoutCone', 'true')
    git(tree, 'sparse-checkout', 'init', '--cone', '--sparse-index')
    with pytest.raises(LayerError, match='sparse'):
        plain_index(index_of(tree))

    git(tree, 'sparse-checkout', 'disable')
    git(tree, 'update-index', '--split-index')
    with pytest.raises(LayerError):
        plain_index(index_of(tree))
    with pytest.raises(LayerError, match='split'):
        plain_index(signed(made('a')[:-20] + b'link' + bytes(4)))


def test_broken_index_is_refused(tree: Path):
    index = index_of(tree)
    broken = [
        b'',
        b'DIRC',
        index[:-30],
        index[:100],
        b'XXXX' + index[4:],
        index[:7] + b'\5' + index[8:],
        index[:8] + b'\xff\xff\xff\xff' + index[12:],
        signed(index[:-20] + b'ZZZZ\xff\xff\xff\xff'),
        signed(index[:-20] + b'ZZ'),
        index[:7] + b'\4' + index[8:],
        b'DIRC'
        + (4).to_bytes(4)
        + (1).to_bytes(4)
        + bytes(24)
        + (0o100644).to_bytes(4)
        + bytes(34)
        + b'\1a\0'
        + bytes(20),
        made('b', 'a'),
        made('a', 'a'),
        made('a' * 5000),
    ]

    for each in broken:
        with pytest.raises(LayerError, match=r'cannot be read|sparse'):
            plain_index(each)


def test_a_number_without_end_is_refused_at_once():
    with pytest.raises(ValueError, match='too large'):
        _offset(b'\xff' * 10_000_000, 0)


def test_deep_folders_take_no_more_memory_than_an_index_may(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(git_index, 'MOST_INDEX_BYTES', 10_000)
    deep, usual = (_Entry(path, 0o100644, b'x' * 20, is_in_tree=True) for path in (b'a/' * 1000 + b'f', b'a/b/f'))

    assert _trees([deep]) == {}
    assert set(_trees([usual])) == {b'', b'a/', b'a/b/'}
