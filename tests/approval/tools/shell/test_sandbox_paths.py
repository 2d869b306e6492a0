import pytest
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellConfig, ShellTool, paths

RULE = {'pattern': 'pytest', 'approval': False, 'sandbox_paths': ['out']}


def test_a_symbolic_link_that_leads_outside_is_outside(tmp_path):
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'link').symlink_to('/etc')
    tool = ShellTool({'rules': [RULE]}, cwd=tmp_path, roots={'out': str(tmp_path / 'out')})

    assert tool.explain('pytest out/link/a').decision == 'ask'


def test_a_root_may_be_a_predicate(tmp_path):
    rule = {**RULE, 'sandbox_paths': ['any']}
    tool = ShellTool({'rules': [rule]}, cwd=tmp_path, roots={'any': lambda path: path.endswith('.ok')})

    assert tool.explain('pytest a.ok').decision == 'allow'
    assert tool.explain('pytest a.ok b').decision == 'ask'


def test_a_rule_that_names_an_unknown_root_is_a_mistake(tmp_path):
    with pytest.raises(ApprovalConfigError, match=r'shell\.rules\.0\.sandbox_paths: there is no root `out`'):
        ShellTool(ShellConfig.model_validate({'rules': [RULE]}), cwd=tmp_path)


def test_an_example_counts_with_the_paths_its_rule_keeps_to(tmp_path):
    rule = {'pattern': 'pytest', 'sandbox_paths': ['out'], 'match': ['pytest out/a'], 'not_match': ['pytest /etc']}
    roots = {'out': str(tmp_path / 'out')}

    tool = ShellTool({'rules': [rule]}, cwd=tmp_path, roots=roots)

    assert tool.config.rules[0].match == ('pytest out/a',)
    with pytest.raises(ApprovalConfigError, match=r'rules\.0\.match: the rule does not apply to `pytest /etc`'):
        ShellTool({'rules': [{**rule, 'match': ['pytest /etc']}]}, cwd=tmp_path, roots=roots)


@pytest.mark.parametrize(
    'command', ['cp out/a out/d', 'split out/a out/x', 'mkdir out/a', 'unzip out/a.zip', 'tee out/a']
)
def test_a_rule_with_roots_holds_no_command_that_writes(command, tmp_path):
    """Attack: `cp out/a out/d`, where `out/d/a` is a link to a file outside of the root."""
    rule = {'pattern': command.split()[0], 'approval': False, 'sandbox_paths': ['out'], 'arguments': 'any'}
    roots = {'out': str(tmp_path / 'out')}

    assert ShellTool({'rules': [rule]}, cwd=tmp_path, roots=roots).explain(command).decision == 'ask'


@pytest.mark.parametrize('command', ['pytest out', 'diff out out/b', 'pytest out/d'])
def test_a_folder_with_a_link_that_leads_out_is_outside(command, tmp_path):
    """Attack: `diff out x`, which reads the file that the link `out/x` names."""
    (tmp_path / 'out' / 'd').mkdir(parents=True)
    (tmp_path / 'out' / 'b').touch()
    (tmp_path / 'out' / 'd' / 'inside').symlink_to('../b')
    rule = {'pattern': command.split()[0], 'approval': False, 'sandbox_paths': ['out']}
    tool = ShellTool({'rules': [rule]}, cwd=tmp_path, roots={'out': str(tmp_path / 'out')})
    before = tool.explain(command).decision

    (tmp_path / 'out' / 'd' / 'link').symlink_to('/etc')

    assert (before, tool.explain(command).decision) == ('allow', 'ask')


def test_programs_that_stay_in_a_folder_may_have_links_below(tmp_path):
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'link').symlink_to('/etc')
    rule = {'pattern': 'grep', 'approval': False, 'sandbox_paths': ['out']}
    tool = ShellTool({'rules': [rule]}, cwd=tmp_path, roots={'out': str(tmp_path / 'out')})

    assert tool.explain('grep -rn x out').decision == 'allow'
    assert tool.explain('grep -Rn x out').decision == 'ask'


def test_a_folder_with_too_many_files_is_not_searched_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, '_MOST_LOOKED_AT', 3)
    (tmp_path / 'out').mkdir()
    for name in 'abcd':
        (tmp_path / 'out' / name).touch()
    tool = ShellTool({'rules': [RULE]}, cwd=tmp_path, roots={'out': str(tmp_path / 'out')})

    assert tool.explain('pytest out').decision == 'ask'


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
    'ls sub',
]  # fmt: skip
GIT = ['git status', 'git status --short', 'git log', 'git --no-pager log', 'git diff', 'git log | head']


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
