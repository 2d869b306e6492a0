"""Files that decide about approvals, and files that Git runs, are found wherever they are."""

from pathlib import Path

import pytest
from tool_approval.settings import PathSettings, SandboxSettings
from tool_approval.settings.protection import is_written_with_access, protected_paths, state_folder
from tool_approval.tools.file_sandbox import FileSandbox


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / 'repository' / 'package'
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ('path', 'is_written'),
    [
        ('.', True),
        ('a', True),
        ('new/a', True),
        ('free/a', False),
        ('read/a', False),
        ('texts/a.txt', False),
        ('approvals.yaml', False),
        ('.git/config', False),
        ('../a', False),
        ('/tmp/a', False),
    ],
)
def test_only_roots_that_ask_for_changes_are_written_with_more_access(work, path, is_written):
    roots = {
        'work': {'root': '.', 'mode': 'rw'},
        'free': {'root': 'free', 'mode': 'rw', 'write_approval': False},
        'read': {'root': 'read', 'mode': 'ro'},
        'texts': {'root': 'texts', 'mode': 'rw', 'suffixes': ['.txt']},
    }
    for name in ('free', 'read', 'texts', '.git'):
        (work / name).mkdir()
    sandbox = SandboxSettings.model_validate({'paths': roots})
    files = FileSandbox(sandbox, work, protected=protected_paths(work, None, sandbox))

    assert is_written_with_access(files, str((work / path).absolute())) == is_written


def test_settings_in_use_are_protected(work):
    found = protected_paths(work, work / 'approvals.yml', SandboxSettings())

    assert work / 'approvals.yml' in found
    assert work / 'approvals.yaml' not in found


def test_settings_files_that_do_not_exist_are_protected(work):
    found = protected_paths(work, None, SandboxSettings())

    assert {work / name for name in ('approvals.yaml', 'approvals.yml', 'approvals.toml')} <= set(found)


def test_state_directory_is_protected(work, monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))

    assert state_folder() == tmp_path / 'state' / 'tool-approval'
    assert state_folder() in protected_paths(work, None, SandboxSettings())


def test_without_a_home_folder_there_is_no_state_directory(work, homeless):
    assert state_folder() is None
    assert work / '.git' in protected_paths(work, None, SandboxSettings())


def test_git_folder_is_protected_here_even_if_missing_and_above_if_it_exists(work):
    (work.parent / '.git').mkdir()

    found = protected_paths(work, None, SandboxSettings())

    assert work / '.git' in found
    assert work.parent / '.git' in found
    assert work.parent.parent / '.git' not in found


def test_repository_shared_by_a_worktree_is_protected(work, tmp_path):
    real = tmp_path / 'main' / 'git' / 'worktrees' / 'x'
    real.mkdir(parents=True)
    (real / 'commondir').write_text('../..\n')
    (work / '.git').write_text(f'gitdir: {real}\n')

    found = protected_paths(work, None, SandboxSettings())

    assert real in found
    assert tmp_path / 'main' / 'git' in found


def test_git_file_is_resolved_through_links(work):
    (work / 'deep' / 'er').mkdir(parents=True)
    (work / 'deep' / 'wt').mkdir()
    (work / 'l').symlink_to('deep/er')
    (work / '.git').write_text('gitdir: l/../wt\n')

    found = protected_paths(work, None, SandboxSettings())

    assert {work / 'l', work / 'deep' / 'wt'} <= set(found)
    assert work / 'wt' not in found


def test_git_folder_of_a_submodule_is_protected(work):
    (work.parent / 'git' / 'modules').mkdir(parents=True)
    (work / '.git').write_text('gitdir: ../git/modules\n')

    assert work.parent / 'git' / 'modules' in protected_paths(work, None, SandboxSettings())


def index_with(*submodules: bytes) -> bytes:
    """A git index of version 2."""
    entries = [bytes(24) + (0o160000).to_bytes(4) + bytes(32) + len(name).to_bytes(2) + name for name in submodules]
    padded = [each + bytes(8 - len(each) % 8) for each in entries]
    head = b'DIRC' + (2).to_bytes(4) + len(padded).to_bytes(4)
    return b''.join([head, *padded, bytes(20)])


def test_submodules_of_the_index_are_protected_even_if_missing(work):
    for folder, names in {'.git': (b'a/b', b'link'), 'a/b/.git': (b'../b', b'c'), 'real/.git': (b'd',)}.items():
        (work / folder).mkdir(parents=True)
        (work / folder / 'index').write_bytes(index_with(*names))
    (work / 'link').symlink_to('real')

    found = protected_paths(work, work / 'approvals.yaml', SandboxSettings())

    inner = {'a/b/.git', 'a/b/c/.git', 'link', 'real/.git', 'real/d/.git'}
    assert {str(path.relative_to(work)) for path in found if path.is_relative_to(work)} == {
        'approvals.yaml',
        '.git',
        *inner,
    }


def test_submodules_of_other_roots_are_protected(work):
    (work.parent / 'other' / '.git').mkdir(parents=True)
    (work.parent / 'other' / '.git' / 'index').write_bytes(index_with(b'sub'))

    found = protected_paths(work, None, SandboxSettings(paths={'other': PathSettings(root=Path('../other'))}))

    assert work.parent / 'other' / 'sub' / '.git' in found


@pytest.mark.parametrize(
    ('file', 'content'),
    [
        *(('.git', pointer) for pointer in (b'', b'not a pointer\n', b'gitdir: a\0b\n', b'\xff' * 20_000)),
        *(('.git/index', index) for index in (b'', b'\0\0\xe0\0', index_with(b'b', b'a'))),
    ],
)
def test_a_file_of_git_that_leads_nowhere_protects_nothing_else(work, file, content):
    (work / file).parent.mkdir(exist_ok=True)
    (work / file).write_bytes(content)

    found = protected_paths(work, work / 'approvals.yaml', SandboxSettings())

    assert [path for path in found if path.is_relative_to(work)] == [work / 'approvals.yaml', work / '.git']


def test_with_too_many_submodules_the_whole_work_tree_is_protected(work):
    (work / '.git').mkdir()
    (work / '.git' / 'index').write_bytes(index_with(*(b'%04d' % number for number in range(1001))))

    assert work in protected_paths(work, None, SandboxSettings())


def test_a_root_that_is_a_part_of_git_is_protected(work):
    roots = {'src': 'src', 'hooks': '.git/hooks', 'loud': '.GIT'}
    paths = {name: PathSettings(root=Path(root)) for name, root in roots.items()}

    found = protected_paths(work, None, SandboxSettings(paths=paths))

    assert {work / '.git' / 'hooks', work / '.GIT'} <= set(found)
    assert work / 'src' not in found
