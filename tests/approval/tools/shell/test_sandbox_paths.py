import pytest
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellConfig, ShellTool

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
