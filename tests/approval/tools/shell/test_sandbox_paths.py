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
