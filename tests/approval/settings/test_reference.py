"""The page about the file lists every key, in the section it belongs to, and its example is read."""

import re
from pathlib import Path

import pytest
import tool_approval.settings
from tool_approval.core.approvers import ApproverRule, Escalation, Timeout
from tool_approval.core.conditions import Condition
from tool_approval.core.config import RuleCase, ToolRule
from tool_approval.settings import PathSettings, SandboxSettings, Settings, parse_settings
from tool_approval.settings.model import AuditSettings, NotifySettings, WebhookSettings
from tool_approval.tools.file_sandbox import PathApproval
from tool_approval.tools.shell import ShellConfig, ShellDefault, ShellRule

REFERENCE = Path(__file__).parents[3] / 'docs' / 'reference'
PAGE = (REFERENCE / 'configuration.md').read_text()
SECTIONS = {
    'The file': Settings,
    '`tools` and `custom_tools`': ToolRule,
    '`cases`': RuleCase,
    '`cases` `when`': Condition,
    '`approvers`': ApproverRule,
    '`approvers` `escalate`': Escalation,
    '`approvers` `timeout`': Timeout,
    '`sandbox`': SandboxSettings,
    '`sandbox.paths`': PathSettings,
    '`sandbox.paths` `approval`': PathApproval,
    '`shell`': ShellConfig,
    '`shell.default`': ShellDefault,
    '`shell.rules`': ShellRule,
    '`audit`': AuditSettings,
    '`notify`': NotifySettings,
    '`notify.webhook`': WebhookSettings,
}


def keys_of(section):
    text = PAGE.split(f'\n## {section}\n')[1].split('\n## ')[0]
    return re.findall(r'^\| `(\w+)` \|', text, re.MULTILINE)


@pytest.mark.parametrize(('section', 'model'), SECTIONS.items())
def test_every_key_is_in_the_table_of_its_section(section, model):
    keys = [field.alias or name for name, field in model.model_fields.items()]

    assert sorted(keys_of(section)) == sorted(keys)


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r'^::: tool_approval\.settings\.(\w+)$', (REFERENCE / 'approval.md').read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(tool_approval.settings.__all__)


def test_example_of_the_page_is_valid():
    pytest.importorskip('yaml')
    [example] = re.findall(r'^```yaml\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)

    settings = parse_settings(example)

    assert settings.require_os_sandbox
    assert len(settings.shell.rules) == 3
