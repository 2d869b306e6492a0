"""`required`, `none` and `blocked` mean the same wherever an approval is configured."""

import pytest
from tool_approval.cli.judging import CallJudge
from tool_approval.os_sandbox import Access, UnconfinedBackend, derive_os_sandbox_profile
from tool_approval.settings import effective, load_settings, open_workspace, read_settings
from tool_approval.tools.file_sandbox import FileSandbox
from tool_approval.tools.shell import ShellConfig, ShellDefault, ShellRule, ShellTool

from tool_approval import ApprovalConfigError

WORDS = [
    ('required', {'approval': True}, 'ask'),
    ('none', {'approval': False}, 'allow'),
    ('blocked', {'allowed': False}, 'block'),
]


@pytest.mark.parametrize(('word', 'booleans', 'decision'), WORDS)
def test_shell_rules_and_their_default_take_a_word(word, booleans, decision):
    with_rule = ShellConfig.model_validate({'rules': [{'pattern': 'make', 'approval': word}]})
    with_default = ShellConfig.model_validate({'default': {'approval': word}})

    assert with_rule.rules == (ShellRule(pattern='make', **booleans),)
    assert with_default.default == ShellDefault(**booleans)
    for config in (with_rule, with_default):
        assert ShellTool(config, cwd='/').explain('make').decision == decision


@pytest.mark.parametrize(
    ('rule', 'key', 'problem'),
    [
        ({'approval': 'deny'}, 'shell.rules.0.approval', 'must be true, false, `required`, `none` or `blocked`'),
        ({'approval': 'no'}, 'shell.rules.0.approval', 'must be true, false, `required`, `none` or `blocked`'),
        ({'approval': 'none', 'allowed': False}, 'shell.rules.0', 'leave out `allowed`, or'),
        ({'approval': 'blocked', 'allowed': True}, 'shell.rules.0', 'leave out `allowed`, or'),
    ],
)
def test_unknown_or_contradictory_word_is_a_mistake(rule, key, problem):
    with pytest.raises(ApprovalConfigError) as caught:
        read_settings({'shell': {'rules': [{'pattern': 'rm', **rule}]}})

    assert caught.value.key == key
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ('word', 'outcome', 'is_nested'),
    [
        *((word, outcome, is_nested) for word, _, outcome in WORDS for is_nested in (False, True)),
        (True, 'ask', False),
        (False, 'allow', False),
    ],
)
def test_directory_takes_a_word(tmp_path, word, outcome, is_nested):
    (tmp_path / 'a').write_text('x')

    def decide(use, operation):
        given = {'approval': {use: word}} if is_nested else {f'{use}_approval': word}
        config = {'paths': {'work': {'root': str(tmp_path), 'mode': 'rw', **given}}}
        return FileSandbox(config, base=tmp_path).decide(operation, 'a').outcome

    assert decide('write', 'write_file') == decide('write', 'delete') == outcome
    assert decide('read', 'read_file') == outcome
    assert decide('write', 'read_file') == 'allow'


@pytest.mark.parametrize(
    ('operation', 'paths', 'outcome'),
    [
        ('read_file', ['a'], 'block'),
        ('list_files', ['.'], 'block'),
        ('edit_file', ['a'], 'block'),
        ('copy', ['a', 'b'], 'block'),
        ('move', ['a', 'b'], 'block'),
        ('write_file', ['b'], 'allow'),
        ('delete', ['a'], 'allow'),
    ],
)
def test_file_in_a_directory_whose_reading_is_blocked_is_not_read(tmp_path, operation, paths, outcome):
    (tmp_path / 'a').write_text('x')
    config = {
        'paths': {'work': {'root': str(tmp_path), 'mode': 'rw', 'approval': {'write': 'none', 'read': 'blocked'}}}
    }

    decision = FileSandbox(config, base=tmp_path).decide(operation, *paths)

    assert decision.outcome == outcome
    assert outcome == 'allow' or 'reading in work is blocked' in decision.reason


@pytest.mark.parametrize(
    ('given', 'access'),
    [
        ({'read_approval': 'blocked'}, Access.NONE),
        ({'read_approval': 'blocked', 'write_approval': 'none'}, Access.NONE),
        ({'write_approval': 'blocked'}, Access.READ),
        ({'write_approval': 'required'}, Access.WRITE),
    ],
)
def test_approved_command_gets_no_access_to_blocked_directories(tmp_path, given, access):
    settings = read_settings({'sandbox': {'paths': {'work': {'root': str(tmp_path), 'mode': 'rw', **given}}}})

    profile = derive_os_sandbox_profile(settings.sandbox, ShellConfig(), approved=True)

    assert next(root.access for root in profile.roots if root.path == str(tmp_path)) == access


def test_no_shell_rule_applies_where_reading_is_blocked(tmp_path):
    (tmp_path / 'secret').mkdir()

    def decide(read):
        document = {
            'sandbox': {'paths': {'secret': {'root': 'secret', 'read_approval': read}}},
            'shell': {'rules': [{'pattern': 'cat', 'approval': 'none', 'sandbox_paths': ['secret']}]},
        }
        settings = read_settings(document)
        tool = open_workspace(settings, tmp_path, backend=UnconfinedBackend()).shell
        judged = CallJudge(settings, tmp_path).judge('run_shell', {'command': 'cat secret/a'})
        return {tool.explain('cat secret/a').decision, judged.deciding.decision}

    assert decide('none') == {'allow'}
    assert decide('blocked') == {'ask'}


def test_untrusted_settings_still_block(tmp_path):
    (tmp_path / 'approvals.yaml').write_text(
        'sandbox: {paths: {a: {root: a, mode: rw, approval: {write: blocked, read: blocked}}, b: {root: b}}}\n'
        'shell:\n'
        '  default: {approval: blocked}\n'
        '  rules: [{pattern: rm, approval: blocked}, {pattern: ls, approval: none}]\n'
    )

    settings = effective(load_settings(directory=tmp_path))

    assert (settings.sandbox.paths['a'].mode, settings.sandbox.paths['a'].read_approval) == ('ro', 'blocked')
    assert settings.sandbox.paths['b'].read_approval is True
    assert settings.shell.default == ShellDefault(allowed=False)
    assert settings.shell.rules == (ShellRule(pattern='rm', allowed=False),)
