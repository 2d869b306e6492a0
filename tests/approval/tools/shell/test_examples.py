import pytest
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellTool


def test_an_example_counts_with_the_paths_its_rule_keeps_to(tmp_path):
    rule = {'pattern': 'pytest', 'sandbox_paths': ['out'], 'match': ['pytest out/a'], 'not_match': ['pytest /etc']}
    roots = {'out': str(tmp_path / 'out')}

    tool = ShellTool({'rules': [rule]}, cwd=tmp_path, roots=roots)

    assert tool.config.rules[0].match == ('pytest out/a',)
    with pytest.raises(ApprovalConfigError, match=r'shell\.rules\.0\.match: the rule does not decide `pytest /etc`'):
        ShellTool({'rules': [{**rule, 'match': ['pytest /etc']}]}, cwd=tmp_path, roots=roots)
