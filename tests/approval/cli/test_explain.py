"""`explain` prints the decision about a call, and exits with its status."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tool_approval.os_sandbox import OSSandboxError
from tool_approval.settings import load_settings, open_workspace
from tool_approval.settings.files import with_defaults

from tests.cases import rows
from tests.system import needs_git
from tests.tables import table
from tool_approval import ApprovalContext

from .conftest import Working

CASES = Path(__file__).with_name('explain.toml')


@table('why, words, decision, rule', rows(CASES, 'calls'))
def test_a_call_is_decided_by_the_rule_that_is_named(tool_approval, why, words, decision, rule):
    finished = tool_approval('explain', '--json', *words)

    assert finished.json['decision'] == decision
    assert finished.json['rule'] == (rule or None)
    assert finished.status == {'allow': 0, 'ask': 10, 'block': 20}[decision]


def test_json_is_one_object_with_decision_rule_and_parts(tool_approval):
    finished = tool_approval('explain', 'shell', 'git status; rm x', '--json')

    assert list(finished.json) == ['decision', 'rule', 'parts']
    assert [(part['text'], part['decision'], part['rule']) for part in finished.json['parts']] == [
        ('git status', 'allow', 'git status'),
        ('rm x', 'block', 'rm'),
    ]


def test_text_names_each_part_and_why(tool_approval):
    finished = tool_approval('explain', 'shell', 'git status; rm x')

    assert finished.out == (
        'block: the rule `rm` blocks it\n  allow  git status\n         the rule `git status` allows it\n  block  rm x\n'
    )


def test_untrusted_settings_are_judged_as_if_trusted_with_a_notice(tool_approval):
    finished = tool_approval('explain', 'shell', 'git status')

    assert finished.status == 0
    assert 'approvals.yaml is not trusted (the user has not trusted the file)' in finished.err


def test_named_settings_are_trusted(tool_approval):
    finished = tool_approval('explain', 'shell', 'git status', '--config', 'approvals.yaml')

    assert (finished.status, finished.err) == (0, '')


def test_roots_are_relative_to_the_working_directory_that_is_given(tool_approval, work):
    os.mkdir(work / 'other')

    finished = tool_approval('explain', 'read_file', '../notes/a.txt', '--cwd', 'other', '--config', 'approvals.yaml')

    assert finished.status == 20


@pytest.mark.parametrize(
    ('candidates', 'statuses'), [([Working()], [0, 10, 0, 10, 10, 20]), ([], [10, 10, 0, 10, 10, 20])]
)
def test_call_without_a_settings_file_is_judged_as_in_a_run(tool_approval, work, choosing, candidates, statuses):
    (work / 'approvals.yaml').unlink()
    choosing(*candidates)
    calls = ['shell ls', 'shell rm', 'read_file notes/a.txt', 'send_mail', 'write_file x', 'write_file HEAD']

    assert [tool_approval('explain', *call.split()).status for call in calls] == statuses


@pytest.mark.parametrize('command', ['git commit -m x', 'rm a.txt', 'pip install x', 'ls', 'curl http://x; rm -r y'])
@pytest.mark.parametrize('has_file', [True, False])
def test_extra_access_is_what_the_question_of_a_run_lists(tool_approval, work, choosing, command, has_file):
    (work / '.git/objects').mkdir(parents=True)
    (work / 'approvals.yaml').write_text('sandbox: {paths: {all: {root: ., mode: rw}}}')
    if not has_file:
        (work / 'approvals.yaml').unlink()
    choosing(Working())
    loaded = with_defaults(load_settings('approvals.yaml' if has_file else None, directory=work, named=True))
    shell = open_workspace(loaded, backend=Working()).shell
    request = shell.check_approval(ApprovalContext(tool_name='run_shell', args={'command': command}))
    lines = () if request is None else shell.extra_access(shell.explain(command), {}).describe(str(work))

    finished = tool_approval('explain', 'shell', command)
    as_json = tool_approval('explain', '--json', 'shell', command)

    shown = [line for line in finished.out.splitlines() if line.startswith('extra access: ')]
    assert shown == [f'extra access: {line}' for line in lines]
    assert as_json.json.get('extra_access', []) == list(lines)
    assert bool(lines) == (command != 'ls')


def test_only_a_call_that_asks_lists_extra_access(tool_approval, work, choosing):
    choosing(Working())
    (work / '.git/objects').mkdir(parents=True)
    (work / 'approvals.yaml').write_text(
        'shell: {rules: [{pattern: git push, allowed: false}, {pattern: git fetch, approval: false}]}'
    )

    assert [
        'extra access' in tool_approval('explain', 'shell', f'git {each}').out for each in ('push', 'fetch', 'am')
    ] == [
        False,
        True,
        True,
    ]


def test_a_model_that_asks_for_access_is_judged_as_in_a_run(tool_approval, work, choosing):
    choosing(Working())
    (work / 'approvals.yaml').write_text('shell: {rules: [{pattern: ls, approval: false}], network: false}')
    accesses = [None, [], ['network'], ['nothing']]
    calls = [{'tool': 'run_shell', 'args': {'command': 'ls', 'access': each}} for each in accesses]
    (work / 'calls.jsonl').write_text(''.join(f'{json.dumps(call)}\n' for call in calls))

    answers = tool_approval('explain', '--batch', 'calls.jsonl').lines

    assert [each['decision'] for each in answers] == ['allow', 'allow', 'ask', 'block']
    assert answers[2]['extra_access'][0].startswith('network')
    assert '`access` must be a list of these names' in answers[3]['parts'][-1]['reason']


def test_access_in_the_profile_does_not_ask(tool_approval, work, choosing):
    choosing(Working())
    call = {'tool': 'run_shell', 'args': {'command': 'ls', 'access': ['network']}}
    config = {'shell': {'rules': [{'pattern': 'ls', 'approval': False}], 'network': True}}
    (work / 'calls.jsonl').write_text(json.dumps({**call, 'config': config}))

    [answer] = tool_approval('explain', '--batch', 'calls.jsonl').lines

    assert (answer['decision'], 'extra_access' in answer) == ('allow', False)


REQUIRING = 'require_os_sandbox: true, os_sandbox_fallback: {}'


@pytest.mark.parametrize(
    ('fallback', 'status', 'said'), [('fail_fast', 10, 'does not start here'), ('refuse_tools', 20, '')]
)
def test_missing_required_os_sandbox_is_explained_as_in_a_run(tool_approval, work, choosing, fallback, status, said):
    choosing()
    (work / 'approvals.yaml').write_text(
        f'sandbox: {{paths: {{all: {{root: ., mode: rw}}}}, {REQUIRING.format(fallback)}}}'
    )

    finished = [tool_approval('explain', *words) for words in (['shell', 'rm x'], ['write_file', 'x'])]

    assert [each.status for each in finished] == [status, status]
    assert all(said in each.err and ('are refused' in each.out) == (fallback == 'refuse_tools') for each in finished)


def test_directory_that_cannot_be_confined_is_reported(tool_approval, work, choosing):
    class Unfit(Working):
        def notes(self, profile, cwd):
            raise OSSandboxError('too much to mount')

    choosing(Unfit())

    finished = tool_approval('explain', 'shell', 'git push')

    assert finished.status == 10
    assert (
        '`tool-approval run` does not start here (too much to mount), but the call is judged as if it did'
        in finished.err
    )


def test_tool_rule_overrides_the_check_of_the_tool_except_its_blocks(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'tools: {shell: {approval: none}}\nshell: {rules: [{pattern: rm, allowed: false}]}'
    )

    unasked, blocked = (tool_approval('explain', '--json', 'shell', command) for command in ('ls', 'rm x'))

    assert (unasked.json['decision'], unasked.json['rule']) == ('allow', 'shell')
    assert "overrides the tool's own check" in unasked.json['parts'][-1]['reason']
    assert (blocked.json['decision'], blocked.json['rule']) == ('block', 'rm')


@table('why, tools, decision, rule', rows(CASES, 'shell_names'))
def test_stricter_rule_for_a_name_of_the_shell_tool_decides(tool_approval, work, why, tools, decision, rule):
    (work / 'approvals.yaml').write_text(f'tools: {tools}')

    finished = tool_approval('explain', '--json', 'shell', 'ls')

    assert (finished.json['decision'], finished.json['rule']) == (decision, rule)


@pytest.mark.parametrize(('default', 'status'), [('none', 0), ('required', 10)])
def test_default_applies_to_a_tool_without_a_rule(tool_approval, work, default, status):
    (work / 'approvals.yaml').write_text(f'default: {default}')

    assert tool_approval('explain', 'send_mail').status == status


def test_strict_mode_is_named_for_a_call_that_would_ask(tool_approval, work):
    (work / 'approvals.yaml').write_text('mode: strict')

    finished = tool_approval('explain', 'send_mail')

    assert finished.status == 10
    assert 'the mode is strict: calls that require approval are denied' in finished.err


def test_arguments_that_cannot_be_compared_are_blocked(tool_approval):
    finished = tool_approval('explain', '--json', 'send_notification', '{"to": "\\ud800"}')

    assert finished.status == 20
    assert finished.json['rule'] is None
    assert 'lone surrogate' in finished.json['parts'][0]['reason']


@table(
    'why, words, problem',
    [*rows(CASES, 'errors'), ('the name of the tool is too long', ['x' * 201], 'at most 200 characters')],
)
def test_invalid_call_is_one_line_on_standard_error(tool_approval, why, words, problem):
    finished = tool_approval('explain', *words)

    assert finished.status == 2
    assert finished.out == ''
    assert finished.err.count('\n') == 1
    assert problem in finished.err


def test_a_mistake_in_the_configuration_names_file_line_and_key(tool_approval, work):
    (work / 'approvals.yaml').write_text('tools:\n  x: {aproval: none}\n')

    finished = tool_approval('explain', 'x')

    assert finished.status == 2
    assert 'approvals.yaml:2: tools.x.aproval: unknown key; did you mean `approval`?' in finished.err


def test_command_after_two_dashes_may_begin_with_a_dash(tool_approval):
    assert tool_approval('explain', 'shell', '--', '-x').status == 10


def test_explaining_changes_nothing(tool_approval, work):
    before = {path: path.read_bytes() for path in work.rglob('*') if path.is_file()}

    for words in (
        ['write_file', 'cache/new'],
        ['delete', 'notes/a.txt'],
        ['shell', 'echo x > cache/x'],
        ['shell', 'rm x'],
    ):
        tool_approval('explain', *words)

    assert {path: path.read_bytes() for path in work.rglob('*') if path.is_file()} == before
    assert not (work.parent / 'state').exists()


def test_missing_settings_file_is_reported_with_the_default_preset(tool_approval, work):
    (work / 'approvals.yaml').unlink()

    finished = tool_approval('explain', '--json', 'read_file', 'notes/a.txt')

    assert finished.json['decision'] == 'allow'
    assert finished.json['rule'] == 'project'
    assert f'{work} has no settings file, so the preset `default` applies, as in `tool-approval run`' in finished.err


def test_batch_reports_a_missing_settings_file_once(tool_approval, work):
    (work / 'approvals.yaml').unlink()
    line = '{"id": 1, "tool": "read_file", "args": {"path": "notes/a.txt"}}\n'
    (work / 'calls.jsonl').write_text(2 * line)

    finished = tool_approval('explain', '--batch', 'calls.jsonl')

    assert finished.err.count('has no settings file') == 1


def test_the_labels_of_a_shell_command_are_shown(tool_approval):
    finished = tool_approval('explain', '--labels', 'shell', 'git add -v; $x y; >z')

    assert [line.split() for line in finished.out.splitlines()] == [
        ['program', 'git'],
        ['sub_command', 'add'],
        ['flag', '-v'],
        ['needs', 'git'],
    ]
    assert finished.status == 10


def test_command_without_needs_has_only_its_program_as_a_label(tool_approval):
    finished = tool_approval('explain', '--labels', 'shell', 'ls')

    assert finished.out.split() == ['program', 'ls']


def test_only_a_shell_command_has_labels(tool_approval):
    finished = tool_approval('explain', '--labels', 'read_file', 'notes/a.txt')

    assert finished.status == 2
    assert '`--labels` is for shell commands' in finished.err


def test_the_reason_names_the_preset_of_a_rule_and_of_a_root(tool_approval, work, choosing):
    choosing(Working())
    (work / 'approvals.yaml').write_text('extends: [read-only]')

    command, path = (tool_approval('explain', *words) for words in (['shell', 'rm a'], ['read_file', 'notes/a.txt']))

    assert command.out.startswith('block: the rule `rm` of the preset `read-only` (line 12) blocks it\n')
    assert path.out.startswith('allow: the root `project` of the preset `read-only` allows this access\n')


def test_a_batch_may_bring_presets(tool_approval, work):
    line = {'tool': 'shell', 'args': {'command': 'rm x'}, 'config': {'extends': ['read-only']}}
    (work / 'calls.jsonl').write_text(f'{json.dumps(line)}\n')

    [answer] = tool_approval('explain', '--batch', 'calls.jsonl').lines

    assert (answer['decision'], answer['rule']) == ('block', 'rm')


@table(
    'args, decision, said',
    [
        ('{"amount": 20}', 'allow', 'case 1 of the tool rule `refund` allows the call'),
        ('{"amount": 200}', 'ask', 'the tool rule `refund` requires approval'),
        (
            '{"amount": "20"}',
            'block',
            'case 2 of the tool rule `refund` blocks the call, because the value of `amount` is missing',
        ),
    ],
)
def test_the_case_of_a_rule_is_named(tool_approval, work, args, decision, said):
    (work / 'approvals.yaml').write_text(
        'tools:\n  refund:\n    approval: required\n    cases:\n'
        '      - {when: {amount: {below: 50}}, approval: none}\n'
        '      - {when: {amount: {above: 500}}, approval: blocked}\n'
    )

    finished = tool_approval('explain', 'refund', args)

    assert finished.out.startswith(f'{decision}: {said}')


def test_a_command_that_needs_only_access_is_not_said_to_be_asked_about_by_a_rule(tool_approval, work, choosing):
    choosing(Working())
    (work / 'approvals.yaml').write_text(
        'shell: {default: {approval: false}, rules: [{pattern: mkdir, approval: false}]}'
    )

    finished = tool_approval('explain', '--json', 'shell', 'mkdir x')

    assert (finished.json['decision'], finished.json['rule']) == ('ask', None)
    assert [(part['kind'], part['decision'], part['rule']) for part in finished.json['parts']] == [
        ('command', 'allow', 'mkdir'),
        ('access', 'ask', None),
    ]


def test_a_command_that_runs_outside_of_the_sandbox_is_explained_as_in_a_run(tool_approval, work, choosing):
    choosing(Working())
    (work / 'approvals.yaml').write_text('shell: {default: {approval: false}, host: [env]}')
    calls = [
        {'tool': 'run_shell', 'args': {'command': command, 'access': access}}
        for command, access in (('env', None), ('env', ['host']), ('env | cat', ['host']), ('id', ['host']))
    ]
    (work / 'calls.jsonl').write_text(''.join(f'{json.dumps(call)}\n' for call in calls))

    answers = tool_approval('explain', '--batch', 'calls.jsonl').lines

    assert [each['decision'] for each in answers] == ['allow', 'ask', 'block', 'block']
    assert answers[1]['parts'][-1]['reason'] == 'it runs outside of the sandbox'
    assert answers[1]['extra_access'][0].startswith('runs OUTSIDE the sandbox, as you')
    assert 'or to add `host: [id]` below `shell`' in answers[3]['parts'][-1]['reason']


@needs_git
def test_a_push_that_cannot_work_in_the_sandbox_names_the_line_to_add(tool_approval, work, choosing):
    choosing(Working())
    (work / 'approvals.yaml').write_text('shell: {default: {approval: false}}')
    git = ['git', '-C', str(work)]
    subprocess.run([*git, 'init', '-q'], check=True)
    subprocess.run([*git, 'remote', 'add', 'origin', 'git@example.org:a.git'], check=True)

    finished = tool_approval('explain', 'shell', 'git push origin main')

    assert finished.status == 20
    assert 'Tell the user to run `git push`, or to add `host: [git push]` below `shell`' in finished.out


WHO = """\
approvers: {leads: {groups: [leads], count: 2}}
tools:
  refund:
    approval: required
    cases:
      - {when: {amount: {above: 500}}, approvers: leads}
  run_shell: {approvers: leads}
"""


def test_it_says_who_must_approve(tool_approval, work):
    (work / 'who.yaml').write_text(WHO)

    def explain(*words):
        finished = tool_approval('explain', *words, '--config', 'who.yaml')
        as_json = tool_approval('explain', *words, '--config', 'who.yaml', '--json').json
        return [line for line in finished.out.splitlines() if 'approvers' in line], as_json.get('approvers')

    assert explain('refund', '{"amount": 600}') == (['approvers: 2 of group leads'], ['2 of group leads'])
    assert explain('refund', '{"amount": 60}') == ([], None)
    assert explain('shell', 'git push') == (['approvers: 2 of group leads'], ['2 of group leads'])
