"""Commands that name no path: which of them read the working directory, and nothing else."""

import pytest
from tool_approval.tools.shell import ShellTool

PATTERNS = (
    'ls', 'pwd', 'tree', 'find', 'rg', 'cat', 'wc', 'head', 'grep', 'pytest', 'git status', 'git log', 'git diff',
    'git push',
)  # fmt: skip


@pytest.fixture
def project(tmp_path):
    made = tmp_path / 'project'
    (made / '.git').mkdir(parents=True)
    (made / 'sub').mkdir()
    return made


def decides(command, cwd, root):
    rules = [{'pattern': pattern, 'approval': False, 'sandbox_paths': ['project']} for pattern in PATTERNS]
    return ShellTool({'rules': rules}, cwd=cwd, roots={'project': str(root)}).explain(command).decision


LOOKING = [
    'ls', 'ls -la', '/bin/ls', 'pwd', 'tree', 'tree -L 2', 'find', 'ls | wc -l', 'cat notes | head -n 3',
    'wc -l < notes',
    'ls sub',
]  # fmt: skip
GIT = ['git status', 'git status --short', 'git log', 'git --no-pager log', 'git diff', 'git log | grep fix']


@pytest.mark.parametrize('command', [*LOOKING, *GIT])
def test_a_command_that_names_no_path_reads_the_directory_it_runs_in(command, project):
    assert decides(command, project, project) == 'allow'


@pytest.mark.parametrize('command', LOOKING)
def test_the_directory_has_to_lie_in_the_root(command, project):
    assert decides(command, project, project / 'other') == 'ask'


def test_paths_that_are_named_count_by_themselves(project):
    assert decides('ls sub', project, project / 'sub') == 'allow'


@pytest.mark.parametrize(
    'command',
    [
        'ls /etc', 'ls ..', 'ls -la -- /etc', 'ls ~', 'ls $x', 'tree /', 'find / -name x', 'wc -l < /etc/passwd',
        'cat /etc/passwd | wc -l', 'git diff --no-index /etc/passwd x', 'git log -- ../..', 'git -C /x status',
        'git --git-dir=/x status', 'GIT_DIR=/x git status', 'cd /etc; ls', 'cd .. && git status', 'ls > out',
        'find -delete',
        './ls', 'git diff --output=x', 'tree --fromfile /etc/x', 'wc --files0-from=list', 'ls | xargs cat',
        '{ head; } < /etc/passwd', 'timeout 5 head < /etc/passwd', '{ head <&3; } 3< /etc/passwd',
    ],
)  # fmt: skip
def test_command_that_reads_elsewhere_or_does_more_is_asked_about(command, project):
    assert decides(command, project, project) == 'ask'


@pytest.mark.parametrize('command', ['pytest', 'pytest -q', 'git push', 'git push --tags', 'git status --help'])
def test_program_that_does_more_than_read_has_to_name_a_path(command, project):
    assert decides(command, project, project) == 'ask'


@pytest.mark.parametrize('command', ['git status', 'git log', 'git diff', 'git'])
def test_git_shows_what_lies_above_where_the_repository_begins_there(command, project):
    assert decides(command, project / 'sub', project) == 'ask'


@pytest.mark.parametrize('kind', ['file', 'link'])
def test_git_is_asked_about_where_the_repository_lies_elsewhere(kind, project, tmp_path):
    (project / '.git').rename(tmp_path / 'elsewhere')
    if kind == 'file':
        (project / '.git').write_text(f'gitdir: {tmp_path}/elsewhere\n')
    else:
        (project / '.git').symlink_to(tmp_path / 'elsewhere')

    assert decides('git status', project, project) == 'ask'
    assert decides('ls', project, project) == 'allow'
